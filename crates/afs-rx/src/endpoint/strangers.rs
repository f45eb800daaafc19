//! A byte budget for replies to addresses without a connection: rxdebug answers, and aborts of packets that match no connection.
//!
//! It is at most three times what came from there, as with everything that goes where nobody has proven to be. A host
//! with a proven address, and the machine itself, may ask as it likes.

use super::Endpoint;
use super::reach::AMPLIFICATION_MAX;
use crate::Instant;
use crate::hash::HashSeed;
use crate::packet::{HEADER_LEN, Header};
use crate::peer::Peer;
use crate::stats::Drop;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

/// Addresses share so many places by a keyed hash, so that no number of them takes memory. The latest has the place.
const ADDRESSES: usize = 1024;
/// What an address has left at most: the longest answer twice.
const LEFT_MAX: usize = 1024;

/// What may be told, and to whom without a bound.
pub(super) struct Strangers {
    seed: HashSeed,
    left: [Left; ADDRESSES],
    /// Proven addresses of each host.
    proven: HashMap<IpAddr, usize, HashSeed>,
}

/// What has not been used of what one address has sent.
#[derive(Clone, Copy, Default)]
struct Left {
    /// More of the address's hash.
    tag: u32,
    bytes: u16,
}

impl Strangers {
    pub(super) fn new(seed: HashSeed) -> Self {
        Strangers { seed, left: [Left::default(); ADDRESSES], proven: HashMap::with_hasher(seed) }
    }

    /// What is sent to the peer arrives there.
    pub(super) fn prove(&mut self, peer: &mut Peer, reachable_until: Instant) {
        if !std::mem::replace(&mut peer.is_proven, true) {
            *self.proven.entry(host(&peer.address)).or_default() += 1;
        }
        peer.reachable_until = reachable_until;
    }

    /// The peer is forgotten.
    pub(super) fn forget(&mut self, peer: &Peer) {
        let Some(count) = self.proven.get_mut(&host(&peer.address)).filter(|_| peer.is_proven) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.proven.remove(&host(&peer.address));
        }
    }

    /// Whether so many bytes may go to an address from which so many have come.
    fn allows(&mut self, address: &SocketAddr, received: usize, bytes: usize) -> bool {
        let host = host(address);
        if host.is_loopback() || self.proven.contains_key(&host) {
            return true;
        }
        let hash = self.seed.hash_one(address);
        let (place, tag) = (&mut self.left[hash as usize % ADDRESSES], (hash >> 32) as u32);
        // What another address has earned is not this one's.
        let left = if place.tag == tag { usize::from(place.bytes) } else { 0 };
        let credit = (left + AMPLIFICATION_MAX * received).min(LEFT_MAX);
        let rest = credit.checked_sub(bytes);
        *place = Left { tag, bytes: rest.unwrap_or(credit) as u16 };
        rest.is_some()
    }
}

fn host(address: &SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

impl Endpoint {
    /// Answers a packet of so many bytes that belongs to no connection. Who gets no answer has asked too little yet.
    pub(super) fn answer_stranger(
        &mut self,
        to: SocketAddr,
        received: usize,
        answer: &Header,
        payload: &[u8],
    ) {
        match self.strangers.allows(&to, received, HEADER_LEN + payload.len()) {
            true => self.push_packet(to, answer, payload),
            false => self.stats.drop_packet(Drop::UnprovenAddress),
        }
    }
}
