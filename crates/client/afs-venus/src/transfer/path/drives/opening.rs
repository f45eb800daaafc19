//! Connection to a drive, opened in the background by who needs it first.

use std::sync::Arc;

use super::super::connect::{DriveContent, IDLE, close_when_idle};
use super::super::fallback::Fallback;
use super::super::link::Link;
use super::super::offer::Offer;
use super::links::Way;
use super::server_drives::ServerDrives;

impl ServerDrives {
    /// The connection to a drive, if it is open; else it is being opened, unless the drive is left alone.
    pub(super) fn link(self: &Arc<Self>, offer: &Offer) -> Result<Arc<Link>, Fallback> {
        let way = self.links.lock().way(offer, self.now());
        match way {
            Way::Link(link) => Ok(link),
            Way::Fallback(why) => Err(why),
            Way::Open => {
                let (me, offer) = (self.clone(), offer.clone());
                self.common.env.spawn(Box::pin(async move { me.open(offer).await }));
                Err(Fallback::Connecting)
            }
        }
    }

    async fn open(self: Arc<Self>, offer: Offer) {
        // The narrow part of a path is usually next to this machine, and common to all hosts of a cell.
        let server = self.server.addresses().into_iter().next();
        let narrow = server.filter(|server| server.narrow_path().is_some());
        let size = narrow.as_ref().and_then(|server| server.narrow_path());
        match self.common.connect(&offer, DriveContent::Chunks, size).await {
            Ok((session, address)) => {
                crate::counters::count(&self.common.counters.path_connections);
                tracing::info!(drive = %address, "bytes of files are read at a drive");
                let link = Arc::new(Link::new(offer, session, self.now()).narrow(narrow));
                self.links.lock().opened(link.clone());
                self.changed.notify_waiters();
                self.watch(&link);
            }
            Err(why) => {
                self.links.lock().not_opened(&offer, why, self.now());
                self.changed.notify_waiters();
                self.fallback(why);
            }
        }
    }

    /// Closes a connection over which nothing is moved.
    fn watch(self: &Arc<Self>, link: &Arc<Link>) {
        let (env, me) = (self.common.env.clone(), Arc::downgrade(self));
        let watch = close_when_idle(env, Arc::downgrade(link), move |link| {
            let Some(me) = me.upgrade() else { return true };
            let is_over = link.is_over(me.now(), IDLE);
            if is_over {
                me.links.lock().close(link);
            }
            is_over
        });
        self.common.env.spawn(Box::pin(watch));
    }
}
