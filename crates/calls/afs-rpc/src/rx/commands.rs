//! Commands of tasks on a call; each holds the lock once and briefly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use afs_rx::{CallError as RxError, CallId, Endpoint, Instant, Opened, Read, ReadStart, Sealed};
use bytes::{Bytes, BytesMut};

use super::pools::{Channels, PoolKey};
use super::state::State;
use super::{Claimant, Rx};
use crate::client::{CallLimits, Security};
use crate::error::CallError;

/// Data read under one hold of the lock.
#[derive(Default)]
pub(super) struct ReadData {
    pub(super) first: Bytes,
    pub(super) more: Vec<Bytes>,
    /// Bytes in all pieces.
    len: usize,
    /// The stream ends after these pieces.
    pub(super) end: bool,
}

/// What follows a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AfterWrite {
    /// More writes.
    More,
    /// The end of this direction and of the call's use: it is released, with its place in the limits.
    Leave(Option<Claimant>),
}

impl ReadData {
    /// All data in one piece; copied only if there are several.
    pub(super) fn joined(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        let mut out = BytesMut::with_capacity(self.len);
        out.extend_from_slice(&self.first);
        self.more.iter().for_each(|piece| out.extend_from_slice(piece));
        out.freeze()
    }

    /// The pieces as they arrived.
    pub(super) fn pieces(mut self) -> Vec<Bytes> {
        if !self.first.is_empty() {
            self.more.insert(0, self.first);
        }
        self.more
    }

    fn push(&mut self, data: Bytes) {
        self.len += data.len();
        if self.first.is_empty() {
            self.first = data;
        } else {
            self.more.push(data);
        }
    }
}

/// One read of a task, of at most `max` bytes.
pub(super) struct Reading {
    pub(super) call: CallId,
    pub(super) max: usize,
    /// A call read to its end is released in the same step.
    pub(super) leave_at_end: bool,
}

/// Progress of a read under one hold of the lock.
enum Progress {
    Over(Result<ReadData, RxError>),
    /// These packets must be opened, without the lock; the data before them is in the data.
    Open(Sealed, ReadData),
    Nothing,
}

impl State {
    /// Takes up to `max` bytes that are ready. Fails only if nothing could be read.
    fn read(
        &mut self,
        now: Instant,
        reading: &Reading,
        mut data: ReadData,
        opened: Option<Opened>,
    ) -> Progress {
        if self.closed {
            return Progress::Over(Err(RxError::Unknown));
        }
        match self.read_ready(now, reading, &mut data, opened) {
            Ok(Some(sealed)) => Progress::Open(sealed, data),
            // The error persists; the next read returns it, after the data before it.
            Err(error) if data.first.is_empty() => Progress::Over(Err(error)),
            _ if data.first.is_empty() && !data.end => Progress::Nothing,
            _ => {
                if data.end && reading.leave_at_end {
                    self.release(now, reading.call);
                }
                Progress::Over(Ok(data))
            }
        }
    }

    /// Adds ready data to the data; returns packets that must be opened first.
    fn read_ready(
        &mut self,
        now: Instant,
        reading: &Reading,
        data: &mut ReadData,
        opened: Option<Opened>,
    ) -> Result<Option<Sealed>, RxError> {
        if let Some(opened) = opened {
            let room = reading.max.saturating_sub(data.len);
            self.endpoint.end_read(now, opened, room)?.into_iter().for_each(|piece| data.push(piece));
        }
        while data.len < reading.max {
            match self.endpoint.begin_read(now, reading.call, reading.max - data.len)? {
                ReadStart::Read(Read::Data(piece)) => data.push(piece),
                ReadStart::Read(Read::Eof) => {
                    data.end = true;
                    break;
                }
                ReadStart::Read(Read::WouldBlock) => break,
                ReadStart::Sealed(sealed) => return Ok(Some(sealed)),
            }
        }
        Ok(None)
    }

    fn after_write(&mut self, now: Instant, call: CallId, then: AfterWrite) -> Result<(), RxError> {
        if let AfterWrite::Leave(place) = then {
            self.endpoint.finish_send(now, call)?;
            self.release(now, call);
            self.free_place(call, place);
        }
        Ok(())
    }
}

impl Rx {
    /// The channels of a pool, on which its callers wait.
    pub(crate) fn channels(&self, key: &PoolKey) -> Arc<Channels> {
        self.with(|state, now| state.pools.channels(now, key))
    }

    /// Begins a call with as much of `head` as there is room for; ends the request if it is `whole` and all of it
    /// fits. `None` while every channel is busy.
    pub(crate) fn open(
        &self,
        channels: &Channels,
        peer: SocketAddr,
        security: &Security,
        limits: CallLimits,
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
            if let Some(hard) = limits.hard {
                state.endpoint.set_deadline(call, now + hard);
            }
            if let Some(repeat) = limits.repeat {
                state.endpoint.set_repeat_limit(call, now + repeat);
            }
            let begun = begin(&mut state.endpoint, now, call, head, whole);
            if let Err(error) = begun {
                state.endpoint.release(now, call);
                return Err(CallError::from_rx(error, peer));
            }
            Ok(Some(call))
        })
    }

    /// At least one byte, or the end. The ciphers run without the lock.
    pub(super) fn poll_read(
        &self,
        reading: &Reading,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ReadData, RxError>> {
        let (mut data, mut opened) = (ReadData::default(), None);
        loop {
            let progress = self.with(|state, now| {
                let progress = state.read(now, reading, data, opened);
                if matches!(progress, Progress::Nothing) {
                    state.wait_to_read(reading.call, cx.waker());
                }
                progress
            });
            match progress {
                Progress::Over(result) => return Poll::Ready(result),
                Progress::Nothing => return Poll::Pending,
                Progress::Open(sealed, before) => (data, opened) = (before, Some(sealed.open())),
            }
        }
    }

    /// Ready when all of `data` has been taken, and `then` has been done in the same step.
    pub(super) fn poll_write(
        &self,
        call: CallId,
        data: &mut Bytes,
        then: AfterWrite,
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
            Poll::Ready(state.after_write(now, call, then))
        })
    }

    /// Ready with its error when the call is over.
    pub(super) fn poll_ended(&self, call: CallId, cx: &mut Context<'_>) -> Poll<RxError> {
        self.with(|state, now| {
            if state.closed {
                return Poll::Ready(RxError::Unknown);
            }
            let Err(error) = state.endpoint.flush(now, call) else {
                state.wait_to_write(call, cx.waker());
                return Poll::Pending;
            };
            Poll::Ready(error)
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

    /// Releases the call, and its place in the limits if it has one.
    pub(super) fn release(&self, call: CallId, place: Option<Claimant>) {
        self.with(|state, now| {
            state.release(now, call);
            state.free_place(call, place);
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
