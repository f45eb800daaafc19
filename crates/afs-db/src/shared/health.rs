//! Whether the store answers, and since when it does not.

use afs_rpc::Instant;
use parking_lot::Mutex;

/// What is known of the store.
pub(super) struct Health(Mutex<State>);

struct State {
    /// Everything that had happened by then is in the replica.
    confirmed: Instant,
    /// Since when the store does not answer.
    down: Option<Instant>,
}

impl Health {
    pub(super) fn new(now: Instant) -> Self {
        Health(Mutex::new(State { confirmed: now, down: None }))
    }

    /// The store answers. Says whether that is news.
    pub(super) fn answered(&self) -> bool {
        self.0.lock().down.take().is_some()
    }

    /// The replica has everything that had happened by `asked`.
    pub(super) fn confirm(&self, asked: Instant) {
        let mut state = self.0.lock();
        state.confirmed = state.confirmed.max(asked);
    }

    /// The store did not answer. Says whether that is news.
    pub(super) fn fail(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let news = state.down.is_none();
        state.down.get_or_insert(now);
        news
    }

    /// Since when the store does not answer; `None` while it does.
    pub(super) fn down_since(&self) -> Option<Instant> {
        self.0.lock().down
    }

    /// By when everything that had happened is in the replica.
    pub(super) fn confirmed(&self) -> Instant {
        self.0.lock().confirmed
    }
}
