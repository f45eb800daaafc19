//! Queue of packets that belong to no live call: aborts, challenges, replies to queries, final acks.

use super::Endpoint;
use crate::Instant;
use crate::config::{Config, PACKET_SIZE_DEFAULT};
use crate::connection::Ended;
use crate::ids::Cid;
use crate::packet::{Ack, AckTrailer, Header, PacketType, flags, reason};
use crate::slab::Key;
use crate::stats::DropReason;
use rand_chacha::rand_core::Rng;
use std::collections::VecDeque;
use std::net::SocketAddr;

#[derive(Default)]
pub(super) struct ControlQueue {
    packets: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl ControlQueue {
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn pop(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.packets.pop_front()
    }
}

impl Endpoint {
    pub(super) fn push_packet(&mut self, to: SocketAddr, header: &Header, payload: &[u8]) {
        if self.control.packets.len() >= self.config.control_packets_max {
            self.stats.drop_packet(DropReason::ControlQueueFull);
            return;
        }
        if let Some(index) = header.kind.counter() {
            self.stats.packets_sent[index] += 1;
        }
        let mut packet = Vec::with_capacity(crate::packet::HEADER_LEN + payload.len());
        packet.extend_from_slice(&header.to_bytes());
        packet.extend_from_slice(payload);
        self.control.packets.push_back((to, packet));
    }

    /// Queues a packet of a connection. Call number 0 uses channel 0.
    pub(super) fn push_connection_packet(
        &mut self,
        now: Instant,
        key: Key,
        kind: PacketType,
        (channel, call): (usize, u32),
        payload: &[u8],
    ) {
        if !self.may_send(key, crate::packet::HEADER_LEN + payload.len()) {
            return;
        }
        let Some(connection) = self.connection_mut(key) else { return };
        let header = connection.header(kind, channel, call);
        connection.last_active = now;
        let to = connection.to;
        self.push_packet(to, &header, payload);
    }

    pub(super) fn push_abort(&mut self, now: Instant, key: Key, channel: usize, call: u32, code: i32) {
        self.push_connection_packet(now, key, PacketType::ABORT, (channel, call), &code.to_be_bytes());
    }

    /// The abort of a whole connection.
    pub(super) fn push_connection_abort(&mut self, now: Instant, key: Key, code: i32) {
        self.push_abort(now, key, 0, 0, code);
    }

    /// Queues an abort for a packet that matches no connection: docs/protocol/rx.md "Raw abort quirk". Unlike
    /// OpenAFS's, the service id is in its proper field.
    pub(super) fn push_raw_abort(&mut self, to: SocketAddr, offending: &Header, len: usize, code: i32) {
        if offending.kind == PacketType::ABORT {
            return;
        }
        let header = Header {
            seq: 0,
            serial: 0,
            kind: PacketType::ABORT,
            flags: !offending.flags & flags::CLIENT_INITIATED,
            user_status: 0,
            checksum: 0,
            ..*offending
        };
        self.reply_without_connection(to, len, &header, &code.to_be_bytes());
    }

    /// Queues an ack for a channel whose call has been freed: everything was received.
    pub(super) fn push_final_ack(&mut self, now: Instant, key: Key, channel: usize, kind: u8, serial: u32) {
        let Some(connection) = self.connections.slab.get_mut(key) else { return };
        let state = &mut connection.channels[channel];
        let Ended::Received { first } = state.ended else { return };
        state.final_ack_at = Instant::FAR_FUTURE;
        let number = state.number;
        let mut header = connection.header(PacketType::ACK, channel, number);
        header.flags |= flags::SLOW_START_OK;
        connection.last_active = now;
        let to = connection.to;
        let trailer = advertised(&self.config, &to);
        let previous = first.saturating_sub(1);
        let ack =
            Ack { buffer_space: 0, skew_max: 0, first, previous, serial, reason: kind, soft: &[], trailer };
        let mut payload = Vec::with_capacity(40);
        ack.encode(&mut payload);
        if self.may_send(key, crate::packet::HEADER_LEN + payload.len()) {
            self.push_packet(to, &header, &payload);
        }
    }

    /// Answers a late packet of a freed call with the call's outcome.
    pub(super) fn reply_for_ended(&mut self, now: Instant, key: Key, header: &Header) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        let channel = header.channel();
        let is_ping = header.kind == PacketType::ACK && header.has(flags::REQUEST_ACK);
        match connection.channels[channel].ended {
            Ended::Received { .. } if header.kind == PacketType::DATA => {
                self.stats.drop_packet(DropReason::Duplicate);
                self.push_final_ack(now, key, channel, reason::DUPLICATE, header.serial);
            }
            Ended::Received { .. } if is_ping => {
                self.push_final_ack(now, key, channel, reason::PING_RESPONSE, header.serial);
            }
            Ended::Aborted(code) if header.kind != PacketType::ABORT => {
                self.stats.drop_packet(DropReason::CallFailed);
                self.push_abort(now, key, channel, header.call, code);
            }
            _ => self.stats.drop_packet(DropReason::NoSuchCall),
        }
    }

    /// A random id for a client connection: a server sees the client's epoch and the ids of its own connections, and
    /// must not be able to derive those of another server's.
    pub(super) fn take_cid(&mut self) -> Cid {
        loop {
            let cid = Cid::of(self.random.next_u32());
            if self.connections.client(cid).is_none() {
                return cid;
            }
        }
    }
}

/// What acks to this peer advertise; the window is that of an empty call.
pub(super) fn advertised(config: &Config, peer: &SocketAddr) -> AckTrailer {
    let size = config.packet_size_for(peer);
    let more = (config.jumbo_packets as usize - 1) * JUMBO_STEP;
    let largest = if size <= PACKET_SIZE_DEFAULT { size + more } else { size };
    AckTrailer {
        mtu_max: Some(largest as u32),
        mtu_interface: Some(size as u32),
        window: Some(config.receive_window(size)),
        jumbo_packets: Some(config.jumbo_packets),
    }
}

const JUMBO_STEP: usize = crate::packet::JUMBO_PAYLOAD_LEN + crate::packet::JUMBO_HEADER_LEN;
