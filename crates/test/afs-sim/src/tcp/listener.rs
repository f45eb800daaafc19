//! Listeners of streams, with their backlog.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, Waker};

use afs_rpc::{ByteListener, ByteStream};

use super::stream::SimStream;
use super::{Side, StreamId};
use crate::node::{Incarnation, NodeId};
use crate::world::{State, World};

/// A listener in the network's table.
pub(crate) struct Listening {
    pub(super) life: Incarnation,
    /// Established, not accepted: at most [`BACKLOG_MAX`].
    pub(super) queue: VecDeque<StreamId>,
    pub(super) accepting: Option<Waker>,
}

/// Listens at an address of the node.
pub(crate) fn listen(world: &World, life: &Incarnation, at: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
    let local = world.with(|state| state.add_listener(life, at))?;
    Ok(Box::new(SimListener { world: world.clone(), life: life.clone(), local }))
}

struct SimListener {
    world: World,
    life: Incarnation,
    local: SocketAddr,
}

impl ByteListener for SimListener {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Box<dyn ByteStream>>> {
        if !self.life.is_alive() {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        let key = (self.life.node, self.local);
        let waker = cx.waker().clone();
        let (next, _old) = self.world.with(|state| {
            let Some(listening) = state.net.streams.listeners.get_mut(&key) else { return (None, None) };
            match listening.queue.pop_front() {
                Some(id) => (Some(id), None),
                None => (None, listening.accepting.replace(waker)),
            }
        });
        match next.and_then(|id| SimStream::new(&self.world, id, Side::Server)) {
            Some(stream) => Poll::Ready(Ok(Box::new(stream))),
            None => Poll::Pending,
        }
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        if !self.life.is_alive() {
            return;
        }
        let removed = self.world.with(|state| {
            let listening = state.net.streams.listeners.remove(&(self.life.node, self.local))?;
            let reset = |id: &StreamId| state.close(*id, Side::Server, true);
            Some((listening.queue.iter().flat_map(reset).collect::<Vec<_>>(), listening.accepting))
        });
        drop(removed);
    }
}

impl State {
    fn add_listener(&mut self, life: &Incarnation, at: SocketAddr) -> io::Result<SocketAddr> {
        if !life.is_alive() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let is_own = self.net.owners.get(&at.ip()) == Some(&life.node);
        if !(is_own || at.ip().is_unspecified() || at.ip().is_loopback()) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let mut local = at;
        if at.port() == 0 {
            local.set_port(self.net.streams.free_port());
        }
        let listeners = &mut self.net.streams.listeners;
        if listeners.contains_key(&(life.node, local)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let listening = Listening { life: life.clone(), queue: VecDeque::new(), accepting: None };
        listeners.insert((life.node, local), listening);
        Ok(local)
    }

    /// The listener for segments to an address of a node.
    pub(super) fn listener_at(&mut self, node: NodeId, to: SocketAddr) -> Option<&mut Listening> {
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let listeners = &mut self.net.streams.listeners;
        let exact = (node, to);
        let key =
            if listeners.contains_key(&exact) { exact } else { (node, SocketAddr::new(any, to.port())) };
        listeners.get_mut(&key)
    }
}

/// Most connections that wait to be accepted, at one listener.
pub(super) const BACKLOG_MAX: usize = 128;
