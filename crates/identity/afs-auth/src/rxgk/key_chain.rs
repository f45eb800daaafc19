//! Sequence of a connection's transport keys: `docs/protocol/rxgk.md` "7. Key numbers and rekeying".

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{Level, UnixTime};
use afs_rx::{SecurityError, Side};

use super::{ConnectionSeed, Lifetime, MasterKey, PacketKeys, code};

/// One end's view of the current key. Both ends begin with the same number; either may advance to the next, and the
/// other follows when it has verified a packet with it.
pub(super) struct KeyChain {
    derivation: Derivation,
    lifetime: Lifetime,
    current: u32,
    /// The highest number that the peer is known to use. This end never advances more than one beyond it, since the
    /// peer would refuse that.
    confirmed: u32,
    /// When the current key was first used.
    since: UnixTime,
    /// Bytes that the current key has protected, in both directions.
    bytes: u64,
    /// The keys derived so far, a few at most.
    made: Vec<(u32, Arc<PacketKeys>)>,
}

/// Inputs of the derivation of a key.
pub(super) struct Derivation {
    pub(super) master: MasterKey,
    pub(super) seed: ConnectionSeed,
    pub(super) level: Level,
    pub(super) side: Side,
}

/// How many numbers before the current one are still accepted. The protocol requires one, for packets in flight or
/// retransmitted; more helps a peer whose application reads one call late while others continue.
const OLDER: u32 = 3;

/// The current key, the next, and the older ones.
const MADE_MAX: usize = 2 + OLDER as usize;

/// Least time between two changes by this end. A peer may accept one older number only, and packets sealed before the
/// last change should have arrived by the next.
const SETTLED: Duration = Duration::from_secs(10);

impl KeyChain {
    pub(super) fn new(derivation: Derivation, lifetime: Lifetime, number: u32, now: UnixTime) -> Self {
        let made = Vec::with_capacity(2);
        Self { derivation, lifetime, current: number, confirmed: number, since: now, bytes: 0, made }
    }

    /// The number to send with.
    pub(super) const fn current(&self) -> u32 {
        self.current
    }

    /// TK with this number.
    pub(super) fn transport_key(&self, number: u32) -> Result<MasterKey, SecurityError> {
        self.derivation.master.transport_key(&self.derivation.seed, number)
    }

