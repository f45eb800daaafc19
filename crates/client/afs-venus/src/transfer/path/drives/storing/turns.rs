//! Connections of a store, and its turns there: all of them before it asks for a room, whose time would end while it waits.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::sync::OwnedSemaphorePermit;

use super::super::super::connect::STALL;
use super::super::super::fallback::{Ended, Fallback};
use super::super::super::link::Link;
use super::super::super::offer::Offer;
use super::super::super::steps::RATE_MIN;
use super::super::server_drives::ServerDrives;
use super::rooms::{Before, Key};

/// How long a store waits for connections to the drives of its room: all its bytes would go by another way. A datagram that is lost while
/// one is opened costs a second.
const LINKS_WAIT: Duration = Duration::from_secs(2);

/// Places among the stores of connections, each once.
#[derive(Default)]
pub(super) struct Turns(Vec<(Arc<Link>, OwnedSemaphorePermit)>);

impl Turns {
    /// Those at the drives of a room, if there is one at each. The others are given up.
    fn at(mut self, links: &[Arc<Link>]) -> Option<Self> {
        self.0.retain(|(link, _)| links.iter().any(|of_room| Arc::ptr_eq(of_room, link)));
        (self.0.len() == in_order(links).len()).then_some(self)
    }
}

impl ServerDrives {
    /// Turns for so many bytes where the last room was; none if that is not known. Nothing is asked for while a drive there cannot be
    /// reached, but once a minute.
    pub(super) async fn turns_before(self: &Arc<Self>, key: Key, bytes: u64) -> Result<Turns, Ended> {
        let before = self.rooms.lock().before(key, self.now());
        match before {
            Before::None => return Err(Ended::NoPath),
            Before::At(offers) => {
                let links = self.links(&offers).await?;
                return self.turns(&links, bytes).await.map_err(Ended::Fallback);
            }
            Before::WasAt(offers) => drop(self.links_now(&offers)),
            Before::Nothing => {}
        }
        Ok(Turns::default())
    }

    /// The turns of a room; `None` if they would have to be waited for.
    pub(super) fn turns_in_room(&self, turns: Turns, links: &[Arc<Link>]) -> Option<Turns> {
        if let Some(turns) = turns.at(links) {
            return Some(turns);
        }
        let turn = |link: Arc<Link>| link.begin_store(self.now()).map(|permit| (link, permit));
        in_order(links).into_iter().map(turn).collect::<Option<_>>().map(Turns)
    }

    /// As long as for the bytes themselves: the file server would have to write at the same drives.
    async fn turns(&self, links: &[Arc<Link>], bytes: u64) -> Result<Turns, Fallback> {
        let (mut turns, most) = (Turns::default(), STALL + Duration::from_secs(bytes / RATE_MIN));
        for link in in_order(links) {
            let permit = match link.begin_store(self.now()) {
                Some(permit) => Some(permit),
                None => self.common.env.timeout(most, link.store_turn()).await.ok().flatten(),
            };
            let permit = permit.ok_or(Fallback::Full)?;
            turns.0.push((link, permit));
        }
        Ok(turns)
    }

    /// The connections to all drives of a room, which are waited for while they are being opened.
    pub(super) async fn links(self: &Arc<Self>, offers: &[Offer]) -> Result<Vec<Arc<Link>>, Ended> {
        let look = || self.links_now(offers).map_err(Ended::Fallback);
        self.common.when_open(&self.changed, LINKS_WAIT, look).await
    }

    /// The same, if they are open. Those that are not are opened all at once.
    fn links_now(self: &Arc<Self>, offers: &[Offer]) -> Result<Vec<Arc<Link>>, Fallback> {
        let links: Vec<_> = offers.iter().map(|offer| self.link(offer)).collect();
        links.into_iter().collect()
    }
}

/// Each connection once, in an order that all stores have in common, that of the drives: no two of them wait for each other.
fn in_order(links: &[Arc<Link>]) -> Vec<Arc<Link>> {
    let mut each: Vec<Arc<Link>> = Vec::with_capacity(links.len());
    for link in links {
        if !each.iter().any(|other| Arc::ptr_eq(other, link)) {
            each.push(link.clone());
        }
    }
    each.sort_by_key(|link| link.offer.drive.0);
    each
}
