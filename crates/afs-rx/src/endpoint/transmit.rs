//! What leaves: one datagram or one train of DATA at a time.

use super::{Endpoint, Transmit, capacity};
use crate::Instant;
use crate::call::{Call, Outgoing, Phase, Pick, SEQ_MAX};
use crate::config::{Config, TRAIN_BYTES_MAX};
use crate::connection::Connection;
use crate::error::code;
use crate::ids::Side;
use crate::packet::{Ack, AckTrailer, HEADER_LEN, Header, PacketType, flags, reason};
use crate::peer::Peer;
use crate::security::SecurityError;
use crate::slab::Key;
use crate::stats::Stats;
use bytes::Bytes;

/// One call's surroundings, borrowed together.
struct Sender<'a> {
    call: &'a mut Call,
    connection: &'a mut Connection,
    peer: &'a mut Peer,
    stats: &'a mut Stats,
    config: &'a Config,
    now: Instant,
}

/// What a call's turn brought.
enum Turn {
    /// `buf` holds a datagram.
    Single,
    /// `buf` holds a train of so many packets of this size.
    Train(usize, usize),
    Nothing,
    /// Sealing failed; the connection is to be aborted.
    Failed(i32),
}

impl Endpoint {
    /// The next datagram or train to send. `buf` is overwritten. Calls take turns, a train each.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        loop {
            if let Some((to, packet)) = self.control.pop() {
                buf.extend_from_slice(&packet);
                return Some(Transmit { to, len: buf.len(), segment_size: None });
            }
            let key = *self.sending.front()?;
            if let Some(transmit) = self.give_turn(now, key, buf) {
                return Some(transmit);
            }
        }
    }

    fn give_turn(&mut self, now: Instant, key: Key, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.sending.pop_front();
        let mut sender = self.sender(now, key)?;
        sender.call.queued = false;
        if sender.call.phase == Phase::Over {
            return None;
        }
        let turn = sender.turn(buf);
        let (to, connection) = (sender.connection.to, sender.connection.id.0);
        let segment_size = match turn {
            Turn::Single => None,
            Turn::Train(packets, size) => (packets > 1).then_some(size),
            Turn::Nothing => return None,
            Turn::Failed(code) => {
                self.fail_connection(now, connection, code, false);
                self.push_connection_abort(now, connection, code);
                return None;
            }
        };
        // Back in line if there is more, and the timers that sending set are armed.
        self.touch(key);
        self.tell_writer(key);
        // What is not sent is lost on the way, as far as the call knows.
        if !self.may_send(connection, buf.len()) {
            buf.clear();
            return None;
        }
        Some(Transmit { to, len: buf.len(), segment_size })
    }

    fn sender(&mut self, now: Instant, key: Key) -> Option<Sender<'_>> {
        let call = self.calls.get_mut(key)?;
        let connection = self.connections.slab.get_mut(call.connection)?;
        let peer = self.peers.get_mut(connection.peer)?;
        Some(Sender { call, connection, peer, stats: &mut self.stats, config: &self.config, now })
    }
}

