//! Decryption of received packets outside the endpoint's lock: taken out under the lock, opened by any thread, put
//! back.

use super::Endpoint;
use crate::Instant;
use crate::call::Received;
use crate::connection::{Cipher, NotOpened};
use crate::error::CallError;
use crate::ids::{CallId, Side};
use crate::security::PacketContext;
use crate::slab::Key;
use crate::stats::DropReason;
use bytes::Bytes;

/// Packets of one call to be opened. [`Sealed::open`] needs no endpoint and costs the time of the ciphers; its result
/// is returned with [`Endpoint::end_read`]. Until then the call gives no more of its data, and none of these packets
/// is hard-acked.
pub struct Sealed {
    call: CallId,
    cipher: Cipher,
    /// Context of the first packet, without its checksum.
    context: PacketContext,
    packets: Vec<Received>,
}

/// Result of opening.
pub struct Opened {
    call: CallId,
    /// Number of the first packet.
    first: u32,
    /// Number of packets taken out.
    taken: u32,
    /// Data of the opened packets, in order.
    pieces: Vec<Bytes>,
    /// Memory that they are counted with.
    cost: usize,
    /// The first packet that failed to open.
    failed: Option<Failed>,
}

/// A packet that failed to open, and those after it, which were not tried.
struct Failed {
    why: NotOpened,
    cost: usize,
    untried: Vec<Received>,
}

/// Most packets taken out at once: they cannot be hard-acked meanwhile.
pub(super) const OPENED_AT_ONCE: usize = 64;
/// Most bytes taken out at once, rounded up to a whole packet.
const BYTES_MAX: usize = 128 << 10;
/// Packets of one call that may fail to open before the call fails.
const REJECTED_MAX: u32 = 16;

impl Sealed {
    /// Opens the packets in order, up to the first that fails to open.
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
    /// Takes packets out of a call: about `max` bytes of them, at least one packet.
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

    /// Takes the result of [`Sealed::open`], and returns its data: at most `max` bytes, the rest is read next. None
    /// where the first packet failed to open: it is dropped, since it may not be the peer's. A class that cannot
    /// continue ends the whole connection.
    ///
    /// A call that has failed meanwhile returns its error. Replays cannot be introduced here: the packets go back to
    /// where they were taken from, or are dropped.
    pub fn end_read(&mut self, now: Instant, opened: Opened, max: usize) -> Result<Vec<Bytes>, CallError> {
        let Opened { call, first, taken, mut pieces, cost, failed } = opened;
        let state = self.live_call(call)?;
        if !state.receive.is_out(first, taken) {
            return Err(CallError::InvalidOperation);
        }
        let count = pieces.len() as u32;
        state.receive.consume(count, cost);
        if count > 0 {
            state.retransmission_by = Instant::FAR_FUTURE;
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

    /// Drops a packet that failed to open, and reports it missing to the peer. The call fails when that cannot help:
    /// the peer has dropped the packet after a hard ack, or repeatedly sends packets that fail to open.
    fn reject_packet(&mut self, now: Instant, key: Key, failed: Failed) -> Result<(), CallError> {
        self.stats.drop_packet(DropReason::NotOpened);
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
        call.retransmission_by = call.retransmission_by.min(now + call.limits.retransmission_max());
        call.ack.demand(crate::packet::reason::OUT_OF_SEQUENCE, 0);
        self.stats.buffered_bytes -= failed.cost;
        self.reschedule(key);
        Ok(())
    }
}

/// Keeps the first `max` bytes, without empty pieces; returns the rest of the last piece. All but the last fit.
fn cut(pieces: &mut Vec<Bytes>, max: usize) -> Bytes {
    pieces.retain(|piece| !piece.is_empty());
    let Some((last, before)) = pieces.split_last_mut() else { return Bytes::new() };
    let room = max.saturating_sub(before.iter().map(Bytes::len).sum());
    last.split_off(room.min(last.len()))
}