    /// The number and keys for sending `bytes` more; advances to new ones if the current ones are used up.
    pub(super) fn sending(
        &mut self,
        bytes: usize,
        now: UnixTime,
    ) -> Result<(u32, Arc<PacketKeys>), SecurityError> {
        let age = age(self.since, now);
        let may = self.confirmed == self.current && age >= SETTLED && self.current < u32::MAX;
        if may && self.lifetime.is_used_up(age, self.bytes) {
            self.begin(self.current + 1, now);
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let current = self.current;
        Ok((current, self.keys(current)?))
    }

    /// The number with these low 16 bits, if it is acceptable, and its keys.
    pub(super) fn receiving(&mut self, low_bits: u16) -> Result<(u32, Arc<PacketKeys>), SecurityError> {
        let number = self.number_of(low_bits)?;
        Ok((number, self.keys(number)?))
    }

    /// The number with these low 16 bits, if it is acceptable.
    fn number_of(&self, low_bits: u16) -> Result<u32, SecurityError> {
        let later = self.current.checked_add(1);
        let earlier = (1..=OLDER).filter_map(|back| self.current.checked_sub(back));
        let mut candidates = std::iter::once(self.current).chain(later).chain(earlier);
        candidates.find(|number| *number as u16 == low_bits).ok_or(code::BAD_KEY_NUMBER)
    }

    /// The keys of a number from [`KeyChain::number_of`].
    pub(super) fn keys(&mut self, number: u32) -> Result<Arc<PacketKeys>, SecurityError> {
        let known = self.made.iter().position(|(made, _)| *made == number);
        let at = match known {
            Some(at) => at,
            None => self.make(number)?,
        };
        self.made.get(at).map(|(_, keys)| keys.clone()).ok_or(code::INCONSISTENCY)
    }

    /// A packet with this number was verified: the peer has the key, and this end follows if the peer is ahead.
    pub(super) fn verified(&mut self, number: u32, bytes: usize, now: UnixTime) {
        self.confirmed = self.confirmed.max(number);
        if number > self.current {
            self.begin(number, now);
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    fn begin(&mut self, number: u32, now: UnixTime) {
        self.current = number;
        self.since = now;
        self.bytes = 0;
    }

    fn make(&mut self, number: u32) -> Result<usize, SecurityError> {
        let transport = self.transport_key(number)?;
        let keys = PacketKeys::new(self.derivation.level, &transport, self.derivation.side)?;
        if self.made.len() >= MADE_MAX {
            let oldest = self.made.iter().enumerate().min_by_key(|(_, (number, _))| *number);
            if let Some(at) = oldest.map(|(at, _)| at) {
                self.made.swap_remove(at);
            }
        }
        self.made.push((number, Arc::new(keys)));
        Ok(self.made.len() - 1)
    }
}

/// The wall clock may jump back; the age is zero then.
fn age(since: UnixTime, now: UnixTime) -> Duration {
    Duration::from_secs(now.secs.saturating_sub(since.secs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;
    use crate::rxgk::RxgkTime;
    use afs_rx::{Cid, Epoch};

    fn at(secs: u64) -> UnixTime {
        UnixTime { secs, nanos: 0 }
    }

    fn chain(number: u32, lifetime: Lifetime) -> KeyChain {
        let master = MasterKey::new(17, Secret::new(vec![1; 16])).unwrap();
        let seed = ConnectionSeed { epoch: Epoch(1), cid: Cid::of(4), start: RxgkTime(7) };
        let derivation = Derivation { master, seed, level: Level::Auth, side: Side::Client };
        KeyChain::new(derivation, lifetime, number, at(0))
    }

    fn accepted(chain: &KeyChain) -> Vec<u32> {
        (0..=u16::MAX).filter_map(|low_bits| chain.number_of(low_bits).ok()).collect()
    }

    #[test]
    fn numbers_at_the_ends_and_over_the_low_bits() {
        let none = Lifetime::default();
        assert_eq!(accepted(&chain(0, none)), [0, 1]);
        assert_eq!(accepted(&chain(2, none)), [0, 1, 2, 3]);
        let mut ends = accepted(&chain(u32::MAX, none));
        ends.sort_unstable();
        assert_eq!(ends, [u32::MAX - 3, u32::MAX - 2, u32::MAX - 1, u32::MAX]);
        let wrapped = chain(0x1_0000, none);
        assert_eq!(wrapped.number_of(0xffff), Ok(0xffff));
        assert_eq!(wrapped.number_of(1), Ok(0x1_0001));
        assert_eq!(wrapped.number_of(2), Err(code::BAD_KEY_NUMBER));
    }

    #[test]
    fn one_ahead_of_the_peer_and_no_further() {
        let mut chain = chain(0, Lifetime { seconds: 0, bytelife: 10 });
        assert_eq!(chain.sending(2000, at(5)).unwrap().0, 0);
        // Used up, but too soon after the last change, the connection's beginning.
        assert_eq!(chain.sending(2000, at(9)).unwrap().0, 0);
        assert_eq!(chain.sending(2000, at(10)).unwrap().0, 1);
        assert_eq!(chain.sending(2000, at(1000)).unwrap().0, 1);
        // A packet that the peer sent before it knew of the change is valid, and no confirmation.
        chain.verified(0, 100, at(1001));
        assert_eq!(chain.sending(2000, at(1001)).unwrap().0, 1);
        chain.verified(1, 100, at(1002));
        assert_eq!(chain.sending(2000, at(1002)).unwrap().0, 2);
    }

    #[test]
    fn following_begins_anew() {
        let mut chain = chain(0, Lifetime { seconds: 60, bytelife: 0 });
        chain.verified(1, 100, at(59));
        assert_eq!(chain.sending(10, at(118)).unwrap().0, 1);
        assert_eq!(chain.sending(10, at(119)).unwrap().0, 2);
        // The age does not grow when the clock is set back.
        chain.verified(2, 1, at(3));
        assert_eq!(chain.sending(10, at(3)).unwrap().0, 2);
    }

    #[test]
    fn the_last_number_stays() {
        let mut chain = chain(u32::MAX, Lifetime { seconds: 1, bytelife: 1 });
        assert_eq!(chain.sending(1000, at(1000)).unwrap().0, u32::MAX);
    }

    #[test]
    fn few_keys_are_kept() {
        let mut chain = chain(0, Lifetime::default());
        for number in 0..100 {
            chain.keys(number).unwrap();
            chain.verified(number, 1, at(0));
            let _ = chain.keys(number + 1).unwrap();
        }
        assert!(chain.made.len() <= MADE_MAX && chain.made.iter().any(|(number, _)| *number == 99));
    }
}
