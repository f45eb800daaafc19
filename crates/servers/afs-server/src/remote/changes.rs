//! The databases' changes as a file server without them follows them: one call that waits at a protection server, again and again.
//!
//! While that call is in progress, or has just been answered, what the server replied to look-ups is current, and rights can be
//! promised. Servers of others do not know the call; there, and while no server replies, everything known counts as changed once a
//! minute, as if nobody told (docs/protocol/extensions.md "Following the protection database").

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::sync::Notify;
use afs_rpc::{EnvExt, EnvRef, Instant};
use afs_wire::pt::WaitForChange;

use super::DatabaseServers;

/// How long what was learned is used where nobody tells of changes.
pub(super) const BELIEVED: Duration = Duration::from_secs(60);
/// Shortest time between two notices of a change: many in a row cost each file server one look-up of its users.
const PAUSE: Duration = Duration::from_millis(200);
/// Time before a call that failed is made again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(10);
/// A version that no database has: the call is answered at once.
const UNKNOWN: u64 = u64::MAX;

/// What is known of changes.
#[derive(Default)]
pub(super) struct Changes {
    /// Number of times that what was known has become old.
    version: AtomicU64,
    follows: AtomicBool,
    moved: Notify,
}

impl Changes {
    /// Follows the changes at `servers` for as long as this is used.
    pub(super) fn follow(env: EnvRef, servers: Arc<DatabaseServers>) -> Arc<Self> {
        let changes = Arc::new(Changes::default());
        let follower =
            Follower { current: env.now(), env: env.clone(), servers, version: UNKNOWN, pause: RETRY_FIRST };
        env.spawn(Box::pin(follower.run(Arc::downgrade(&changes))));
        changes
    }

    /// Another number after each change.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether a server tells of changes at present.
    pub(super) fn follows(&self) -> bool {
        self.follows.load(Ordering::Acquire)
    }

    /// Ready when the version is another than `since`.
    pub(super) async fn changed(&self, since: u64) {
        loop {
            let moved = self.moved.notified();
            if self.version() != since {
                return;
            }
            moved.await;
        }
    }

    fn note(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
        self.moved.notify_waiters();
    }
}

/// The task that makes the calls.
struct Follower {
    env: EnvRef,
    servers: Arc<DatabaseServers>,
    /// The version at the server that is called.
    version: u64,
    /// When what is known was last current.
    current: Instant,
    pause: Duration,
}

impl Follower {
    async fn run(mut self, changes: Weak<Changes>) {
        loop {
            let outcome = self.wait().await;
            let Some(changes) = changes.upgrade() else { return };
            let pause = match outcome {
                Some(version) => self.is_told(&changes, version),
                None => self.is_not_told(&changes),
            };
            drop(changes);
            self.env.sleep(pause).await;
        }
    }

    /// The version at the server that look-ups go to, when it is another, or after the server's time for such a call.
    async fn wait(&mut self) -> Option<u64> {
        loop {
            let call = WaitForChange { known: self.version };
            match select(self.servers.call(&call), self.servers.other_preferred()).await {
                Either::Left(reply) => return reply.ok().map(|reply| reply.version),
                // Another server may not have seen all that this one had.
                Either::Right(()) => self.version = UNKNOWN,
            }
        }
    }

    fn is_told(&mut self, changes: &Changes, version: u64) -> Duration {
        let is_same = self.version == version;
        (self.version, self.current, self.pause) = (version, self.env.now(), RETRY_FIRST);
        if is_same {
            changes.follows.store(true, Ordering::Release);
            return Duration::ZERO;
        }
        // In this order: rights promised from now on rest on look-ups that begin from now on.
        changes.note();
        changes.follows.store(true, Ordering::Release);
        PAUSE
    }

    fn is_not_told(&mut self, changes: &Changes) -> Duration {
        changes.follows.store(false, Ordering::Release);
        if self.env.now().saturating_since(self.current) >= BELIEVED {
            (self.version, self.current) = (UNKNOWN, self.env.now());
            changes.note();
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(RETRY_MAX);
        pause.min(BELIEVED.saturating_sub(self.env.now().saturating_since(self.current)))
    }
}
