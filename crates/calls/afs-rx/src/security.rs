//! Traits of security classes: docs/protocol/rx.md "11. Security framework".
//!
//! A class seals DATA packets that are sent, opens those that arrive, and authenticates the client with CHALLENGE and
//! RESPONSE. Every connection has one object of the class, which several threads use at once for packets. A class that needs a wall clock,
//! keys or tickets gets them at its construction; here it handles packets only.

mod null;

pub use null::{NullClient, NullServer};

use crate::Instant;
use crate::ids::{Cid, Epoch};
use bytes::Bytes;
use std::any::Any;
use std::sync::Arc;
use thiserror::Error;

/// Authenticated identity of a connection's client, in whatever form the security class gives it.
pub type Identity = Arc<dyn Any + Send + Sync>;

/// A packet, a response or a whole connection that failed verification, and the abort code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("security failure, code {code}")]
pub struct SecurityError {
    /// The abort code of the failure.
    pub code: i32,
}

impl SecurityError {
    /// The abort code. Zero would mean success.
    pub(crate) fn abort_code(self) -> i32 {
        match self.code {
            0 => crate::error::code::PROTOCOL_ERROR,
            code => code,
        }
    }
}

/// The header fields that a class binds into a DATA packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketContext {
    /// The connection's epoch.
    pub epoch: Epoch,
    /// The header's cid field, with the channel in the low two bits.
    pub cid_and_channel: u32,
    /// Call number.
    pub call: u32,
    /// Sequence number.
    pub seq: u32,
    /// The header's service id.
    pub service: u16,
    /// The header's security index.
    pub security_index: u8,
    /// True when the client of the connection sent (or sends) the packet.
    pub from_client: bool,
    /// The header's checksum field: zero when sealing, as received when opening.
    pub checksum: u16,
}

/// Bytes that a class adds to every packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overhead {
    /// Before the data.
    pub header: usize,
    /// After the data, at most.
    pub trailer: usize,
}

/// Numbers shown by rxdebug for a connection: docs/protocol/rx.md "13. DEBUG and VERSION".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SecurityReport {
    /// 1 null, 3 rxkad, 4 rxgk; 0 unknown.
    pub kind: u8,
    /// Protection level, in the class's own numbers.
    pub level: u8,
    /// 1 unallocated, 2 authenticated, 4 expired, 8 checksums.
    pub flags: u32,
    /// When the ticket expires, Unix seconds, or 0.
    pub expires: u32,
}

/// Properties and packet protection, the same at both ends of a connection.
pub trait PacketSecurity: Send + Sync {
    /// The index in every header of the connection. Constant.
    fn index(&self) -> u8;

    /// Bytes added to each packet. May change with a handshake only (`respond`, `verify`), as may all that follows up to `seal`.
    fn overhead(&self) -> Overhead {
        Overhead::default()
    }

    /// False when sealing and opening change nothing: the endpoint then sends and delivers payloads
    /// without touching them, and never calls `seal` or `open`.
    fn protects(&self) -> bool {
        true
    }

    /// True when the data of a packet is left unchanged, so that the header's checksum is the class's only output.
    /// The endpoint then gives `seal` an empty payload and sends the data without copying it.
    fn keeps_data(&self) -> bool {
        false
    }

    /// True when a payload that `open` accepts can only have been made with the connection's keys. Such a class lets
    /// a server's connection migrate with its client to another address; without it the connection stays at its first
    /// address. By default true of classes that protect packets and do not leave the data unchanged. Read once the
    /// client is authenticated.
    fn authenticates_packets(&self) -> bool {
        self.protects() && !self.keeps_data()
    }

    /// Why no further packet of the connection will open, such as an expired ticket. When `open` fails and this is
    /// `None`, the packet is at fault: it is dropped, and the connection continues.
    fn ended(&self) -> Option<SecurityError> {
        None
    }

    /// Protects a packet, each time it is sent. Any threads may seal and open at the same time, packets of one call or of several,
    /// and the endpoint is not locked: whatever changes with a packet is the class's to guard, for less time than the cipher takes.
    ///
    /// `payload` holds `overhead().header` bytes to be filled in and the data; the class may append up to
    /// `overhead().trailer` bytes. Returns the header's checksum field.
    fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError>;

    /// Verifies and decrypts a received payload; returns the data alone.
    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError>;

    /// Properties for rxdebug.
    fn report(&self) -> SecurityReport {
        SecurityReport::default()
    }
}

/// The client's half of a connection.
pub trait ClientSecurity: PacketSecurity {
    /// Responds to a challenge. Called for every CHALLENGE that arrives while a call is active.
    fn respond(&mut self, challenge: &Challenge<'_>) -> Result<Response, SecurityError>;
}

/// A challenge as the client sees it.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// The time of arrival.
    pub now: Instant,
    /// The connection's epoch.
    pub epoch: Epoch,
    /// The connection's id.
    pub cid: Cid,
    /// The service the connection is for.
    pub service: u16,
    /// Payload of the CHALLENGE packet.
    pub payload: &'a [u8],
    /// The current call number of each channel (that of the next call where none is active).
    pub call_numbers: [u32; 4],
}

/// The response to a challenge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// Payload of the RESPONSE packet, at most 16 KiB.
    pub payload: Vec<u8>,
    /// The header's checksum field (rxgk's key number); 0 otherwise.
    pub checksum: u16,
}

/// A class that a service offers; creates a session for every connection that arrives.
pub trait ServerSecurity: Send {
    /// The index this class is offered under.
    fn index(&self) -> u8;

    /// A session for a new connection.
    fn accept(&mut self) -> Box<dyn ServerSession>;
}

/// The server's half of a connection.
pub trait ServerSession: PacketSecurity {
    /// True when the client is authenticated and calls may run. While false, the endpoint challenges the client. May
    /// change in `verify` only.
    fn is_authenticated(&self, now: Instant) -> bool;

    /// Payload of a CHALLENGE. `random` is the endpoint's generator.
    fn challenge(&mut self, now: Instant, random: &mut dyn FnMut(&mut [u8])) -> Vec<u8>;

    /// Verifies a RESPONSE. Called only while unauthenticated and after a challenge.
    fn verify(&mut self, response: &Proof<'_>) -> Result<Verified, SecurityError>;

    /// The client's identity, once authenticated. May change in `verify` only.
    fn identity(&self) -> Option<Identity> {
        None
    }
}

/// A response as the server sees it.
#[derive(Clone, Copy, Debug)]
pub struct Proof<'a> {
    /// The time of arrival.
    pub now: Instant,
    /// The connection's epoch.
    pub epoch: Epoch,
    /// The connection's id.
    pub cid: Cid,
    /// The service the connection is for.
    pub service: u16,
    /// The RESPONSE header's checksum field.
    pub checksum: u16,
    /// Payload of the RESPONSE packet.
    pub payload: &'a [u8],
}

/// Result of a valid response.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// The client's call numbers: calls older than these cannot be replayed.
    pub call_numbers: Option<[u32; 4]>,
}
