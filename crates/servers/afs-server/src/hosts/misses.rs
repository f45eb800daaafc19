//! Record of missed and late breaks, by client and by address: a client that was late is granted no promises
//! for a while, and gets a shorter break time-out the next time. Both effects grow with each miss and decay
//! over hours.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Seconds without promises after the first missed break; each further miss doubles them.
const PAUSE_SECONDS: u64 = 15;
/// The longest time without promises, in seconds.
const PAUSE_SECONDS_MAX: u64 = 3600;
/// Seconds after which one missed break is forgiven.
const FORGIVEN_SECONDS: u64 = 3600;
/// Seconds within which several missed breaks count as one.
const ONCE_SECONDS: u64 = 5;
/// Most missed breaks that are counted; more make no difference.
const MISSES_MAX: u32 = 12;
/// Most halvings of a client's break time-out.
const HALVINGS_MAX: u32 = 2;
/// AddressMisses with a record. Beyond that the record with the oldest last miss is dropped.
const ADDRESSES_MAX: usize = 4096;

/// The missed breaks of one client, or of one address. Times are seconds of the server's own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Misses {
    count: u32,
    last: u64,
}

impl Misses {
    /// Counts a break that was not answered in time.
    pub(crate) fn missed(&mut self, now: u64) {
        if self.count > 0 && now.saturating_sub(self.last) < ONCE_SECONDS {
            return;
        }
        *self = Misses { count: (self.remaining(now) + 1).min(MISSES_MAX), last: now };
    }

    /// Whether promises may be given at `now`.
    pub(crate) fn may_be_promised(self, now: u64) -> bool {
        let count = self.remaining(now);
        if count == 0 {
            return true;
        }
        let pause = (PAUSE_SECONDS << (count - 1)).min(PAUSE_SECONDS_MAX);
        now.saturating_sub(self.last) >= pause
    }

    /// The break time-out of this client; `full` is that of a client without count.
    pub(crate) fn timeout(self, full: Duration, now: u64) -> Duration {
        full / (1 << self.remaining(now).min(HALVINGS_MAX))
    }

    fn remaining(self, now: u64) -> u32 {
        let forgiven = now.saturating_sub(self.last) / FORGIVEN_SECONDS;
        self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

/// Records by address: count of clients at an address count for clients that appear there later without
/// authenticating, because names and ports cost nothing.
#[derive(Default)]
pub(crate) struct AddressMisses(BTreeMap<IpAddr, Misses>);

impl AddressMisses {
    /// Counts a missed break of a client at this address.
    pub(crate) fn missed(&mut self, address: IpAddr, now: u64) {
        if self.0.len() >= ADDRESSES_MAX
            && !self.0.contains_key(&address)
            && let Some(oldest) =
                self.0.iter().min_by_key(|(_, misses)| misses.last).map(|(address, _)| *address)
        {
            self.0.remove(&oldest);
        }
        self.0.entry(address).or_default().missed(now);
    }

    /// The initial record of a client that appears at this address.
    pub(crate) fn of(&self, address: IpAddr) -> Misses {
        self.0.get(&address).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Duration = Duration::from_secs(4);

    #[test]
    fn the_pause_grows_with_each_missed_break_up_to_an_hour() {
        let mut misses = Misses::default();
        let mut now = 100;
        for pause in [15, 30, 60, 120, 240, 480, 960, 1920, 3600] {
            misses.missed(now);
            assert!(!misses.may_be_promised(now + pause - 1), "{pause}");
            // An hour without a miss forgives one, and the pause before was half an hour.
            assert!(misses.may_be_promised(now + pause), "{pause}");
            now += pause.min(PAUSE_SECONDS_MAX - 1);
        }
    }

    #[test]
    fn the_patience_shrinks_to_a_quarter() {
        let mut misses = Misses::default();
        let mut seen = vec![misses.timeout(FULL, 0)];
        for now in [0, 10, 20, 30] {
            misses.missed(now);
            misses.missed(now + 4);
            seen.push(misses.timeout(FULL, now));
        }
        assert_eq!(seen, [4, 2, 1, 1, 1].map(Duration::from_secs));
    }

    #[test]
    fn missed_breaks_are_forgiven_by_the_hour() {
        let mut misses = Misses::default();
        misses.missed(0);
        misses.missed(10);
        assert_eq!(misses.timeout(FULL, 3610), FULL / 2);
        assert_eq!(misses.timeout(FULL, 7210), FULL);
    }

    #[test]
    fn addresses_are_bounded() {
        let mut addresses = AddressMisses::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..5000 {
            addresses.missed(address(n), u64::from(n));
        }
        assert_eq!(addresses.0.len(), ADDRESSES_MAX);
        assert_eq!(addresses.of(address(0)), Misses::default());
        assert_ne!(addresses.of(address(4999)), Misses::default());
    }
}
