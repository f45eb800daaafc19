//! Counters of the connections of a socket, in total and for each user, with their limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Most connections served at a time, each by a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of all users together.
    pub(crate) all: usize,
    /// Of one user, so that a user with idle connections does not exclude others.
    pub(crate) of_user: usize,
}

/// Counters of connections in service.
#[derive(Debug)]
pub(super) struct Connections {
    limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    of_user: BTreeMap<u32, usize>,
}

/// One counted connection; uncounted when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    connections: Arc<Connections>,
    uid: u32,
}

impl Connections {
    /// No connections.
    pub(super) fn with(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    /// Counts a connection of this user; `None` if a limit is reached.
    pub(super) fn take(self: &Arc<Self>, uid: u32) -> Option<Slot> {
        let mut counts = self.counts.lock();
        let own = counts.of_user.get(&uid).copied().unwrap_or(0);
        if counts.all >= self.limits.all || own >= self.limits.of_user {
            return None;
        }
        counts.all += 1;
        counts.of_user.insert(uid, own + 1);
        Some(Slot { connections: self.clone(), uid })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.connections.counts.lock();
        counts.all -= 1;
        let left = counts.of_user.get_mut(&self.uid).map(|own| {
            *own -= 1;
            *own
        });
        if left == Some(0) {
            counts.of_user.remove(&self.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { all: 256, of_user: 8 };

    #[test]
    fn one_users_connections_keep_nobody_else_out() {
        let connections = Connections::with(LIMITS);
        let silent: Vec<_> = (0..1000).filter_map(|_| connections.take(1000)).collect();
        assert_eq!(silent.len(), LIMITS.of_user);
        let other = connections.take(1001);
        assert!(other.is_some());
        drop(silent);
        assert!(connections.take(1000).is_some());
        drop(other);
        assert!(connections.counts.lock().of_user.is_empty());
    }

    #[test]
    fn all_together_are_bounded() {
        let connections = Connections::with(LIMITS);
        let all: Vec<_> = (0..10_000).filter_map(|n| connections.take(n)).collect();
        assert_eq!(all.len(), LIMITS.all);
    }
}
