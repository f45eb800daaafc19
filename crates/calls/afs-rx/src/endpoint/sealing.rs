//! Encryption of packets outside the endpoint's lock: numbered and taken under the lock, sealed and sent by any
//! thread.

use super::{Endpoint, Transmit};
use crate::Instant;
use crate::config::BATCH_BYTES_MAX;
use crate::connection::Cipher;
use crate::packet::{HEADER_LEN, Header};
use crate::security::{Overhead, PacketContext, SecurityError};
use crate::slab::Key;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// DATA of one call to be sealed and sent. [`Sealing::next`] needs no endpoint and costs the time of the ciphers.
/// Until [`Endpoint::end_sealing`] the call sends nothing else, so that its packets are sent in order.
pub struct Sealing {
    pub(super) call: Key,
    pub(super) connection: Key,
    pub(super) to: SocketAddr,
    pub(super) cipher: Cipher,
    /// The class leaves the data unchanged.
    pub(super) keeps_data: bool,
    pub(super) overhead: Overhead,
    /// Context of all packets, without their number.
    pub(super) context: PacketContext,
    pub(super) packets: VecDeque<Unsealed>,
    /// The latest sealed packet, where it begins the next batch.
    pub(super) sealed: Option<(Header, Bytes)>,
    pub(super) failure: Option<SecurityError>,
}

/// A packet whose checksum is not known yet.
pub(super) struct Unsealed {
    pub(super) header: Header,
    pub(super) data: Bytes,
}

impl Sealing {
    /// Bytes of data in all packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.iter().map(|packet| packet.data.len()).sum()
    }

    /// Largest size after sealing, with headers.
    pub(super) fn len_max(&self) -> usize {
        self.len() + self.packets.len() * (HEADER_LEN + self.overhead.header + self.overhead.trailer)
    }

    /// True when all packets have been returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.sealed.is_none()
    }

    /// Seals the packets of one datagram or batch, and writes them to `buf`. `None` at the end, also when the class
    /// fails to seal.
    pub fn next(&mut self, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        let (mut packets, mut size) = (0, 0);
        while let Some((header, payload)) = self.seal_one() {
            let len = HEADER_LEN + payload.len();
            if packets > 0 && (len > size || buf.len() + len > BATCH_BYTES_MAX) {
                self.sealed = Some((header, payload));
                break;
            }
            buf.extend_from_slice(&header.to_bytes());
            buf.extend_from_slice(&payload);
            packets += 1;
            size = size.max(len);
            if len < size {
                break;
            }
        }
        let segment_size = (packets > 1).then_some(size);
        (packets > 0).then_some(Transmit { to: self.to, len: buf.len(), segment_size })
    }

    fn seal_one(&mut self) -> Option<(Header, Bytes)> {
        if let Some(sealed) = self.sealed.take() {
            return Some(sealed);
        }
        let Unsealed { mut header, data } = self.packets.pop_front()?;
        match self.seal(header.seq, data) {
            Ok((checksum, payload)) => {
                header.checksum = checksum;
                Some((header, payload))
            }
            Err(failure) => {
                self.failure = Some(failure);
                self.packets.clear();
                None
            }
        }
    }

    fn seal(&self, seq: u32, data: Bytes) -> Result<(u16, Bytes), SecurityError> {
        let context = PacketContext { seq, ..self.context };
        if self.keeps_data {
            return Ok((self.cipher.seal(&context, &mut Vec::new())?, data));
        }
        let mut payload = Vec::with_capacity(self.overhead.header + data.len() + self.overhead.trailer);
        payload.resize(self.overhead.header, 0);
        payload.extend_from_slice(&data);
        let checksum = self.cipher.seal(&context, &mut payload)?;
        Ok((checksum, payload.into()))
    }
}

impl Endpoint {
    /// The packets were sent, or are dropped: the call may send again. A class that failed to seal ends the
    /// connection.
    pub fn end_sealing(&mut self, now: Instant, sealing: Sealing) {
        if let Some(failure) = sealing.failure {
            let code = failure.abort_code();
            self.fail_connection(now, sealing.connection, code, false);
            self.push_connection_abort(now, sealing.connection, code);
        }
        self.end_turn(Turn(sealing.call));
    }

    /// The packets of a call's turn were sent: the call may send again.
    pub fn end_turn(&mut self, turn: Turn) {
        if let Some(call) = self.calls.get_mut(turn.0) {
            call.in_turn = false;
            self.reschedule(turn.0);
        }
    }
}

/// A call's turn to send: it has no other until [`Endpoint::end_turn`], so that its packets are sent in order.
#[derive(Debug)]
pub struct Turn(pub(super) Key);
