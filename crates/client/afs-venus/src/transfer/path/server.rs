//! Data path of one file server: what it told, the connections, the failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::sync::{Notify, Semaphore};
use afs_rpc::{EnvRef, Instant};
use parking_lot::Mutex;

use super::capabilities::Capabilities;
use super::failures::Failures;
use super::fallback::{Ended, Fallback};
use super::link::Link;
use super::offer::Offer;
use crate::calls::Target;
use crate::config::DataPathConfig;
use crate::counters::Counters;
use crate::identity::TokenId;
use crate::location::Server;
use crate::objects::ObjectReader;

/// Most tokens of which is kept what the server told them. Others ask again.
const TOKENS_MAX: usize = 256;
/// Most connections to drives with different keys. More than one is open when a server has been started again, or when somebody
/// between it and one of the users tells of another drive.
const LINKS_MAX: usize = 4;

/// Most objects that are read at a time; each takes as much memory as its chunk has bytes, usually 1 MiB.
const OBJECTS_MAX: usize = 16;

/// The word for a path that is open.
pub(super) const IN_USE: &str = "in use";

/// What the data paths of all servers have in common.
pub(crate) struct Common {
    pub env: EnvRef,
    pub config: DataPathConfig,
    pub counters: Arc<Counters>,
    pub objects: Option<Objects>,
}

/// How object stores are read.
pub(crate) struct Objects {
    pub reader: Arc<dyn ObjectReader>,
    /// Reads in progress, of all buckets of all servers.
    pub reads: Arc<Semaphore>,
}

impl Objects {
    pub fn new(reader: Arc<dyn ObjectReader>) -> Self {
        Objects { reader, reads: Arc::new(Semaphore::new(OBJECTS_MAX)) }
    }
}

/// The data path of one server.
pub(super) struct ServerPath {
    pub server: Arc<Server>,
    pub common: Arc<Common>,
    state: Mutex<State>,
    pub capabilities: Mutex<Capabilities>,
    /// Something of it has changed.
    pub changed: Notify,
}

#[derive(Default)]
struct State {
    /// By whom it was asked: the reply is as trustworthy as the connection that it came by, so nobody uses that of another one.
    told: BTreeMap<TokenId, Told>,
    links: Vec<Arc<Link>>,
    failures: Failures,
    last: Option<Fallback>,
}

enum Told {
    Asked,
    Here(Offer),
}

/// What a transfer is made over, or why it is made by calls.
pub(super) enum Route {
    Link(Arc<Link>),
    /// The server has no data path.
    None,
    /// To be opened by who is told so.
    Open,
    Fallback(Fallback),
}

