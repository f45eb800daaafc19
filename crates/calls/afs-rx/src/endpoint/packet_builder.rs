//! Packet builder: the acks, pings and DATA batch of one call's turn to send.

use super::capacity;
use super::sealing::{Sealing, Unsealed};
use crate::Instant;
use crate::call::{Call, Outgoing, Phase, Pick, SEQ_MAX};
use crate::config::{BATCH_BYTES_MAX, Config};
use crate::connection::Connection;
use crate::error::code;
use crate::ids::Side;
use crate::packet::{Ack, AckTrailer, HEADER_LEN, Header, PacketType, flags, reason};
use crate::peer::Peer;
use crate::stats::Stats;
use bytes::Bytes;
use std::collections::VecDeque;

/// A call with its connection and peer, borrowed together.
pub(super) struct PacketBuilder<'a> {
    pub(super) call: &'a mut Call,
    pub(super) connection: &'a mut Connection,
    pub(super) peer: &'a mut Peer,
    pub(super) stats: &'a mut Stats,
    pub(super) config: &'a Config,
    pub(super) now: Instant,
}

/// Result of a call's turn.
pub(super) enum Built {
    /// The buffer holds this many packets of this size.
    Packets(usize, usize),
    Sealing(Sealing),
    Nothing,
    /// The connection must be aborted.
    Failed(i32),
}

