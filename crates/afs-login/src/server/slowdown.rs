//! Slows down those who try passphrases.
//!
//! Memory is fixed: users and sources are counted in slots that a keyed hash chooses, so that a flood of made-up names
//! or addresses pushes nobody's count out. Two who share a slot share its delay.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Mutex;

use afs_auth::Random;
use afs_rpc::Instant;
use afs_rpc::sync::lock;
use sha2::{Digest, Sha256};

use crate::crypto::Randomness;
use crate::user::UserName;

/// Slots for users, and for sources: 64 KiB each.
const SLOTS: usize = 4096;
/// Pairs of user and source that have logged in, remembered at one time.
const KNOWN_MAX: usize = 4096;
/// Failures after which a slot is slowed: those of a user, and those of a source, where many users may sit.
const USER_FREE: u32 = 5;
const SOURCE_FREE: u32 = 30;
/// Longest wait between two attempts, in seconds.
const WAIT_MAX: u64 = 60;
/// After so many seconds without an attempt everything is forgotten.
const FORGET: u64 = 1800;

/// Counts attempts that have not succeeded.
pub(super) struct Slowdown {
    /// Keeps others from choosing who shares a slot with whom.
    seed: [u8; 32],
    state: Mutex<State>,
}

struct State {
    users: Vec<Slot>,
    sources: Vec<Slot>,
    /// A user who has logged in from a source before is not slowed by what others try in his name from elsewhere.
    known: VecDeque<(u64, Slot)>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    failures: u32,
    /// Seconds of the monotonic clock.
    last: u64,
}

impl Slot {
    fn may_try(&self, now: u64, free: u32) -> bool {
        let beyond = self.failures.saturating_sub(free);
        let wait =
            if beyond == 0 { 0 } else { 1u64.checked_shl(beyond - 1).unwrap_or(WAIT_MAX).min(WAIT_MAX) };
        now >= self.last.saturating_add(wait) || now >= self.last.saturating_add(FORGET)
    }

    fn count(&mut self, now: u64) {
        if now >= self.last.saturating_add(FORGET) {
            self.failures = 0;
        }
        // No higher than the wait grows, so that the way back is as short.
        self.failures = (self.failures + 1).min(SOURCE_FREE + 8);
        self.last = now;
    }

    fn refund(&mut self) {
        self.failures = self.failures.saturating_sub(1);
    }
}

/// Where an attempt is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counted {
    pub(super) user: u64,
    pub(super) source: u64,
}

impl Slowdown {
    pub(super) fn new(random: &Random) -> Self {
        let slots = || vec![Slot::default(); SLOTS];
        let state = State { users: slots(), sources: slots(), known: VecDeque::new() };
        Self { seed: Randomness(random).bytes(), state: Mutex::new(state) }
    }

    /// Counts an attempt as a failure until [`Slowdown::succeeded`] says otherwise. `None`: it is too early to try.
    /// `guessed`: whether somebody could be guessing what only this user knows.
    pub(super) fn begin(
        &self,
        user: &UserName,
        source: IpAddr,
        guessed: bool,
        now: Instant,
    ) -> Option<Counted> {
        let counted =
            Counted { user: self.hash(b"u", user.as_str().as_bytes()), source: self.source(source) };
        let now = now.as_nanos() / 1_000_000_000;
        let mut state = lock(&self.state);
        let (user, source) = state.slots(counted);
        if !source.may_try(now, SOURCE_FREE) || (guessed && !user.may_try(now, USER_FREE)) {
            return None;
        }
        source.count(now);
        if guessed {
            user.count(now);
        }
        Some(counted)
    }

    /// Takes the failure back.
    pub(super) fn succeeded(&self, counted: Counted, guessed: bool) {
        let mut state = lock(&self.state);
        let (user, source) = state.slots(counted);
        source.refund();
        if guessed {
            user.refund();
        }
        state.remember(counted);
    }

