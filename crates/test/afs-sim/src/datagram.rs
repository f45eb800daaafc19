//! Datagram ports: bound addresses of nodes, with their handlers.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::Instant;
use bytes::Bytes;

use crate::node::Incarnation;
use crate::timeline::Due;
use crate::world::World;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PortId(pub(crate) u64);

/// Handler of a port's datagrams and time-outs.
pub trait PortHandler: Send + Sync + 'static {
    /// Called when datagrams have arrived, the port's time-out has expired, or a call was requested.
    fn service(&self, port: &Port, now: Instant, arrived: Vec<(SocketAddr, Bytes)>, timed_out: bool);
}

/// A handle on a bound address of a node. Without effect once the node has crashed.
#[derive(Clone)]
pub struct Port {
    pub(crate) world: World,
    pub(crate) id: PortId,
    pub(crate) address: SocketAddr,
    pub(crate) life: Incarnation,
}

impl Port {
    /// The address it is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a datagram.
    pub fn send(&self, to: SocketAddr, data: Bytes) {
        if self.life.is_alive() {
            self.world.inject(self.address, to, data);
        }
    }

    /// Sets or clears the time at which the handler is called with `timed_out`.
    pub fn set_timeout(&self, at: Option<Instant>) {
        let old = self.world.with(|state| {
            let at = at.map(|at| state.nodes[self.life.node.0 as usize].global(at));
            state.set_port_timeout(self.id, at)
        });
        drop(old);
    }

    /// Requests a call of the handler soon. From any context, any number of times.
    pub fn notify(&self) {
        self.world.with(|state| state.make_ready(self.id));
    }

    /// Releases the address.
    pub fn close(&self) {
        let gone = self.world.with(|state| state.unbind(self.id));
        drop(gone);
    }
}

pub(crate) struct PortState {
    pub(crate) address: SocketAddr,
    pub(crate) life: Incarnation,
    pub(crate) handler: Arc<dyn PortHandler>,
    pub(crate) inbox: Vec<(SocketAddr, Bytes)>,
    pub(crate) timed_out: bool,
    pub(crate) queued: bool,
    pub(crate) timeout: Option<Due>,
}
