//! How many connections of a token socket are served at a time, in all and for one user.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Connections served at a time, each by a thread.
const ALL_MAX: usize = 256;
/// Connections of one user served at a time: one that says nothing for its ten seconds keeps nobody else out.
const OF_USER_MAX: usize = 8;

/// Connections that are served.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    of_user: BTreeMap<u32, usize>,
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    uid: u32,
}

impl Connections {
    /// A place for a connection of this user; `None` if there is none left for him.
    pub(super) fn take(self: &Arc<Self>, uid: u32) -> Option<Place> {
        let mut counts = self.0.lock();
        let own = counts.of_user.get(&uid).copied().unwrap_or(0);
        if counts.all >= ALL_MAX || own >= OF_USER_MAX {
            return None;
        }
        counts.all += 1;
        counts.of_user.insert(uid, own + 1);
        Some(Place { connections: self.clone(), uid })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.connections.0.lock();
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

    #[test]
    fn one_users_connections_keep_nobody_else_out() {
        let connections = Arc::<Connections>::default();
        let silent: Vec<_> = (0..1000).filter_map(|_| connections.take(1000)).collect();
        assert_eq!(silent.len(), OF_USER_MAX);
        let other = connections.take(1001);
        assert!(other.is_some());
        drop(silent);
        assert!(connections.take(1000).is_some());
        drop(other);
        assert!(connections.0.lock().of_user.is_empty());
    }

    #[test]
    fn all_together_are_bounded() {
        let connections = Arc::<Connections>::default();
        let all: Vec<_> = (0..10_000).filter_map(|n| connections.take(n)).collect();
        assert_eq!(all.len(), ALL_MAX);
    }
}
