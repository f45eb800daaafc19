//! Callers that did not say who they are when they were asked: they are served once.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Addresses remembered. Over that the oldest is forgotten, and served once more.
const STRANGERS_MAX: usize = 1024;

/// The addresses of such callers.
#[derive(Default)]
pub(super) struct Strangers(VecDeque<SocketAddr>);

impl Strangers {
    /// Notes an address; answers whether it was known.
    pub(super) fn meet(&mut self, peer: SocketAddr) -> bool {
        if self.0.contains(&peer) {
            return true;
        }
        if self.0.len() >= STRANGERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(peer);
        false
    }

    /// Somebody at this address has said who it is.
    pub(super) fn forget(&mut self, peer: SocketAddr) {
        self.0.retain(|known| *known != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_remembered_and_bounded() {
        let mut strangers = Strangers::default();
        let peer = |n: u16| SocketAddr::from(([10, 0, 0, 1], n));
        assert!(!strangers.meet(peer(0)) && strangers.meet(peer(0)));
        for n in 1..=STRANGERS_MAX as u16 {
            assert!(!strangers.meet(peer(n)));
        }
        assert_eq!(strangers.0.len(), STRANGERS_MAX);
        assert!(!strangers.meet(peer(0)));
        strangers.forget(peer(5));
        assert!(!strangers.meet(peer(5)));
    }
}
