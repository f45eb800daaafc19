//! Amplification limit of replies to addresses without a connection: rxdebug replies, and aborts of packets that
//! match no connection.
//!
//! An address is sent at most three times the bytes received from it. A host with a validated address, and the
//! machine itself, have no limit.

use super::Endpoint;
use super::address_validation::AMPLIFICATION_MAX;
use crate::Instant;
use crate::hash::HashSeed;
use crate::packet::{HEADER_LEN, Header};
use crate::peer::Peer;
use crate::stats::DropReason;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

/// Entries of the table, chosen by a keyed hash of the address, which bounds the memory. A new address replaces the
/// old one.
const ADDRESSES: usize = 1024;
/// Largest credit of an address: twice the longest reply.
const CREDIT_MAX: usize = 1024;

/// Credit of addresses, and the hosts without a limit.
pub(super) struct AmplificationLimit {
    seed: HashSeed,
    credits: [Credit; ADDRESSES],
    /// Number of validated addresses of each host.
    validated: HashMap<IpAddr, usize, HashSeed>,
}

/// Unused credit of one address.
#[derive(Clone, Copy, Default)]
struct Credit {
    /// Further bits of the address's hash.
    tag: u32,
    bytes: u16,
}

impl AmplificationLimit {
    pub(super) fn new(seed: HashSeed) -> Self {
        AmplificationLimit {
            seed,
            credits: [Credit::default(); ADDRESSES],
            validated: HashMap::with_hasher(seed),
        }
    }

    /// The peer's address is validated.
    pub(super) fn validate(&mut self, peer: &mut Peer, reachable_until: Instant) {
        if !std::mem::replace(&mut peer.is_validated, true) {
            *self.validated.entry(host(&peer.address)).or_default() += 1;
        }
        peer.reachable_until = reachable_until;
    }

    /// The peer is removed.
    pub(super) fn forget(&mut self, peer: &Peer) {
        let Some(count) = self.validated.get_mut(&host(&peer.address)).filter(|_| peer.is_validated) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.validated.remove(&host(&peer.address));
        }
    }

    /// Whether `bytes` may be sent to an address from which `received` bytes have come.
    fn allows(&mut self, address: &SocketAddr, received: usize, bytes: usize) -> bool {
        let host = host(address);
        if host.is_loopback() || self.validated.contains_key(&host) {
            return true;
        }
        let hash = self.seed.hash_one(address);
        let (entry, tag) = (&mut self.credits[hash as usize % ADDRESSES], (hash >> 32) as u32);
        // The credit of another address is not transferred.
        let left = if entry.tag == tag { usize::from(entry.bytes) } else { 0 };
        let credit = (left + AMPLIFICATION_MAX * received).min(CREDIT_MAX);
        let rest = credit.checked_sub(bytes);
        *entry = Credit { tag, bytes: rest.unwrap_or(credit) as u16 };
        rest.is_some()
    }
}

fn host(address: &SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

impl Endpoint {
    /// Replies to a packet of `received` bytes that belongs to no connection, if the credit suffices.
    pub(super) fn reply_without_connection(
        &mut self,
        to: SocketAddr,
        received: usize,
        reply: &Header,
        payload: &[u8],
    ) {
        match self.amplification.allows(&to, received, HEADER_LEN + payload.len()) {
            true => self.push_packet(to, reply, payload),
            false => self.stats.drop_packet(DropReason::UnvalidatedAddress),
        }
    }
}
