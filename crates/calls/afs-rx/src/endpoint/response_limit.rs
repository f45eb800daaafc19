//! Rate limit of RESPONSE verification, in total and per host. Each verification costs decryption and key derivation
//! on the receiving thread, and two packets with a forged source address cause one.

use crate::Instant;
use crate::config::Config;
use crate::hash::HashSeed;
use afs_env::admission::Origin;
use core::time::Duration;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// Hosts are identified by a keyed hash of this many values, which bounds the memory.
const SOURCES: usize = 256;
const PERIOD: Duration = Duration::from_secs(1);

/// Counts of the current second.
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

    /// Whether another response from this host is verified now. If not, the next challenge requests it again.
    pub(super) fn admits(&mut self, now: Instant, from: IpAddr, config: &Config) -> bool {
        if now - self.began >= PERIOD {
            *self = ResponseLimit { began: now, ..Self::new(self.seed) };
        }
        let source = &mut self.by_source[self.seed.hash_one(Origin::of(from)) as usize % SOURCES];
        if *source >= config.responses_per_source || self.all >= config.responses_per_second {
            return false;
        }
        *source += 1;
        self.all += 1;
        true
    }
}
