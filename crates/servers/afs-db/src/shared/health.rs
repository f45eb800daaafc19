//! Health of the shared store: reachable, or unreachable since when.

use afs_rpc::Instant;
use parking_lot::Mutex;

/// State of the store.
pub(super) struct Health(Mutex<State>);

struct State {
    /// Everything before this time is in the replica.
    confirmed: Instant,
    /// Time since when the store does not reply.
    down: Option<Instant>,
}

impl Health {
    pub(super) fn new(now: Instant) -> Self {
        Health(Mutex::new(State { confirmed: now, down: None }))
    }

    /// Records a reply. Returns whether the state changed.
    pub(super) fn answered(&self) -> bool {
        self.0.lock().down.take().is_some()
    }

    /// Records that the replica has everything before `asked`.
    pub(super) fn confirm(&self, asked: Instant) {
        let mut state = self.0.lock();
        state.confirmed = state.confirmed.max(asked);
    }

    /// Records a missing reply. Returns whether the state changed.
    pub(super) fn fail(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let news = state.down.is_none();
        state.down.get_or_insert(now);
        news
    }

    /// Time since when the store does not reply; `None` while it does.
    pub(super) fn down_since(&self) -> Option<Instant> {
        self.0.lock().down
    }

    /// The time before which everything is in the replica.
    pub(super) fn confirmed(&self) -> Instant {
        self.0.lock().confirmed
    }
}