impl ServerPath {
    pub fn new(server: Arc<Server>, common: Arc<Common>) -> Self {
        ServerPath {
            server,
            common,
            state: Mutex::default(),
            capabilities: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub fn now(&self) -> Instant {
        self.common.env.now()
    }

    /// The connection for a token. Who is told to open one must call [`ServerPath::opened`] or [`ServerPath::not_opened`].
    fn route(&self, token: TokenId) -> Route {
        if self.server.has_no_data_path(self.now()) {
            return Route::None;
        }
        let mut state = self.state.lock();
        let State { told, links, .. } = &mut *state;
        match told.get(&token) {
            Some(Told::Asked) => return Route::Fallback(Fallback::Connecting),
            Some(Told::Here(offer)) => {
                if let Some(link) = link_of(links, offer) {
                    return Route::Link(link);
                }
            }
            None => {}
        }
        if state.failures.is_pausing(self.now()) {
            return Route::Fallback(Fallback::Paused);
        }
        state.tell(token, Told::Asked);
        Route::Open
    }

    /// The connection for a target; it is opened in a task of its own if there is none, and waited for no longer than `wait`.
    pub async fn link(self: &Arc<Self>, target: &Target, wait: Duration) -> Result<Arc<Link>, Ended> {
        let look = || match self.route(target.token) {
            Route::Link(link) => Ok(link),
            Route::None => Err(Ended::NoPath),
            Route::Fallback(why) => Err(Ended::Fallback(why)),
            Route::Open => {
                let (me, target) = (self.clone(), target.clone());
                self.common.env.spawn(Box::pin(async move { me.open(&target).await }));
                Err(Ended::Fallback(Fallback::Connecting))
            }
        };
        self.common.when_open(&self.changed, wait, look).await
    }

    /// The connection that serves an offer, if there is one.
    pub fn link_of(&self, offer: &Offer) -> Option<Arc<Link>> {
        link_of(&mut self.state.lock().links, offer)
    }

    /// A token was told of a drive, to which there is this connection.
    pub fn opened(&self, token: TokenId, link: Arc<Link>) {
        let mut state = self.state.lock();
        state.tell(token, Told::Here(link.offer.clone()));
        if link_of(&mut state.links, &link.offer).is_none() {
            if state.links.len() >= LINKS_MAX {
                state.links.remove(0);
            }
            state.links.push(link);
        }
        state.last = None;
        drop(state);
        self.changed.notify_waiters();
    }

    /// A token was told of no drive, or it could not be reached.
    pub fn not_opened(&self, token: TokenId, why: Option<Fallback>) {
        let mut state = self.state.lock();
        state.told.remove(&token);
        if let Some(why) = why {
            self.doubt_path(why);
            state.failed(why, self.now());
            self.common.counters.path_fallback(why.name());
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// A transfer over a connection has ended without success.
    pub fn failed(&self, link: &Arc<Link>, why: Fallback) {
        if !link.failed() {
            return;
        }
        self.doubt_path(why);
        let mut state = self.state.lock();
        state.links.retain(|open| !Arc::ptr_eq(open, link));
        let pause = state.failed(why, self.now()).as_secs();
        drop(state);
        let drive = link.offer.addresses.first();
        tracing::warn!(
            ?drive,
            reason = why.name(),
            pause,
            "the data path failed; bytes of files are moved by calls"
        );
    }

    /// A stream on which nothing arrives may have segments that the path swallows.
    fn doubt_path(&self, why: Fallback) {
        if matches!(why, Fallback::Stalled | Fallback::Unreachable) {
            self.server.addresses().iter().for_each(|address| address.doubt_path());
        }
    }

    /// A transfer over a connection has succeeded.
    pub fn succeeded(&self, link: &Link) {
        if link.succeeded() {
            let mut state = self.state.lock();
            state.failures.forget();
            state.last = None;
        }
    }

    /// Drops a connection that is to be used no more; transfers in progress on it go on. Whether it is dropped.
    pub fn close_idle(&self, link: &Arc<Link>, idle: Duration) -> bool {
        let mut state = self.state.lock();
        if !link.is_over(self.now(), idle) {
            return false;
        }
        state.links.retain(|open| !Arc::ptr_eq(open, link));
        true
    }

    /// How the path is used: a word, and why not if it is not.
    pub fn state(&self) -> (&'static str, Option<Fallback>) {
        if self.server.has_no_data_path(self.now()) {
            return ("none", None);
        }
        let state = self.state.lock();
        let is_open = state.links.iter().any(|link| link.lost().is_none());
        match (is_open, state.last) {
            (true, _) => (IN_USE, None),
            (false, Some(why)) => ("failed", Some(why)),
            (false, None) => ("idle", None),
        }
    }
}

impl State {
    /// Keeps what a token is told. While the call for it was in progress, other tokens may have taken its place.
    fn tell(&mut self, token: TokenId, told: Told) {
        if !self.told.contains_key(&token) && self.told.len() >= TOKENS_MAX {
            self.told.pop_first();
        }
        self.told.insert(token, told);
    }

    fn failed(&mut self, why: Fallback, now: Instant) -> Duration {
        self.last = Some(why);
        self.failures.note(now)
    }
}

/// The connection that serves an offer. Those that have ended are dropped.
fn link_of(links: &mut Vec<Arc<Link>>, offer: &Offer) -> Option<Arc<Link>> {
    links.retain(|link| link.lost().is_none());
    links.iter().find(|link| link.offer.is_same_drive(offer)).cloned()
}

#[cfg(test)]
mod tests;
