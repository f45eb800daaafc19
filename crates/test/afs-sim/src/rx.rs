//! Rx driver on a simulated port, as `afs-net` is on a socket.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use afs_rpc::{EnvRef, Instant, Limits, NotifyDriver, Rx, WeakRx};
use afs_rx::{Config, Endpoint, Transmit};
use bytes::Bytes;

use crate::datagram::{Port, PortHandler};
use crate::node::NodeId;
use crate::world::World;

impl World {
    /// An Rx endpoint bound to an address of a node, in `env`, the environment of the node's current incarnation.
    #[must_use]
    pub fn rx(&self, node: NodeId, env: EnvRef, address: SocketAddr, config: Config, limits: Limits) -> Rx {
        let mut seed = [0; 32];
        self.with(|state| state.rng.fill(&mut seed));
        let driver = Arc::new(Driver::default());
        let port = self.bind(node, address, driver.clone());
        let notify = Arc::new(NotifyPort(port));
        let rx = Rx::with_limits(env, Endpoint::new(config, seed), notify, limits);
        // The handler is new, so its cell is empty.
        let _ = driver.0.set(rx.downgrade());
        rx
    }
}

/// The port of an Rx, which is released with it, as a socket is.
struct NotifyPort(Port);

impl NotifyDriver for NotifyPort {
    fn notify(&self) {
        self.0.notify();
    }
}

impl Drop for NotifyPort {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// References its Rx weakly: an unused Rx is dropped.
#[derive(Default)]
struct Driver(OnceLock<WeakRx>);

impl PortHandler for Driver {
    fn service(&self, port: &Port, now: Instant, arrived: Vec<(SocketAddr, Bytes)>, timed_out: bool) {
        let Some(rx) = self.0.get().and_then(WeakRx::upgrade) else { return };
        rx.handle_datagrams(now, arrived);
        if timed_out {
            rx.handle_timeout(now);
        }
        rx.drain_transmits(|transmit, bytes| send(port, transmit, bytes));
        port.set_timeout(rx.poll_timeout());
    }
}

/// The network carries the datagrams of a batch one by one.
fn send(port: &Port, transmit: &Transmit, bytes: &[u8]) {
    let size = transmit.segment_size.unwrap_or(bytes.len()).max(1);
    for datagram in bytes.chunks(size) {
        port.send(transmit.to, Bytes::copy_from_slice(datagram));
    }
}
