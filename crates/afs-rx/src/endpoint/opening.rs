//! Packets that are opened without the endpoint: taken out under its lock, opened by any thread, given back.

use super::Endpoint;
use crate::Instant;
use crate::call::Received;
use crate::connection::{Cipher, NotOpened};
use crate::error::CallError;
use crate::ids::{CallId, Side};
use crate::security::PacketContext;
use crate::slab::Key;
use crate::stats::Drop;
use bytes::Bytes;

/// Packets of one call that are to be opened. The endpoint is not needed for that: [`Sealed::open`] costs the time of
/// the ciphers, and what it gives goes back with [`Endpoint::end_read`]. Until then the call gives no more of its data, and nothing
/// of this is acknowledged for good.
pub struct Sealed {
    call: CallId,
    cipher: Cipher,
    /// Of the first packet, but for its checksum.
    context: PacketContext,
    packets: Vec<Received>,
}

/// What opening gave.
pub struct Opened {
    call: CallId,
    /// Number of the first packet.
    first: u32,
    /// How many were taken out.
    taken: u32,
    /// Data of those that opened, in order.
    pieces: Vec<Bytes>,
    /// Memory that they were counted with.
    cost: usize,
    /// The first that did not open.
    failed: Option<Failed>,
}

/// A packet that did not open, and those after it, which nobody has tried.
struct Failed {
    why: NotOpened,
    cost: usize,
    untried: Vec<Received>,
}

/// Packets taken out at once, at most: what they hold cannot be acknowledged meanwhile.
pub(super) const OPENED_AT_ONCE: usize = 64;
/// Bytes taken out at once, but for the last packet.
const BYTES_MAX: usize = 128 << 10;
/// Packets of one call that may fail to open before the call does.
const REJECTED_MAX: u32 = 16;

impl Sealed {
    /// Opens the packets in their order, up to the first that does not open.
    #[must_use]
    pub fn open(self) -> Opened {
        let (first, taken) = (self.context.seq, self.packets.len() as u32);
        let mut opened = Opened { call: self.call, first, taken, pieces: Vec::new(), cost: 0, failed: None };
        let mut packets = self.packets.into_iter();
        for (seq, packet) in (first..).zip(packets.by_ref()) {
            let cost = packet.cost();
            let context = PacketContext { seq, checksum: packet.checksum, ..self.context };
            match self.cipher.open(&context, packet.payload) {
                Ok(data) => {
                    opened.pieces.push(data);
                    opened.cost += cost;
                }
                Err(why) => {
                    opened.failed = Some(Failed { why, cost, untried: packets.collect() });
                    break;
                }
            }
        }
        opened
    }
}

impl Endpoint {
    /// Takes packets out of a call: about `max` bytes of them, one at least.
    pub(super) fn take_sealed(
        &mut self,
        call: CallId,
        max: usize,
        packets: usize,
    ) -> Result<Sealed, CallError> {
        let state = self.calls.get_mut(call.0).ok_or(CallError::Unknown)?;
        let connection = self.connections.slab.get(state.connection).ok_or(CallError::Unknown)?;
        let (first, packets) = state.receive.take_sealed(max.min(BYTES_MAX), packets);
        let from_client = state.side == Side::Server;
        let context = connection.context(state.channel, state.number, first, from_client);
        Ok(Sealed { call, cipher: connection.security.cipher(), context, packets })
    }

    /// Takes back what [`Sealed::open`] gave, and answers its data: at most `max` bytes, the rest is read next. None, where the first
    /// packet did not open: it is dropped, since it need not be the peer's. A class that cannot go on ends the whole connection.
    ///
    /// A call that has failed meanwhile gives its error. Replays cannot return this way: the packets go where they were taken
    /// from, or nowhere.
    pub fn end_read(&mut self, now: Instant, opened: Opened, max: usize) -> Result<Vec<Bytes>, CallError> {
        let Opened { call, first, taken, mut pieces, cost, failed } = opened;
        let state = self.live_call(call)?;
        if !state.receive.is_out(first, taken) {
            return Err(CallError::InvalidOperation);
        }
        let count = pieces.len() as u32;
        state.receive.consume(count, cost);
        if count > 0 {
            state.mend_by = Instant::FAR_FUTURE;
        }
        state.receive.keep(cut(&mut pieces, max));
        self.stats.buffered_bytes -= cost;
        if let Some(failed) = failed {
            self.take_back_failed(now, call.0, failed)?;
        }
        self.after_read(now, call.0, count);
        Ok(pieces)
    }

    fn take_back_failed(&mut self, now: Instant, key: Key, failed: Failed) -> Result<(), CallError> {
        match failed.why.ended {
            Some(end) => {
                let connection = self.calls.get(key).ok_or(CallError::Unknown)?.connection;
                let code = end.abort_code();
                self.fail_connection(now, connection, code, false);
                self.push_connection_abort(now, connection, code);
                Err(CallError::ConnectionFailed(code))
            }
            None => self.reject_packet(now, key, failed),
        }
    }

    /// Drops a packet that did not open, and tells the peer that it is missing. The call fails when that cannot help:
    /// the peer has let go of the packet, or sends what does not open again and again.
    fn reject_packet(&mut self, now: Instant, key: Key, failed: Failed) -> Result<(), CallError> {
        self.stats.drop_packet(Drop::NotOpened);
        let call = self.calls.get_mut(key).ok_or(CallError::Unknown)?;
        call.rejected += 1;
        if call.rejected > REJECTED_MAX || !call.receive.may_reject() {
            let (connection, channel, number) = (call.connection, call.channel, call.number);
            let code = failed.why.failure.abort_code();
            self.push_abort(now, connection, channel, number, code);
            self.fail_call(now, key, CallError::LocalAbort(code), Some(code));
            return Err(CallError::LocalAbort(code));
        }
        call.receive.reject(failed.cost, failed.untried);
        call.request_done_told = false;
        call.mend_by = call.mend_by.min(now + call.limits.mend());
        call.ack.demand(crate::packet::reason::OUT_OF_SEQUENCE, 0);
        self.stats.buffered_bytes -= failed.cost;
        self.touch(key);
        Ok(())
    }
}

/// Leaves the first `max` bytes, without empty pieces; answers the rest of the last piece. All but the last fit.
fn cut(pieces: &mut Vec<Bytes>, max: usize) -> Bytes {
    pieces.retain(|piece| !piece.is_empty());
    let Some((last, before)) = pieces.split_last_mut() else { return Bytes::new() };
    let room = max.saturating_sub(before.iter().map(Bytes::len).sum());
    last.split_off(room.min(last.len()))
}
