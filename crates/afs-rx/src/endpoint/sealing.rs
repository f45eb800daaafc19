//! Packets that are sealed without the endpoint: numbered and taken under its lock, sealed and sent by any thread.

use super::{Endpoint, Transmit};
use crate::Instant;
use crate::config::TRAIN_BYTES_MAX;
use crate::connection::Cipher;
use crate::packet::{HEADER_LEN, Header};
use crate::security::{Overhead, PacketContext, SecurityError};
use crate::slab::Key;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// DATA of one call that is to be sealed, and then sent. [`Sealing::next`] costs the time of the ciphers, and the endpoint is
/// not needed for it. Until [`Endpoint::end_sealing`] the call has no other packet to send, so that its packets leave in their order.
pub struct Sealing {
    pub(super) call: Key,
    pub(super) connection: Key,
    pub(super) to: SocketAddr,
    pub(super) cipher: Cipher,
    /// The class changes nothing in the data.
    pub(super) keeps_data: bool,
    pub(super) overhead: Overhead,
    /// Of any packet, but for its number.
    pub(super) context: PacketContext,
    pub(super) packets: VecDeque<Unsealed>,
    /// The latest one sealed, where it has to begin the next train.
    pub(super) sealed: Option<(Header, Bytes)>,
    pub(super) failure: Option<SecurityError>,
}

/// A packet whose checksum is not known yet.
pub(super) struct Unsealed {
    pub(super) header: Header,
    pub(super) data: Bytes,
}

impl Sealing {
    /// Bytes of data in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.iter().map(|packet| packet.data.len()).sum()
    }

    /// What it becomes at most, with headers.
    pub(super) fn len_max(&self) -> usize {
        self.len() + self.packets.len() * (HEADER_LEN + self.overhead.header + self.overhead.trailer)
    }

    /// True when all of it has been given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.sealed.is_none()
    }

    /// Seals what goes into one datagram or train, and writes it to `buf`. `None` at the end, which is also where the class
    /// refuses to seal.
    pub fn next(&mut self, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        let (mut packets, mut size) = (0, 0);
        while let Some((header, payload)) = self.seal_one() {
            let len = HEADER_LEN + payload.len();
            if packets > 0 && (len > size || buf.len() + len > TRAIN_BYTES_MAX) {
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
    /// The packets have left, or will not: the call may send again. A class that has refused to seal ends the connection.
    pub fn end_sealing(&mut self, now: Instant, sealing: Sealing) {
        if let Some(failure) = sealing.failure {
            let code = failure.abort_code();
            self.fail_connection(now, sealing.connection, code, false);
            self.push_connection_abort(now, sealing.connection, code);
        }
        self.end_turn(Turn(sealing.call));
    }

    /// What a call had to send has left: it may send again.
    pub fn end_turn(&mut self, turn: Turn) {
        if let Some(call) = self.calls.get_mut(turn.0) {
            call.leaving = false;
            self.touch(turn.0);
        }
    }
}

/// A call's turn to send: it has no other until [`Endpoint::end_turn`], so that its packets leave in their order.
#[derive(Debug)]
pub struct Turn(pub(super) Key);
