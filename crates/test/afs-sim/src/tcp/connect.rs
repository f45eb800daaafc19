//! Handshake of a connection: three segments, as in RFC 9293, 3.5.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::{ByteStream, EnvExt};

use super::end::{Connection, End, Segment};
use super::listener::BACKLOG_MAX;
use super::stream::SimStream;
use super::{Side, StreamId};
use crate::env::NodeEnv;
use crate::node::{Incarnation, NodeId};
use crate::world::{State, World};

/// Opens a stream from the node of `env`.
pub(crate) async fn connect(env: NodeEnv, to: SocketAddr) -> io::Result<Box<dyn ByteStream>> {
    let id = env.world.with(|state| state.begin(&env.life, to))?;
    let connecting = Connecting { world: env.world.clone(), id, is_done: false };
    match select(connecting, env.sleep(GIVE_UP)).await {
        Either::Left(stream) => Ok(Box::new(stream?)),
        Either::Right(()) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// A connection attempt, aborted on drop.
struct Connecting {
    world: World,
    id: StreamId,
    is_done: bool,
}

impl Future for Connecting {
    type Output = io::Result<SimStream>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (id, waker) = (self.id, cx.waker().clone());
        let (outcome, _old) = self.world.with(|state| state.outcome(id, waker));
        if let Poll::Ready(outcome) = outcome {
            outcome?;
            self.is_done = true;
            let stream = SimStream::new(&self.world, id, Side::Client);
            return Poll::Ready(stream.ok_or_else(|| io::ErrorKind::NotConnected.into()));
        }
        Poll::Pending
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if !self.is_done {
            let wakers = self.world.with(|state| state.close(self.id, Side::Client, true));
            drop(wakers);
        }
    }
}

impl State {
    fn begin(&mut self, life: &Incarnation, to: SocketAddr) -> io::Result<StreamId> {
        if !life.is_alive() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let ip = self.source(life.node, to.ip()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let from = SocketAddr::new(ip, self.net.streams.free_port());
        let there =
            if to.ip().is_loopback() { Some(life.node) } else { self.net.owners.get(&to.ip()).copied() };
        let mut client = End::new(from, Some(life.node), Some(life.clone()));
        client.is_held = true;
        let ends = [client, End::new(to, there, None)];
        let id = self.net.streams.free_id();
        self.net.streams.connections.insert(id, Connection { ends, is_silent: false });
        for side in [Side::Client, Side::Server] {
            let room = self.config_of(id, side).receive_buffer;
            if let Some(end) = self.end(id, side) {
                end.credit = room;
            }
        }
        self.transmit(id, Side::Client, Segment::Syn);
        Ok(id)
    }

    /// The source address with which a node reaches another.
    fn source(&self, node: NodeId, to: IpAddr) -> Option<IpAddr> {
        if to.is_loopback() {
            return Some(to);
        }
        let own = |(ip, owner): &(&IpAddr, &NodeId)| **owner == node && ip.is_ipv4() == to.is_ipv4();
        self.net.owners.iter().find(own).map(|(ip, _)| *ip)
    }

    fn outcome(&mut self, id: StreamId, waker: Waker) -> (Poll<io::Result<()>>, Option<Waker>) {
        let Some(end) = self.end(id, Side::Client) else {
            return (Poll::Ready(Err(io::ErrorKind::NotConnected.into())), None);
        };
        match end.error {
            Some(error) => (Poll::Ready(Err(error.into())), None),
            None if end.is_established => (Poll::Ready(Ok(())), None),
            None => (Poll::Pending, end.reading.replace(waker)),
        }
    }

    pub(super) fn take_syn(&mut self, id: StreamId) {
        let Some((_, to)) = self.addresses(id, Side::Client) else { return };
        let Some((from_node, node)) = self.nodes_of(id, Side::Client) else { return };
        let Some(life) = self.listener_at(node, to).map(|listening| listening.life.clone()) else {
            return self.transmit(id, Side::Server, Segment::Reset);
        };
        for (side, link) in [(Side::Client, (from_node, node)), (Side::Server, (node, from_node))] {
            let fault = self.net.streams.faults.get_mut(&link).and_then(|faults| faults.pop_front());
            if let Some(end) = self.end(id, side) {
                end.fault = fault;
            }
        }
        if let Some(end) = self.end(id, Side::Server) {
            end.life = Some(life);
        }
        self.transmit(id, Side::Server, Segment::SynAck);
    }

    pub(super) fn take_syn_ack(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        let Some(end) = self.end(id, Side::Client) else { return };
        if !end.is_held || !end.is_alive() {
            return self.transmit(id, Side::Client, Segment::Reset);
        }
        end.is_established = true;
        woken.extend(end.reading.take());
        self.transmit(id, Side::Client, Segment::Ack);
    }

    pub(super) fn take_ack(&mut self, id: StreamId, woken: &mut Vec<Waker>) {
        let Some((_, to)) = self.addresses(id, Side::Client) else { return };
        let Some((_, node)) = self.nodes_of(id, Side::Client) else { return };
        let is_alive = self.end(id, Side::Server).is_some_and(|end| end.is_alive());
        let listening = self.listener_at(node, to).filter(|l| l.queue.len() < BACKLOG_MAX);
        let Some(listening) = listening.filter(|_| is_alive) else {
            return self.refuse(id);
        };
        listening.queue.push_back(id);
        woken.extend(listening.accepting.take());
        if let Some(end) = self.end(id, Side::Server) {
            (end.is_held, end.is_established) = (true, true);
        }
    }

    /// The listener is closed, or its queue is full.
    fn refuse(&mut self, id: StreamId) {
        for side in [Side::Client, Side::Server] {
            if let Some(end) = self.end(id, side) {
                end.fault = None;
            }
        }
        self.transmit(id, Side::Server, Segment::Reset);
    }
}

/// Time-out of a connection attempt: Linux with the default `tcp_syn_retries` of 6 (tcp(7)).
const GIVE_UP: Duration = Duration::from_secs(127);
