//! How many RESPONSEs are verified in a second. Each costs decryption and key derivation on the thread that receives,
//! and two packets with any source address bring one about.

use crate::Instant;
use crate::config::Config;
use crate::hash::HashSeed;
use core::time::Duration;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Sources are told apart by a keyed hash of this many values, so that no number of them takes memory.
const SOURCES: usize = 256;
const PERIOD: Duration = Duration::from_secs(1);

/// Counts of the present second.
pub(super) struct ResponseLimit {
    seed: HashSeed,
    began: Instant,
    all: u32,
    by_source: [u32; SOURCES],
}

impl ResponseLimit {
    pub(super) fn new(seed: HashSeed) -> Self {
        ResponseLimit { seed, began: Instant::ZERO, all: 0, by_source: [0; SOURCES] }
    }

    /// Whether another response from this host is verified now. One that is not is asked for again by the next
    /// challenge.
    pub(super) fn admits(&mut self, now: Instant, from: IpAddr, config: &Config) -> bool {
        if now - self.began >= PERIOD {
            *self = ResponseLimit { began: now, ..Self::new(self.seed) };
        }
        let source = &mut self.by_source[self.seed.hash_one(network(from)) as usize % SOURCES];
        if *source >= config.responses_per_source || self.all >= config.responses_per_second {
            return false;
        }
        *source += 1;
        self.all += 1;
        true
    }
}

/// What one host can send from: an address, or a network of IPv6.
fn network(from: IpAddr) -> u64 {
    match from.to_canonical() {
        IpAddr::V4(host) => u64::from(host.to_bits()),
        IpAddr::V6(host) => (host.to_bits() >> 64) as u64,
    }
}
