//! Bounded queue of callers that did not give their identity: they are served once.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// AddressMisses remembered. Beyond that the oldest is dropped, and served once more.
const UNIDENTIFIED_MAX: usize = 1024;

/// The addresses of unidentified callers.
#[derive(Default)]
pub(super) struct Unidentified(VecDeque<SocketAddr>);

impl Unidentified {
    /// Adds an address; returns whether it was known.
    pub(super) fn meet(&mut self, peer: SocketAddr) -> bool {
        if self.0.contains(&peer) {
            return true;
        }
        if self.0.len() >= UNIDENTIFIED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(peer);
        false
    }

    /// Removes an address that has given its identity.
    pub(super) fn forget(&mut self, peer: SocketAddr) {
        self.0.retain(|known| *known != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_remembered_and_bounded() {
        let mut unidentified = Unidentified::default();
        let peer = |n: u16| SocketAddr::from(([10, 0, 0, 1], n));
        assert!(!unidentified.meet(peer(0)) && unidentified.meet(peer(0)));
        for n in 1..=UNIDENTIFIED_MAX as u16 {
            assert!(!unidentified.meet(peer(n)));
        }
        assert_eq!(unidentified.0.len(), UNIDENTIFIED_MAX);
        assert!(!unidentified.meet(peer(0)));
        unidentified.forget(peer(5));
        assert!(!unidentified.meet(peer(5)));
    }
}
