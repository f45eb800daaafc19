//! Rate limit of passphrase attempts, per user, source and pair of both.
//!
//! A source is an address that the transport has validated (`docs/protocol/rx.md` "9. Keepalive"). It is delayed for
//! its failures, for one user and for all users; a user is delayed everywhere only when many sources try at once, and
//! not at all at a location of an earlier login. Memory is fixed: two sources that share all their slots share a
//! delay.

use std::collections::VecDeque;
use std::net::IpAddr;

use afs_rpc::{EnvRef, Instant};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::attempt::LIFETIME;
use super::slots::Slots;
use crate::crypto::Randomness;
use crate::user::UserName;

/// Slots for pairs of user and source: 6 MiB, which even thousands of sources do not fill with their free failures.
/// For sources, and for users: 768 KiB each.
const PAIR_SLOTS: usize = 393_216;
const SLOTS: usize = 49_152;
/// Free failures of a slot: of one user from one source; of a source, which many users may share; of a user from
/// everywhere.
const PAIR_FREE: u32 = 5;
const SOURCE_FREE: u32 = 30;
const USER_FREE: u32 = 500;
/// The time in which the failures of a user from everywhere expire, in seconds. One source, delayed to one attempt a
/// minute, never reaches the limit.
const USER_DRAIN: u64 = 1800;
/// Finished logins remembered at one time, so that each refunds its failure once.
const FINISHED_MAX: usize = 4096;

/// Counts of attempts that have not succeeded.
pub(super) struct RateLimit {
    /// Prevents attackers from choosing which users and sources share a slot.
    seed: [u8; 32],
    state: Mutex<State>,
}

struct State {
    pairs: Slots,
    sources: Slots,
    users: Slots,
    /// Times of the finished logins, with the digests of their sealed states.
    finished: VecDeque<(u64, [u8; 32])>,
}

/// Why an attempt is delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delayed {
    /// This source has too many failures for this user.
    OfPair,
    /// The source has too many failures for all users, or the user has too many from all sources: disregarded at a
    /// location of an earlier login.
    OfTotals,
}

/// The counters of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counted {
    pub(super) user: u64,
    pub(super) source: u64,
    /// A location of an earlier login: counted for the pair alone.
    pub(super) known: bool,
}

impl RateLimit {
    pub(super) fn new(env: &EnvRef) -> Self {
        let state = State {
            pairs: Slots::new(PAIR_SLOTS, PAIR_FREE),
            sources: Slots::new(SLOTS, SOURCE_FREE),
            users: Slots::new(SLOTS, USER_FREE).draining(USER_DRAIN),
            finished: VecDeque::new(),
        };
        Self { seed: Randomness(env).bytes(), state: Mutex::new(state) }
    }

    /// Counts an attempt as a failure until [`RateLimit::succeeded`]. `known`: the user has logged in from this source
    /// before.
    pub(super) fn begin(
        &self,
        user: &UserName,
        source: IpAddr,
        known: bool,
        now: Instant,
    ) -> Result<Counted, Delayed> {
        let user = self.hash(b"u", user.as_str().as_bytes());
        let counted = Counted { user, source: self.hash(b"s", &location(source)), known };
        let now = seconds(now);
        let mut state = self.state.lock();
        if !state.pairs.may_try(counted.pair(), now) {
            return Err(Delayed::OfPair);
        }
        if !known {
            if !state.sources.may_try(counted.source, now) || !state.users.may_try(counted.user, now) {
                return Err(Delayed::OfTotals);
            }
            state.sources.count(counted.source, now);
            state.users.count(counted.user, now);
        }
        state.pairs.count(counted.pair(), now);
        Ok(counted)
    }

    /// Refunds the failure, once for each `attempt` (its sealed state).
    pub(super) fn succeeded(&self, counted: Counted, attempt: &[u8], now: Instant) {
        let (now, digest) = (seconds(now), Sha256::digest(attempt).into());
        let mut state = self.state.lock();
        if state.was_finished(digest, now) {
            return;
        }
        state.pairs.refund(counted.pair());
        if !counted.known {
            state.sources.refund(counted.source);
            state.users.refund(counted.user);
        }
    }

    fn hash(&self, what: &[u8], bytes: &[u8]) -> u64 {
        let digest = Sha256::new().chain_update(self.seed).chain_update(what).chain_update(bytes).finalize();
        digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }
}

impl State {
    /// Whether the login was finished before; records it.
    fn was_finished(&mut self, digest: [u8; 32], now: u64) -> bool {
        while self.finished.front().is_some_and(|(at, _)| at + LIFETIME.as_secs() < now) {
            self.finished.pop_front();
        }
        if self.finished.iter().any(|(_, other)| *other == digest) {
            return true;
        }
        if self.finished.len() >= FINISHED_MAX {
            self.finished.pop_front();
        }
        self.finished.push_back((now, digest));
        false
    }
}

impl Counted {
    fn pair(self) -> u64 {
        self.user ^ self.source.rotate_left(32)
    }
}

fn seconds(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000_000
}

