//! State of one connection: four channels, one security object, one serial counter.

mod channel;
mod class;
mod table;

pub(crate) use channel::{Channel, Ended};
pub(crate) use class::{Cipher, NotOpened, Security};
pub(crate) use table::{ConnectionTable, ServerKey};

use crate::Instant;
use crate::ids::{CHANNELS, Cid, ConnId, Epoch, Side};
use crate::packet::{Header, PacketType, flags};
use crate::security::{Identity, Overhead, PacketContext};
use crate::slab::Key;
use afs_env::admission::Slot;
use core::time::Duration;
use std::net::SocketAddr;

pub(crate) struct Connection {
    pub(crate) id: ConnId,
    pub(crate) epoch: Epoch,
    pub(crate) cid: Cid,
    pub(crate) service: u16,
    pub(crate) security_index: u8,
    pub(crate) peer: Key,
    pub(crate) to: SocketAddr,
    /// Server: its ids are those of a connection at another address, whose client may have moved here. It takes no
    /// calls.
    pub(crate) claims: bool,
    /// Client: the address that replies come from, once one has arrived.
    pub(crate) answers_from: Option<SocketAddr>,
    pub(crate) security: Security,
    pub(crate) channels: [Channel; CHANNELS],
    next_serial: u32,
    /// The code that the connection failed with: every packet is answered with it.
    pub(crate) failed: Option<i32>,
    /// Time of a delayed abort, which slows down guessing of keys.
    pub(crate) abort_at: Instant,
    pub(crate) challenge: ChallengeState,
    /// Time of the next reachability ping; calls wait for its reply.
    pub(crate) validation_ping_at: Instant,
    /// Reachability pings sent since the newest waiting call began.
    pub(crate) validation_pings: u32,
    /// The lowest serial that a reachability ping can have had.
    pub(crate) validation_serial: Option<u32>,
    /// Server: its entry in the table of connections that clients have opened.
    pub(crate) slot: Option<Slot>,
    /// Last packet in either direction.
    pub(crate) last_active: Instant,
    /// `open_call` found no free channel.
    pub(crate) wants_channel: bool,
    pub(crate) dead_time: Duration,
    /// Service option.
    pub(crate) reachability_check: bool,
}

/// Challenges sent while calls wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengeState {
    pub(crate) sent: u32,
    pub(crate) again_at: Instant,
}

impl ChallengeState {
    pub(crate) const NONE: ChallengeState = ChallengeState { sent: 0, again_at: Instant::FAR_FUTURE };
}

/// The connection's ids on the wire, and its direction.
pub(crate) struct ConnectionIds {
    pub(crate) epoch: Epoch,
    pub(crate) cid: Cid,
    pub(crate) service: u16,
    pub(crate) security: Security,
    pub(crate) peer: Key,
    pub(crate) to: SocketAddr,
}

impl Connection {
    pub(crate) fn new(key: Key, named: ConnectionIds, dead_time: Duration, now: Instant) -> Self {
        Connection {
            id: ConnId(key),
            epoch: named.epoch,
            cid: named.cid,
            service: named.service,
            security_index: named.security.index(),
            peer: named.peer,
            to: named.to,
            claims: false,
            answers_from: None,
            security: named.security,
            channels: [Channel::default(); CHANNELS],
            next_serial: 1,
            failed: None,
            abort_at: Instant::FAR_FUTURE,
            challenge: ChallengeState::NONE,
            validation_ping_at: Instant::FAR_FUTURE,
            validation_pings: 0,
            validation_serial: None,
            slot: None,
            last_active: now,
            wants_channel: false,
            dead_time,
            reachability_check: false,
        }
    }

    /// The connection's key in the server's table.
    pub(crate) fn server_key(&self) -> ServerKey {
        ServerKey { epoch: self.epoch, cid: self.cid, from: self.to }
    }

    /// Client: whether a packet from this address is the server's. The address that the client calls always is. A
    /// host with several addresses may reply from another, with the same port; the first such address is accepted as
    /// long as nothing comes from the one that is called.
    pub(crate) fn accepts_from(&mut self, from: SocketAddr) -> bool {
        let called = from == self.to;
        let heard = self.answers_from;
        let another = || heard.map_or(from.port() == self.to.port(), |heard| heard == from);
        if called || another() {
            self.answers_from = Some(from);
            return true;
        }
        false
    }

    pub(crate) fn side(&self) -> Side {
        self.security.side()
    }

    /// The serial for a packet that is about to be sent.
    pub(crate) fn take_serial(&mut self) -> u32 {
        let serial = self.next_serial;
        // Zero means "never sent", so it is skipped on wrap-around.
        self.next_serial = self.next_serial.checked_add(1).unwrap_or(1);
        serial
    }

    /// Skips serials.
    pub(crate) fn skip_serials(&mut self, count: u32) {
        self.next_serial = self.next_serial.saturating_add(count);
    }

    pub(crate) fn last_serial(&self) -> u32 {
        self.next_serial - 1
    }

    /// The flag that marks packets sent by this side.
    pub(crate) fn side_flag(&self) -> u8 {
        match self.side() {
            Side::Client => flags::CLIENT_INITIATED,
            Side::Server => 0,
        }
    }

    /// Header of an outgoing packet that is not DATA, with a fresh serial.
    pub(crate) fn header(&mut self, kind: PacketType, channel: usize, call: u32) -> Header {
        Header {
            epoch: self.epoch.0,
            cid: self.cid.with_channel(channel),
            call,
            seq: 0,
            serial: self.take_serial(),
            kind,
            flags: self.side_flag(),
            user_status: 0,
            security_index: self.security_index,
            checksum: 0,
            service: self.service,
        }
    }

    /// Context for sealing or opening a packet.
    pub(crate) fn context(&self, channel: usize, call: u32, seq: u32, from_client: bool) -> PacketContext {
        PacketContext {
            epoch: self.epoch,
            cid_and_channel: self.cid.with_channel(channel),
            call,
            seq,
            service: self.service,
            security_index: self.security_index,
            from_client,
            checksum: 0,
        }
    }

    pub(crate) fn overhead(&self) -> Overhead {
        self.security.overhead()
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.security.is_authenticated()
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.security.identity()
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.channels.iter().any(|channel| channel.call.is_some())
    }

    /// Calls in the order of their channels.
    pub(crate) fn calls(&self) -> [Option<Key>; CHANNELS] {
        self.channels.map(|channel| channel.call)
    }

    /// A free channel for a client's next call, preferably one that is not marked busy.
    pub(crate) fn free_channel(&self) -> Option<usize> {
        let free = |index: &usize| self.channels[*index].call.is_none();
        let ready = |index: &usize| free(index) && !self.channels[*index].busy;
        (0..CHANNELS).find(ready).or_else(|| (0..CHANNELS).find(free))
    }

    /// The call numbers that a client reports in a RESPONSE: docs/protocol/rx.md "11. Security framework".
    pub(crate) fn call_numbers(&self) -> [u32; CHANNELS] {
        self.channels.map(|channel| match (channel.call, channel.number) {
            (None, number) if number > 0 => number.wrapping_add(1),
            (_, number) => number,
        })
    }

    /// The earliest of the connection's own timers, without those of its calls.
    pub(crate) fn own_deadline(&self) -> Instant {
        let channels = self.channels.iter().map(|channel| channel.final_ack_at);
        let own = self.challenge.again_at.min(self.validation_ping_at).min(self.abort_at);
        channels.fold(own, Instant::min)
    }
}
