//! Calls and fragments of calls as an attacker sends them.

use afs_rx::packet::PacketType;
use afs_sim::SimRng;
use andrew_tests::sim::adversary::packet::{Wire, datagram};
use bytes::Bytes;

use super::crowd::{Crowd, Source};

/// Security classes by index: none, and rxgk.
pub const NULL: u8 = 0;
pub const RXGK: u8 = 4;

/// The address, service and security class of a call on a connection, and its numbers.
#[derive(Clone, Copy)]
pub struct ForgedCall {
    wire: Wire,
    number: u32,
}

/// The first call of a new connection.
pub fn fresh(rng: &mut SimRng, service: u16, security: u8) -> ForgedCall {
    let [epoch, cid] = [rng.u64() as u32, rng.u64() as u32];
    ForgedCall { wire: Wire { epoch, cid: cid & !3, security, service }, number: 1 }
}

/// The next call of the one connection that a host's port has with a service.
pub fn next(crowd: &Crowd, from: Source, service: u16, security: u8) -> ForgedCall {
    let epoch = 0x4000_0000 | u32::from(from.host);
    let cid = (from.port as u32) << 28 | u32::from(service) << 8 | u32::from(security) << 4;
    ForgedCall { wire: Wire { epoch, cid, security, service }, number: crowd.number() }
}

/// One packet of a call on a channel; `last` marks the last one of its request.
pub fn data(call: ForgedCall, channel: u32, seq: u32, last: bool, payload: &[u8]) -> Bytes {
    datagram(&call.wire.client(PacketType::DATA, channel, call.number, seq, last), payload)
}
