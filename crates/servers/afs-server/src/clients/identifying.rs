//! Locks of the addresses that are being identified, so that several first calls ask once; a bounded number for each machine.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::sync;
use parking_lot::Mutex;

/// Ports of one address that are identified at the same time. Calls from more are answered VBUSY.
const PORTS_MAX: usize = 64;

/// The addresses that are being identified. Bounded by the calls in progress, too: each is there for one of them.
#[derive(Default)]
pub(super) struct Identifying(Mutex<BTreeMap<SocketAddr, Arc<sync::Mutex<()>>>>);

/// The lock of an address, as held by one of its calls.
pub(super) struct IdentificationLock<'a> {
    all: &'a Identifying,
    peer: SocketAddr,
    lock: Arc<sync::Mutex<()>>,
}

impl Identifying {
    /// The lock of an address, unless too many ports of it are being identified.
    pub(super) fn lock(&self, peer: SocketAddr) -> Option<IdentificationLock<'_>> {
        let mut all = self.0.lock();
        let ports = SocketAddr::new(peer.ip(), 0)..=SocketAddr::new(peer.ip(), u16::MAX);
        if !all.contains_key(&peer) && all.range(ports).count() >= PORTS_MAX {
            return None;
        }
        let lock = all.entry(peer).or_default().clone();
        Some(IdentificationLock { all: self, peer, lock })
    }
}

impl IdentificationLock<'_> {
    /// Waits until no other call identifies the address.
    pub(super) async fn turn(&self) -> sync::MutexGuard<'_, ()> {
        self.lock.lock().await
    }
}

impl Drop for IdentificationLock<'_> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        // The map's and this one: no other call waits for this lock.
        if Arc::strong_count(&self.lock) <= 2 {
            all.remove(&self.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_an_address_are_bounded_and_others_have_theirs() {
        let all = Identifying::default();
        let peer = |last: u8, port: usize| SocketAddr::from(([10, 0, 0, last], port as u16));
        let locks: Vec<_> = (0..PORTS_MAX).map(|port| all.lock(peer(1, port)).unwrap()).collect();
        assert!(all.lock(peer(1, PORTS_MAX)).is_none());
        assert!(all.lock(peer(1, 0)).is_some() && all.lock(peer(2, PORTS_MAX)).is_some());
        drop(locks);
        assert!(all.0.lock().is_empty() && all.lock(peer(1, PORTS_MAX)).is_some());
    }
}