/// The bytes that identify a source: an IPv4 address, or an IPv6 network of 64 bits.
pub(super) fn location(source: IpAddr) -> [u8; 8] {
    let mut bytes = [0; 8];
    match source.to_canonical() {
        IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => bytes.copy_from_slice(&v6.octets()[..8]),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_rpc::Parts;
    use std::net::Ipv4Addr;

    fn at(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    fn rate_limit() -> RateLimit {
        RateLimit::new(&Parts::default().with_random(|out| out.fill(3)).shared())
    }

    fn from(n: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    fn alice() -> UserName {
        UserName::new("alice").unwrap()
    }

    #[test]
    fn a_source_that_guesses_slows_itself_and_nobody_else() {
        let rate_limit = rate_limit();
        let mut guesses = 0;
        for second in 0..86_400 {
            for _ in 0..5 {
                guesses += u32::from(rate_limit.begin(&alice(), from(1), false, at(second)).is_ok());
            }
            if second % 600 == 0 {
                let elsewhere = rate_limit.begin(&alice(), from(2), false, at(second)).unwrap();
                rate_limit.succeeded(elsewhere, &second.to_be_bytes(), at(second));
            }
        }
        assert!(guesses < 1500, "{guesses}");
    }

    #[test]
    fn guesses_from_many_sources_are_slowed_together_but_not_where_the_user_was_before() {
        let rate_limit = rate_limit();
        let mut guesses = 0;
        for second in 0..14_400u64 {
            for n in 0..4 {
                let source = from(u32::try_from(second).unwrap() * 4 + n);
                guesses += u32::from(rate_limit.begin(&alice(), source, false, at(second)).is_ok());
            }
            if second % 600 == 0 {
                let home = rate_limit.begin(&alice(), from(0xff_0001), true, at(second)).unwrap();
                rate_limit.succeeded(home, &second.to_be_bytes(), at(second));
            }
        }
        assert!(guesses < 4600, "{guesses}");
        let at_once =
            (0..100).filter(|n| rate_limit.begin(&alice(), from(0xff_0100 + n), false, at(14_400)).is_ok());
        assert!(at_once.count() < 10);
    }

    #[test]
    fn five_failures_are_free_and_the_wait_grows_and_is_forgotten() {
        let rate_limit = rate_limit();
        let tries = |second| rate_limit.begin(&alice(), from(1), false, at(second));
        for n in 0..6 {
            assert!(tries(100).is_ok(), "{n}");
        }
        assert_eq!(tries(100), Err(Delayed::OfPair));
        assert!(tries(101).is_ok());
        assert_eq!(tries(102), Err(Delayed::OfPair));
        assert!(tries(103).is_ok());
        for second in 103..4000 {
            let _ = tries(second);
        }
        assert_eq!((4000..4060).filter(|second| tries(*second).is_ok()).count(), 1);
        for _ in 0..6 {
            assert!(tries(6000).is_ok(), "forgotten");
        }
    }

    #[test]
    fn a_source_is_slowed_whomever_it_tries() {
        let rate_limit = rate_limit();
        let tries = (0..1000).filter(|n| {
            let user = UserName::new(&format!("user{n}")).unwrap();
            rate_limit.begin(&user, from(1), false, at(5)).is_ok()
        });
        assert_eq!(tries.count(), 31);
        assert_eq!(rate_limit.begin(&alice(), from(1), false, at(5)), Err(Delayed::OfTotals));
        assert!(rate_limit.begin(&alice(), from(1), true, at(5)).is_ok(), "who was here before");
        assert!(rate_limit.begin(&alice(), from(2), false, at(5)).is_ok());
    }

    #[test]
    fn few_share_the_delay_of_thousands_of_sources() {
        let rate_limit = rate_limit();
        for n in 0..2048 {
            for guess in 0..32 {
                let user = UserName::new(&format!("user{n}-{guess}")).unwrap();
                let _ = rate_limit.begin(&user, from(n), false, at(5));
            }
        }
        let refused = (0..1000u32).filter(|n| {
            let user = UserName::new(&format!("honest{n}")).unwrap();
            rate_limit.begin(&user, from(0xff_0000 + n), false, at(5)).is_err()
        });
        let refused = refused.count();
        assert!(refused < 50, "{refused}");
    }

    #[test]
    fn a_login_takes_back_one_failure_however_often_it_is_finished() {
        let rate_limit = rate_limit();
        let bob = UserName::new("bob").unwrap();
        let own = rate_limit.begin(&bob, from(1), false, at(5)).unwrap();
        let mut tries = 0;
        for n in 0..1000 {
            let user = UserName::new(&format!("user{n}")).unwrap();
            tries += u32::from(rate_limit.begin(&user, from(1), false, at(5)).is_ok());
            rate_limit.succeeded(own, b"the same", at(5));
        }
        assert_eq!(tries, 31);
    }

    #[test]
    fn memory_stays_bounded_under_a_flood() {
        let rate_limit = rate_limit();
        for n in 0..20_000u32 {
            let user = UserName::new(&format!("user{n}")).unwrap();
            if let Ok(counted) = rate_limit.begin(&user, from(n), false, at(5)) {
                rate_limit.succeeded(counted, &n.to_be_bytes(), at(5));
            }
        }
        let state = rate_limit.state.lock();
        assert_eq!((state.pairs.len(), state.sources.len(), state.users.len()), (PAIR_SLOTS, SLOTS, SLOTS));
        assert_eq!(state.finished.len(), FINISHED_MAX);
    }
}