impl Sender<'_> {
    fn turn(&mut self, buf: &mut Vec<u8>) -> Turn {
        if self.call.phase == Phase::Waiting && self.call.ping {
            // It acknowledges as well, and an address that is not proven may not be sent both.
            let _ = self.call.ack.take();
            self.call.ping = false;
            self.stats.pings_sent += 1;
            self.write_ack(reason::PING, 0, buf);
            return Turn::Single;
        }
        if let Some((kind, serial)) = self.call.ack.take() {
            self.write_ack(kind, serial, buf);
            return Turn::Single;
        }
        if std::mem::take(&mut self.call.ping) {
            self.stats.pings_sent += 1;
            self.write_ack(reason::PING, 0, buf);
            return Turn::Single;
        }
        if !self.call.send.was_sent() && self.call.side == Side::Client {
            // From here on the peer's silence counts.
            self.call.last_heard = self.now;
        }
        match self.write_train(buf) {
            Ok((0, _)) => Turn::Nothing,
            Ok((packets, size)) => {
                self.after_data(packets);
                Turn::Train(packets, size)
            }
            Err(failure) if failure.code == 0 => Turn::Failed(code::PROTOCOL_ERROR),
            Err(failure) => Turn::Failed(failure.code),
        }
    }

    /// Appends DATA packets of one size, as many as may go; only the last may be shorter. Answers how many,
    /// and the size.
    fn write_train(&mut self, buf: &mut Vec<u8>) -> Result<(usize, usize), SecurityError> {
        let capacity = capacity(self.connection, self.peer);
        let overhead = self.connection.overhead();
        let (mut packets, mut size) = (0, 0);
        // Data length of the last new packet: another with no more data is no longer when sealed.
        let mut new_len = None;
        while packets < self.config.train_packets {
            let pick = self.call.send.pick(capacity);
            let len_max = match pick {
                Pick::Nothing => break,
                Pick::Again(_, len) => HEADER_LEN + len,
                Pick::New(len) if new_len.is_some_and(|before| len <= before) => size,
                Pick::New(len) => HEADER_LEN + overhead.header + len + overhead.trailer,
            };
            if packets > 0 && (len_max > size || buf.len() + len_max > TRAIN_BYTES_MAX) {
                break;
            }
            let start = buf.len();
            match pick {
                Pick::Again(seq, _) => self.write_again(seq, buf),
                Pick::New(len) => {
                    new_len = Some(len);
                    self.write_new(len, buf)?;
                }
                Pick::Nothing => break,
            }
            packets += 1;
            let written = buf.len() - start;
            if packets == 1 {
                size = written;
            }
            if written < size {
                break;
            }
        }
        Ok((packets, size))
    }

    fn write_again(&mut self, seq: u32, buf: &mut Vec<u8>) {
        let serial = self.connection.take_serial();
        let frame = self.data_header(serial);
        if let Some(outgoing) = self.call.send.send_again(self.now, serial, seq) {
            self.stats.data_resent += 1;
            self.peer.resent += 1;
            write_data(frame, &outgoing, buf);
        }
    }

    fn write_new(&mut self, len: usize, buf: &mut Vec<u8>) -> Result<(), SecurityError> {
        let (seq, data, is_last) = self.call.send.cut(len);
        if seq > SEQ_MAX {
            return Err(SecurityError { code: code::PROTOCOL_ERROR });
        }
        self.stats.bytes_sent += data.len() as u64;
        self.peer.bytes_sent += data.len() as u64;
        let (payload, checksum) = self.seal(seq, data)?;
        let serial = self.connection.take_serial();
        let frame = self.data_header(serial);
        let outgoing = self.call.send.send_new(self.now, serial, (payload, checksum, is_last));
        write_data(frame, &outgoing, buf);
        Ok(())
    }

    fn seal(&mut self, seq: u32, data: Bytes) -> Result<(Bytes, u16), SecurityError> {
        if !self.connection.security.packets().protects() {
            return Ok((data, 0));
        }
        let overhead = self.connection.overhead();
        let from_client = self.call.side == Side::Client;
        let context = self.connection.context(self.call.channel, self.call.number, seq, from_client);
        let security = self.connection.security.packets_mut();
        if security.keeps_data() {
            return Ok((data, security.seal(&context, &mut Vec::new())?));
        }
        let mut payload = Vec::with_capacity(overhead.header + data.len() + overhead.trailer);
        payload.resize(overhead.header, 0);
        payload.extend_from_slice(&data);
        let checksum = security.seal(&context, &mut payload)?;
        Ok((payload.into(), checksum))
    }

    /// A DATA header but for what belongs to the packet.
    fn data_header(&self, serial: u32) -> Header {
        Header {
            epoch: self.connection.epoch.0,
            cid: self.connection.cid.with_channel(self.call.channel),
            call: self.call.number,
            seq: 0,
            serial,
            kind: PacketType::DATA,
            flags: self.connection.side_flag(),
            user_status: 0,
            security_index: self.connection.security_index,
            checksum: 0,
            service: self.connection.service,
        }
    }

    fn after_data(&mut self, packets: usize) {
        let counter = PacketType::DATA.counter().unwrap_or(0);
        self.stats.packets_sent[counter] += packets as u64;
        self.peer.sent += packets as u64;
        self.call.ack.data_sent();
        self.sent();
        let is_client = self.call.side == Side::Client;
        self.call.send.arm(self.now, &self.peer.rtt, is_client);
    }

    fn sent(&mut self) {
        self.call.last_sent = self.now;
        self.connection.last_active = self.now;
    }

    fn write_ack(&mut self, kind: u8, serial: u32, buf: &mut Vec<u8>) {
        let mut header = self.connection.header(PacketType::ACK, self.call.channel, self.call.number);
        header.flags |= flags::SLOW_START_OK;
        if kind == reason::PING {
            header.flags |= flags::REQUEST_ACK;
        }
        let receive = &mut self.call.receive;
        let first = receive.first_for_ack();
        let mut soft = [0u8; 255];
        let soft_len = receive.soft_acks(first, &mut soft);
        let ack = Ack {
            buffer_space: 0,
            skew_max: 0,
            first,
            previous: receive.highest(),
            serial,
            reason: kind,
            soft: &soft[..soft_len],
            trailer: self.trailer(first),
        };
        buf.extend_from_slice(&header.to_bytes());
        ack.encode(buf);
        self.stats.packets_sent[1] += 1;
        self.sent();
    }

    fn trailer(&self, first: u32) -> AckTrailer {
        let window = self.call.receive.window_for_ack(first);
        AckTrailer { window: Some(window), ..super::control::advertised(self.config, &self.connection.to) }
    }
}

fn write_data(frame: Header, outgoing: &Outgoing<'_>, buf: &mut Vec<u8>) {
    let mut header = Header { seq: outgoing.seq, checksum: outgoing.checksum, ..frame };
    if outgoing.is_last {
        header.flags |= flags::LAST_PACKET;
    }
    if outgoing.request_ack {
        header.flags |= flags::REQUEST_ACK;
    }
    buf.extend_from_slice(&header.to_bytes());
    buf.extend_from_slice(outgoing.payload);
}
