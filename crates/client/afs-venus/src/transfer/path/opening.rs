//! Opening and closing of a connection to a server's drive: DataPath by Rx, then the stream; all of it in the background.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::rpc::Request;

use super::connect::{DriveContent, IDLE, close_when_idle};
use super::fallback::Fallback;
use super::link::Link;
use super::offer::Offer;
use super::server::ServerPath;
use crate::calls::Target;

/// How long the calls DataPath and GetCapability may take.
pub(super) const CALL_MAX: Duration = Duration::from_secs(10);

impl ServerPath {
    /// Opens a connection for the token of a target, unless one is open that serves it.
    pub(super) async fn open(self: Arc<Self>, target: &Target) {
        match self.try_open(target).await {
            Ok(link) => self.opened(target.token, link),
            Err(why) => self.not_opened(target.token, why),
        }
    }

    async fn try_open(self: &Arc<Self>, target: &Target) -> Result<Arc<Link>, Option<Fallback>> {
        let offer = self.ask(target).await?;
        if let Some(link) = self.link_of(&offer) {
            return Ok(link);
        }
        let narrow = target.address.narrow_path();
        let (session, address) = self.common.connect(&offer, DriveContent::Files, narrow).await?;
        crate::counters::count(&self.common.counters.path_connections);
        tracing::info!(server = %target.address.peer, drive = %address, "the data path is open");
        let narrow = narrow.map(|_| target.address.clone());
        let link = Arc::new(Link::new(offer, session, self.now()).narrow(narrow));
        let (env, path) = (self.common.env.clone(), Arc::downgrade(self));
        let close = move |link: &Arc<Link>| path.upgrade().is_none_or(|path| path.close_idle(link, IDLE));
        env.spawn(Box::pin(close_when_idle(env.clone(), Arc::downgrade(&link), close)));
        Ok(link)
    }

    async fn ask(&self, target: &Target) -> Result<Offer, Option<Fallback>> {
        self.common.counters.call(fs::DataPath::NAME);
        let reset = self.server.reset.get();
        let call = target.connection.call(&fs::DataPath {});
        match self.common.env.timeout(CALL_MAX, call).await {
            Ok(Ok(reply)) => {
                let offer = Offer::new(&reply, target.address.peer, &self.common.config);
                offer.ok_or(Some(Fallback::Unreachable))
            }
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_data_path.note(self.now(), reset);
                Err(None)
            }
            _ => Err(Some(Fallback::Unreachable)),
        }
    }
}
