//! The application's data, in and out.

use super::{Endpoint, capacity};
use crate::Instant;
use crate::call::{Call, Next, Phase};
use crate::error::CallError;
use crate::event::Read;
use crate::ids::{CallId, Side};
use crate::slab::Key;
use bytes::Bytes;

/// A writer may be this many of the peer's windows ahead: docs/protocol/rx.md "7. Windows, RTT, ...".
const WINDOWS_AHEAD: usize = 2;
/// Even with a peer of a tiny window a writer may be this far ahead.
const SEND_BUFFER_MIN: usize = 64 << 10;

impl Endpoint {
    /// Takes as much of `data` as there is room for, and advances it past that. Answers the bytes taken;
    /// when some are left, `Event::Writable` follows.
    ///
    /// A server's first write ends the reading of the request. A client cannot write once it has read.
    /// When the server replies before the request is complete, the rest of the request goes nowhere.
    pub fn write(&mut self, now: Instant, call: CallId, data: &mut Bytes) -> Result<usize, CallError> {
        self.begin_write(call)?;
        let limit = self.send_limit(call.0);
        let call_state = self.calls.get_mut(call.0).ok_or(CallError::Unknown)?;
        let taken = call_state.send.write(data, limit);
        call_state.write_blocked = !data.is_empty();
        call_state.last_progress = now;
        self.touch(call.0);
        Ok(taken)
    }

    /// Sends what was written even where it does not fill a packet.
    pub fn flush(&mut self, _now: Instant, call: CallId) -> Result<(), CallError> {
        let state = self.live_call(call)?;
        state.send.flush();
        self.touch(call.0);
        Ok(())
    }

    /// Ends this side's stream. A stream that nothing was written to is one empty packet.
    pub fn finish_send(&mut self, now: Instant, call: CallId) -> Result<(), CallError> {
        self.begin_write(call)?;
        let state = self.live_call(call)?;
        state.send.finish();
        state.write_blocked = false;
        state.last_progress = now;
        self.touch(call.0);
        Ok(())
    }

    fn live_call(&mut self, call: CallId) -> Result<&mut Call, CallError> {
        let state = self.calls.get_mut(call.0).ok_or(CallError::Unknown)?;
        match state.error {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    /// Turns the call towards the peer, where that is allowed.
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

    /// Bytes that may wait on a call's sending side.
    pub(super) fn send_limit(&self, key: Key) -> usize {
        let Some(call) = self.calls.get(key) else { return 0 };
        let Some(connection) = self.connections.slab.get(call.connection) else { return 0 };
        let Some(peer) = self.peers.get(connection.peer) else { return 0 };
        let ahead = WINDOWS_AHEAD * call.send.window() as usize * capacity(connection, peer);
        ahead.max(SEND_BUFFER_MIN).min(self.config.send_buffer.max(1))
    }

    /// Reads at most `max` bytes, and no further than the end of one packet.
    ///
    /// A call that failed gives its error, whatever had arrived before.
    pub fn read(&mut self, now: Instant, call: CallId, max: usize) -> Result<Read, CallError> {
        loop {
            let state = self.live_call(call)?;
            if state.side == Side::Server && state.send.has_begun() {
                return Err(CallError::InvalidOperation);
            }
            match state.receive.take(max) {
                Next::Opened(data) => {
                    self.after_read(now, call.0, false);
                    return Ok(Read::Data(data));
                }
                Next::Sealed(seq, packet) => {
                    self.stats.buffered_bytes -= packet.cost();
                    let Some(mut data) = self.open_packet(now, call.0, seq, packet)? else { continue };
                    let rest = data.split_off(max.min(data.len()));
                    if let Some(state) = self.calls.get_mut(call.0) {
                        state.receive.keep(rest);
                    }
                    self.after_read(now, call.0, true);
                    if !data.is_empty() {
                        return Ok(Read::Data(data));
                    }
                }
                Next::Eof => {
                    self.after_read(now, call.0, false);
                    return Ok(Read::Eof);
                }
                Next::Nothing => {
                    if !std::mem::replace(&mut state.read_blocked, true) {
                        state.last_progress = now;
                    }
                    self.touch(call.0);
                    return Ok(Read::WouldBlock);
                }
            }
        }
    }

    /// What reading does to acks and, on a client, to the end of the call.
    fn after_read(&mut self, now: Instant, key: Key, consumed_packet: bool) {
        let Some(state) = self.calls.get_mut(key) else { return };
        if state.side == Side::Client && state.receive.is_read_to_end() {
            self.complete_call(now, key);
            return;
        }
        if consumed_packet {
            state.last_progress = now;
            if !state.receive.is_complete() {
                state.ack.consumed(now);
            }
            self.touch(key);
        }
    }
}
