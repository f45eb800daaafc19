//! What tasks do to a call: each takes the lock once and shortly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use afs_rx::{CallError as RxError, CallId, Endpoint, Instant, Read};
use bytes::{Bytes, BytesMut};

use super::pools::{Channels, PoolKey};
use super::state::State;
use super::{Claimant, Rx};
use crate::client::Security;
use crate::error::CallError;

/// What one look at the incoming stream gave.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) first: Bytes,
    pub(super) more: Vec<Bytes>,
    /// The stream ends after these.
    pub(super) end: bool,
}

/// What follows a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    /// More writing.
    More,
    /// The end of this direction, after which nobody is interested in the call, and its place in the limits is free.
    Leave(Option<Claimant>),
}

impl Batch {
    /// All of it in one piece; copies only if it came in several.
    pub(super) fn joined(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        let len = self.first.len() + self.more.iter().map(Bytes::len).sum::<usize>();
        let mut out = BytesMut::with_capacity(len);
        out.extend_from_slice(&self.first);
        self.more.iter().for_each(|piece| out.extend_from_slice(piece));
        out.freeze()
    }

    /// All of it as it came.
    pub(super) fn pieces(mut self) -> Vec<Bytes> {
        if !self.first.is_empty() {
            self.more.insert(0, self.first);
        }
        self.more
    }

    fn push(&mut self, data: Bytes) {
        if self.first.is_empty() {
            self.first = data;
        } else {
            self.more.push(data);
        }
    }
}

impl State {
    /// Takes up to `max` bytes that are there. Fails only if nothing could be read.
    fn read(&mut self, now: Instant, call: CallId, max: usize) -> Result<Batch, RxError> {
        if self.closed {
            return Err(RxError::Unknown);
        }
        let mut batch = Batch::default();
        let mut room = max;
        while room > 0 {
            match self.endpoint.read(now, call, room) {
                Ok(Read::Data(data)) => {
                    room = room.saturating_sub(data.len());
                    batch.push(data);
                }
                Ok(Read::Eof) => {
                    batch.end = true;
                    break;
                }
                Ok(Read::WouldBlock) => break,
                // The error stays; it is met again at the next read, after what came before it.
                Err(_) if !batch.first.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(batch)
    }

    fn follow(&mut self, now: Instant, call: CallId, then: Then) -> Result<(), RxError> {
        if let Then::Leave(place) = then {
            self.endpoint.finish_send(now, call)?;
            self.release(now, call);
            self.vacate(call, place);
        }
        Ok(())
    }
}

impl Rx {
    /// What callers of this pool wait on.
    pub(crate) fn channels(&self, key: &PoolKey) -> Arc<Channels> {
        self.with(|state, now| state.pools.channels(now, key))
    }

    /// Begins a call with as much of `head` as there is room for; ends the request if it is `whole` and all of it fits.
    /// `None` while every channel is busy.
    pub(crate) fn open(
        &self,
        channels: &Channels,
        peer: SocketAddr,
        security: &Security,
        hard: Option<Duration>,
        head: &mut Bytes,
        whole: bool,
    ) -> Result<Option<CallId>, CallError> {
        self.with(|state, now| {
            if state.closed {
                return Err(CallError::Closed);
            }
            let Some(call) = state.pools.open(now, channels, security, &mut state.endpoint) else {
                return Ok(None);
            };
            if let Some(hard) = hard {
                state.endpoint.set_deadline(call, now + hard);
            }
            let begun = begin(&mut state.endpoint, now, call, head, whole);
            if let Err(error) = begun {
                state.endpoint.release(now, call);
                return Err(CallError::from_rx(error, peer));
            }
            Ok(Some(call))
        })
    }

    /// At least one byte, or the end. With `leave_at_end`, a call read to its end is given back in the same step.
    pub(super) fn poll_read(
        &self,
        call: CallId,
        max: usize,
        leave_at_end: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Batch, RxError>> {
        self.with(|state, now| {
            let batch = state.read(now, call, max)?;
            if batch.first.is_empty() && !batch.end {
                state.wait_to_read(call, cx.waker());
                return Poll::Pending;
            }
            if batch.end && leave_at_end {
                state.release(now, call);
            }
            Poll::Ready(Ok(batch))
        })
    }

    /// Ready when all of `data` has been taken, and what comes `then` has been done in the same step.
    pub(super) fn poll_write(
        &self,
        call: CallId,
        data: &mut Bytes,
        then: Then,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), RxError>> {
        self.with(|state, now| {
            if state.closed {
                return Poll::Ready(Err(RxError::Unknown));
            }
            if !data.is_empty() {
                state.endpoint.write(now, call, data)?;
            }
            if !data.is_empty() {
                state.wait_to_write(call, cx.waker());
                return Poll::Pending;
            }
            Poll::Ready(state.follow(now, call, then))
        })
    }

    pub(super) fn flush(&self, call: CallId) -> Result<(), RxError> {
        self.with(|state, now| state.endpoint.flush(now, call))
    }

    pub(super) fn finish_send(&self, call: CallId) -> Result<(), RxError> {
        self.with(|state, now| state.endpoint.finish_send(now, call))
    }

    pub(super) fn abort(&self, call: CallId, code: i32) {
        self.with(|state, now| state.endpoint.abort(now, call, code));
    }

    /// Gives the call back, and its place in the limits if it has one.
    pub(super) fn release(&self, call: CallId, place: Option<Claimant>) {
        self.with(|state, now| {
            state.release(now, call);
            state.vacate(call, place);
        });
    }
}

fn begin(
    endpoint: &mut Endpoint,
    now: Instant,
    call: CallId,
    head: &mut Bytes,
    whole: bool,
) -> Result<(), RxError> {
    if !head.is_empty() {
        endpoint.write(now, call, head)?;
    }
    if whole && head.is_empty() { endpoint.finish_send(now, call) } else { Ok(()) }
}
