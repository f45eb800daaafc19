//! Commands that move the application's data: write, flush, read, and the reading of sealed packets.

use super::opening::{OPENED_AT_ONCE, Sealed};
use super::{Endpoint, capacity};
use crate::Instant;
use crate::call::{Call, Phase};
use crate::error::CallError;
use crate::event::Read;
use crate::ids::{CallId, Side};
use crate::slab::Key;
use bytes::Bytes;

/// A writer may be this many of the peer's windows ahead: docs/protocol/rx.md "7. Windows, RTT, ...".
const WINDOWS_AHEAD: usize = 2;
/// Smallest send limit, whatever the peer's window.
const SEND_BUFFER_MIN: usize = 64 << 10;

/// First result of a read.
pub enum ReadStart {
    /// The read is complete: no packet had to be opened.
    Read(Read),
    /// These packets must be opened first.
    Sealed(Sealed),
}

impl Endpoint {
    /// Takes as much of `data` as there is room for, and advances it past that. Returns the bytes taken; when some
    /// are left, `Event::Writable` follows.
    ///
    /// A server's first write ends the reading of the request. A client cannot write once it has read. When the
    /// server replies before the request is complete, the rest of the request is discarded.
    pub fn write(&mut self, now: Instant, call: CallId, data: &mut Bytes) -> Result<usize, CallError> {
        self.begin_write(call)?;
        let limit = self.send_limit(call.0);
        let call_state = self.calls.get_mut(call.0).ok_or(CallError::Unknown)?;
        let taken = call_state.send.write(data, limit);
        call_state.write_blocked = !data.is_empty();
        call_state.last_progress = now;
        self.reschedule(call.0);
        Ok(taken)
    }

    /// Sends what was written even where it does not fill a packet.
    pub fn flush(&mut self, _now: Instant, call: CallId) -> Result<(), CallError> {
        let state = self.live_call(call)?;
        state.send.flush();
        self.reschedule(call.0);
        Ok(())
    }

    /// Ends this side's stream. A stream without data is one empty packet.
    pub fn finish_send(&mut self, now: Instant, call: CallId) -> Result<(), CallError> {
        self.begin_write(call)?;
        let state = self.live_call(call)?;
        state.send.finish();
        state.write_blocked = false;
        state.last_progress = now;
        self.reschedule(call.0);
        Ok(())
    }

    pub(super) fn live_call(&mut self, call: CallId) -> Result<&mut Call, CallError> {
        let state = self.calls.get_mut(call.0).ok_or(CallError::Unknown)?;
        match state.error {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    /// Changes the call's direction to sending, where that is permitted.
    fn begin_write(&mut self, call: CallId) -> Result<(), CallError> {
        let state = self.live_call(call)?;
        let reading = state.side == Side::Client && state.receive.is_being_read();
        if state.phase != Phase::Active || state.send.is_finished() || reading {
            return Err(CallError::InvalidOperation);
        }
        if state.side == Side::Server && !state.send.has_begun() {
            let dropped = state.receive.close();
            self.stats.buffered_bytes -= dropped;
        }
        Ok(())
    }

    /// Bytes that may be queued on a call's sending side.
    pub(super) fn send_limit(&self, key: Key) -> usize {
        let Some(call) = self.calls.get(key) else { return 0 };
        let Some(connection) = self.connections.slab.get(call.connection) else { return 0 };
        let Some(peer) = self.peers.get(connection.peer) else { return 0 };
        let ahead = WINDOWS_AHEAD * call.send.window() as usize * capacity(connection, peer);
        ahead.max(SEND_BUFFER_MIN).min(self.config.send_buffer.max(1))
    }

    /// Reads at most `max` bytes, and no further than the end of one packet.
    ///
    /// A call that failed returns its error, whatever had arrived before. The ciphers run here:
    /// [`Endpoint::begin_read`] is for callers who share the endpoint.
    pub fn read(&mut self, now: Instant, call: CallId, max: usize) -> Result<Read, CallError> {
        loop {
            match self.start_read(now, call, (max, 1))? {
                ReadStart::Read(read) => return Ok(read),
                ReadStart::Sealed(sealed) => {
                    if let Some(data) = self.end_read(now, sealed.open(), max)?.pop() {
                        return Ok(Read::Data(data));
                    }
                }
            }
        }
    }

    /// As [`Endpoint::read`], but packets that must be opened are handed out for that, several at once. The result of
    /// opening is returned with [`Endpoint::end_read`], before the next read.
    pub fn begin_read(&mut self, now: Instant, call: CallId, max: usize) -> Result<ReadStart, CallError> {
        self.start_read(now, call, (max, OPENED_AT_ONCE))
    }

    /// Reads at most `bytes`, or takes as many packets to be opened.
    fn start_read(
        &mut self,
        now: Instant,
        call: CallId,
        (max, packets): (usize, usize),
    ) -> Result<ReadStart, CallError> {
        let protected = self.is_protected(call);
        let state = self.live_call(call)?;
        if state.side == Side::Server && state.send.has_begun() {
            return Err(CallError::InvalidOperation);
        }
        let opened = state.receive.take_opened(max);
        if opened.is_none() && protected && state.receive.has_ready() {
            return self.take_sealed(call, max, packets).map(ReadStart::Sealed);
        }
        let data = match opened {
            Some(data) => {
                self.after_read(now, call.0, 0);
                Some(data)
            }
            None => self.read_plain(now, call, max),
        };
        Ok(ReadStart::Read(data.map_or_else(|| self.nothing_to_read(now, call.0), Read::Data)))
    }

    fn is_protected(&self, call: CallId) -> bool {
        let connection = self.calls.get(call.0).and_then(|call| self.connections.slab.get(call.connection));
        connection.is_some_and(|connection| connection.security.protects())
    }

    /// The next bytes of a class that does not encrypt.
    fn read_plain(&mut self, now: Instant, call: CallId, max: usize) -> Option<Bytes> {
        loop {
            let state = self.calls.get_mut(call.0).filter(|call| call.receive.has_ready())?;
            let packet = state.receive.take_plain()?;
            self.stats.buffered_bytes -= packet.cost();
            let mut data = packet.payload;
            state.receive.keep(data.split_off(max.min(data.len())));
            self.after_read(now, call.0, 1);
            if !data.is_empty() {
                return Some(data);
            }
        }
    }

    /// Returns the end of the stream, or `WouldBlock`.
    fn nothing_to_read(&mut self, now: Instant, key: Key) -> Read {
        let Some(state) = self.calls.get_mut(key) else { return Read::WouldBlock };
        if state.receive.is_read_to_end() {
            self.after_read(now, key, 0);
            return Read::Eof;
        }
        if !std::mem::replace(&mut state.read_blocked, true) {
            state.last_progress = now;
        }
        self.reschedule(key);
        Read::WouldBlock
    }

    /// Updates acks after packets were read and, on a client, completes the call.
    pub(super) fn after_read(&mut self, now: Instant, key: Key, packets: u32) {
        let Some(state) = self.calls.get_mut(key) else { return };
        if state.side == Side::Client && state.receive.is_read_to_end() {
            self.complete_call(now, key);
            return;
        }
        if packets > 0 {
            state.last_progress = now;
            if !state.receive.is_complete() {
                state.ack.consumed(now, packets);
            }
            self.reschedule(key);
        }
    }
}