impl PacketBuilder<'_> {
    /// Builds the next output of the call: an ack or a ping, else DATA.
    pub(super) fn build(&mut self, buf: &mut Vec<u8>) -> Built {
        if self.call.phase == Phase::Waiting && self.call.ping {
            // The ping acknowledges as well, and the credit of an unvalidated address does not allow both.
            let _ = self.call.ack.take();
            return self.ping(buf);
        }
        if let Some((kind, serial)) = self.call.ack.take() {
            self.write_ack(kind, serial, buf);
            self.request_is_acked();
            return Built::Packets(1, buf.len());
        }
        if self.call.ping {
            return self.ping(buf);
        }
        if std::mem::take(&mut self.call.path_ping) && self.path_ping(buf) {
            return Built::Packets(1, buf.len());
        }
        if !self.call.send.was_sent() && self.call.side == Side::Client {
            // The peer's silence counts from here on.
            self.call.last_heard = self.now;
        }
        self.data(buf)
    }

    fn ping(&mut self, buf: &mut Vec<u8>) -> Built {
        self.call.ping = false;
        self.stats.pings_sent += 1;
        self.write_ack(reason::PING, 0, buf);
        self.request_is_acked();
        Built::Packets(1, buf.len())
    }

    fn request_is_acked(&mut self) {
        if self.call.side == Side::Server && self.call.receive.is_complete() {
            self.call.send.ack_request();
        }
    }

    /// A ping as large as a packet of data would be, if the peer's path is to be asked now.
    fn path_ping(&mut self, buf: &mut Vec<u8>) -> bool {
        let Some(size) = self.peer.path_ping(self.now) else { return false };
        self.stats.pings_sent += 1;
        let serial = self.write_ack(reason::PING, 0, buf);
        buf.resize(size.max(buf.len()), 0);
        self.peer.path.pinged(self.now, size, self.connection.id.0, serial);
        true
    }

    fn data(&mut self, buf: &mut Vec<u8>) -> Built {
        if !self.connection.security.protects() {
            let packets = self.pick_batch(|header, data| {
                buf.extend_from_slice(&header.to_bytes());
                buf.extend_from_slice(data);
            });
            return match packets {
                Ok((0, _)) => Built::Nothing,
                Ok((packets, size)) => Built::Packets(packets, size),
                Err(code) => Built::Failed(code),
            };
        }
        let mut packets = VecDeque::new();
        let picked =
            self.pick_batch(|header, data| packets.push_back(Unsealed { header, data: data.clone() }));
        match picked {
            Ok((0, _)) => Built::Nothing,
            Ok(_) => Built::Sealing(self.sealing(packets)),
            Err(code) => Built::Failed(code),
        }
    }

    fn sealing(&self, packets: VecDeque<Unsealed>) -> Sealing {
        let (connection, call) = (&*self.connection, &*self.call);
        Sealing {
            call: call.id.0,
            connection: connection.id.0,
            to: connection.to,
            cipher: connection.security.cipher(),
            keeps_data: connection.security.keeps_data(),
            overhead: connection.overhead(),
            context: connection.context(call.channel, call.number, 0, call.side == Side::Client),
            packets,
            sealed: None,
            failure: None,
        }
    }

    /// Gives `put` a batch of DATA packets with equal amounts of data; only the last may have less. Returns their
    /// number, and the size of the first without what sealing adds.
    fn pick_batch(&mut self, mut put: impl FnMut(Header, &Bytes)) -> Result<(usize, usize), i32> {
        let capacity = capacity(self.connection, self.peer);
        let overhead = self.connection.overhead();
        let (mut packets, mut first, mut total) = (0, 0, 0);
        while packets < self.config.batch_packets {
            let pick = self.call.send.pick(capacity);
            let (Pick::Again(_, len) | Pick::New(len)) = pick else { break };
            total += HEADER_LEN + overhead.header + len + overhead.trailer;
            if packets > 0 && (len > first || total > BATCH_BYTES_MAX) {
                break;
            }
            match pick {
                Pick::Again(seq, _) => self.pick_again(seq, &mut put),
                _ => self.pick_new(len, &mut put)?,
            }
            packets += 1;
            if packets == 1 {
                first = len;
            }
            if len < first {
                break;
            }
        }
        if packets > 0 {
            self.after_data(packets);
        }
        Ok((packets, HEADER_LEN + first))
    }

    fn pick_again(&mut self, seq: u32, put: &mut impl FnMut(Header, &Bytes)) {
        let serial = self.connection.take_serial();
        let frame = self.data_header(serial);
        if let Some(outgoing) = self.call.send.retransmit(self.now, serial, seq) {
            self.stats.data_resent += 1;
            self.peer.resent += 1;
            put(complete_header(frame, &outgoing), outgoing.payload);
        }
    }

    fn pick_new(&mut self, len: usize, put: &mut impl FnMut(Header, &Bytes)) -> Result<(), i32> {
        let (seq, data, is_last) = self.call.send.cut(len);
        if seq > SEQ_MAX {
            return Err(code::PROTOCOL_ERROR);
        }
        self.stats.bytes_sent += data.len() as u64;
        self.peer.bytes_sent += data.len() as u64;
        let serial = self.connection.take_serial();
        let frame = self.data_header(serial);
        let outgoing = self.call.send.send_new(self.now, serial, (data, is_last));
        put(complete_header(frame, &outgoing), outgoing.payload);
        Ok(())
    }

    /// A DATA header without the fields of the packet.
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
        let asks = self.call.send.is_long() || is_client && self.config.asks_paths;
        self.call.path_ping |= asks && self.peer.path_ping(self.now).is_some();
        self.call.send.arm(self.now, &self.peer.rtt, is_client);
    }

    fn sent(&mut self) {
        self.call.last_sent = self.now;
        self.connection.last_active = self.now;
    }

    /// Writes an ACK; returns the serial of its packet.
    fn write_ack(&mut self, kind: u8, serial: u32, buf: &mut Vec<u8>) -> u32 {
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
        header.serial
    }

    fn trailer(&self, first: u32) -> AckTrailer {
        let window = self.call.receive.window_for_ack(first);
        AckTrailer { window: Some(window), ..super::control::advertised(self.config, &self.connection.to) }
    }
}

/// The complete header of a packet.
fn complete_header(frame: Header, outgoing: &Outgoing<'_>) -> Header {
    let mut header = Header { seq: outgoing.seq, ..frame };
    if outgoing.is_last {
        header.flags |= flags::LAST_PACKET;
    }
    if outgoing.request_ack {
        header.flags |= flags::REQUEST_ACK;
    }
    header
}
