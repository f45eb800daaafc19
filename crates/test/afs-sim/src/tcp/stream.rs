//! `ByteStream` of one end of a connection.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use afs_env::io::{AsyncRead, AsyncWrite, ReadBuf};
use afs_rpc::ByteStream;

use super::end::{Fin, Segment};
use super::{Side, StreamId};
use crate::node::Incarnation;
use crate::world::{State, World};

pub(super) struct SimStream {
    world: World,
    id: StreamId,
    side: Side,
    life: Incarnation,
    local: SocketAddr,
    peer: SocketAddr,
}

impl SimStream {
    /// `None` if the connection has been removed, with its node for example.
    pub(super) fn new(world: &World, id: StreamId, side: Side) -> Option<Self> {
        let (life, (local, peer)) = world.with(|state| {
            let life = state.end(id, side)?.life.clone()?;
            Some((life, state.addresses(id, side)?))
        })?;
        Some(Self { world: world.clone(), id, side, life, local, peer })
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        if self.life.is_alive() {
            let wakers = self.world.with(|state| state.close(self.id, self.side, false));
            drop(wakers);
        }
    }
}

impl ByteStream for SimStream {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn peer_addr(&self) -> SocketAddr {
        self.peer
    }
}

impl AsyncRead for SimStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (id, side, waker) = (self.id, self.side, cx.waker().clone());
        let (polled, _old) = self.world.with(|state| state.read(id, side, buf, waker));
        polled
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let (id, side, waker) = (self.id, self.side, cx.waker().clone());
        let (polled, _old) = self.world.with(|state| state.write(id, side, data, waker));
        polled
    }

    /// A write is done when it is buffered.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.world.with(|state| state.shut_down(self.id, self.side)))
    }
}

/// The result of a poll, and the waker that it replaced, to be dropped without a lock.
type Polled<T> = (Poll<io::Result<T>>, Option<Waker>);

impl State {
    fn read(&mut self, id: StreamId, side: Side, buf: &mut ReadBuf<'_>, waker: Waker) -> Polled<()> {
        let half = self.config_of(id, side.other()).receive_buffer / 2;
        let Some(end) = self.end(id, side) else { return failed(io::ErrorKind::NotConnected) };
        let count = end.inbox.len().min(buf.remaining());
        if count == 0 && buf.remaining() > 0 && end.error.is_none() && !end.is_at_end {
            return (Poll::Pending, end.reading.replace(waker));
        }
        if end.inbox.is_empty()
            && buf.remaining() > 0
            && let Some(error) = end.error
        {
            return failed(error);
        }
        buf.put_slice(&end.inbox.make_contiguous()[..count]);
        end.inbox.drain(..count);
        end.unannounced += count;
        if end.unannounced >= half.max(1) || end.inbox.is_empty() {
            let room = std::mem::take(&mut end.unannounced);
            let is_wanted = room > 0 && end.error.is_none() && !end.is_at_end;
            if is_wanted {
                self.transmit(id, side, Segment::Window(room));
            }
        }
        (Poll::Ready(Ok(())), None)
    }

    fn write(&mut self, id: StreamId, side: Side, data: &[u8], waker: Waker) -> Polled<usize> {
        let most = self.config_of(id, side).send_buffer.max(1);
        let Some(end) = self.end(id, side) else { return failed(io::ErrorKind::NotConnected) };
        if let Some(error) = end.error {
            return failed(error);
        }
        if end.fin != Fin::Open {
            return failed(io::ErrorKind::BrokenPipe);
        }
        let count = data.len().min(most.saturating_sub(end.outbox.len()));
        if count == 0 && !data.is_empty() {
            return (Poll::Pending, end.writing.replace(waker));
        }
        end.outbox.extend(&data[..count]);
        let old = self.pump(id, side);
        (Poll::Ready(Ok(count)), old)
    }

    fn shut_down(&mut self, id: StreamId, side: Side) -> io::Result<()> {
        let end = self.end(id, side).ok_or(io::ErrorKind::NotConnected)?;
        if end.error.is_some() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if end.fin == Fin::Open {
            end.fin = Fin::Wanted;
            drop(self.pump(id, side));
        }
        Ok(())
    }

    /// Closes an end, with a reset if `resets`. Returns wakers to be dropped without a lock.
    pub(super) fn close(&mut self, id: StreamId, side: Side, resets: bool) -> Vec<Waker> {
        let Some(end) = self.end(id, side) else { return Vec::new() };
        end.is_held = false;
        let mut wakers: Vec<Waker> = end.reading.take().into_iter().chain(end.writing.take()).collect();
        if end.error.is_none() {
            if !end.is_established {
                wakers.extend(self.forget(id));
                return wakers;
            }
            if resets || !end.inbox.is_empty() {
                wakers.extend(end.abandon());
                self.transmit(id, side, Segment::Reset);
            } else if end.fin == Fin::Open {
                end.fin = Fin::Wanted;
                wakers.extend(self.pump(id, side));
            }
        }
        self.remove_if_over(id);
        wakers
    }
}

fn failed<T>(error: io::ErrorKind) -> Polled<T> {
    (Poll::Ready(Err(error.into())), None)
}