    /// Hosts in one IPv6 network of 64 bits are one.
    fn source(&self, source: IpAddr) -> u64 {
        match source.to_canonical() {
            IpAddr::V4(v4) => self.hash(b"4", &v4.octets()),
            IpAddr::V6(v6) => self.hash(b"6", &v6.octets()[..8]),
        }
    }

    fn hash(&self, what: &[u8], bytes: &[u8]) -> u64 {
        let digest = Sha256::new().chain_update(self.seed).chain_update(what).chain_update(bytes).finalize();
        digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }
}

impl State {
    /// The slots of user and source.
    fn slots(&mut self, counted: Counted) -> (&mut Slot, &mut Slot) {
        let pair = counted.pair();
        let user = match self.known.iter().position(|(known, _)| *known == pair) {
            Some(at) => &mut self.known[at].1,
            None => &mut self.users[slot(counted.user)],
        };
        (user, &mut self.sources[slot(counted.source)])
    }

    fn remember(&mut self, counted: Counted) {
        let pair = counted.pair();
        if self.known.iter().any(|(known, _)| *known == pair) {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.pop_front();
        }
        self.known.push_back((pair, Slot::default()));
    }
}

impl Counted {
    fn pair(self) -> u64 {
        self.user ^ self.source.rotate_left(32)
    }
}

fn slot(hash: u64) -> usize {
    // Far below the size of either type.
    (hash % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    fn at(secs: u64) -> Instant {
        Instant::from_nanos(secs * 1_000_000_000)
    }

    fn slowdown() -> Slowdown {
        let random: Random = Arc::new(|out| out.fill(3));
        Slowdown::new(&random)
    }

    fn from(n: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    #[test]
    fn a_user_is_slowed_from_wherever_the_attempts_come() {
        let (slowdown, alice) = (slowdown(), UserName::new("alice").unwrap());
        for n in 0..6 {
            assert!(slowdown.begin(&alice, from(n), true, at(100)).is_some(), "{n}");
        }
        assert!(slowdown.begin(&alice, from(9), true, at(100)).is_none());
        assert!(slowdown.begin(&alice, from(9), true, at(101)).is_some());
        assert!(slowdown.begin(&alice, from(9), true, at(102)).is_none());
        assert!(slowdown.begin(&alice, from(9), true, at(103)).is_some());
        assert!(slowdown.begin(&alice, from(9), false, at(103)).is_some(), "a key cannot be guessed");
        let a_day =
            (0..86_400).filter(|s| slowdown.begin(&alice, from(*s), true, at(200 + u64::from(*s))).is_some());
        assert!(a_day.count() < 1500);
        assert!(slowdown.begin(&alice, from(9), true, at(90_000)).is_some(), "forgotten");
    }

    #[test]
    fn who_was_here_before_is_not_shut_out_by_others() {
        let (slowdown, alice) = (slowdown(), UserName::new("alice").unwrap());
        let home = slowdown.begin(&alice, from(1), true, at(0)).unwrap();
        slowdown.succeeded(home, true);
        while slowdown.begin(&alice, from(2), true, at(1)).is_some() {}
        assert!(slowdown.begin(&alice, from(1), true, at(1)).is_some());
    }

    #[test]
    fn a_source_is_slowed_whomever_it_tries() {
        let slowdown = slowdown();
        let tries = (0..1000).filter(|n| {
            let user = UserName::new(&format!("user{n}")).unwrap();
            slowdown.begin(&user, from(1), true, at(5)).is_some()
        });
        assert_eq!(tries.count(), 31);
        let user = UserName::new("somebody").unwrap();
        assert!(slowdown.begin(&user, from(2), true, at(5)).is_some());
    }

    #[test]
    fn memory_stays_bounded_under_a_flood() {
        let slowdown = slowdown();
        for n in 0..20_000u32 {
            let user = UserName::new(&format!("user{n}")).unwrap();
            if let Some(counted) = slowdown.begin(&user, from(n), true, at(5)) {
                slowdown.succeeded(counted, true);
            }
        }
        let state = lock(&slowdown.state);
        assert_eq!((state.users.len(), state.sources.len(), state.known.len()), (SLOTS, SLOTS, KNOWN_MAX));
    }
}
