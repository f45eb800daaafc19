//! Table of the calls in progress, of the slowest that ended lately, and of the times of all by server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use afs_rpc::Instant;
use parking_lot::Mutex;

/// How long an ended call is one of the slowest.
const SLOW_FOR: Duration = Duration::from_secs(300);
/// Limit of the slowest calls.
const SLOW_MAX: usize = 16;
/// Most peers whose calls are counted. Those of another one are not.
const PEERS_MAX: usize = 4096;

/// A call to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TimedCall {
    pub operation: &'static str,
    pub peer: SocketAddr,
    pub begun: Instant,
}

/// A call that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EndedCall {
    pub call: TimedCall,
    pub ended: Instant,
    pub has_failed: bool,
}

impl EndedCall {
    pub fn took(&self) -> Duration {
        self.ended.saturating_since(self.call.begun)
    }
}

/// The calls to one address that ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PeerTimes {
    pub calls: u64,
    pub failed: u64,
    pub total: Duration,
}

/// The table. Its size is bounded by the calls in progress and the known servers.
#[derive(Default)]
pub(crate) struct CallTimes(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    next: u64,
    in_progress: BTreeMap<u64, TimedCall>,
    /// The slowest first.
    slowest: Vec<EndedCall>,
    peers: BTreeMap<SocketAddr, PeerTimes>,
}

/// Entry of a call in progress, which is removed with this value. A call that is abandoned counts nowhere.
pub(crate) struct CallTimer<'a> {
    times: &'a CallTimes,
    id: u64,
}

impl CallTimes {
    pub fn begin(&self, call: TimedCall) -> CallTimer<'_> {
        let mut inner = self.0.lock();
        inner.next += 1;
        let id = inner.next;
        inner.in_progress.insert(id, call);
        CallTimer { times: self, id }
    }

    /// Calls in progress, the oldest first; at most `most`.
    pub fn in_progress(&self, most: usize) -> Vec<TimedCall> {
        let mut calls: Vec<TimedCall> = self.0.lock().in_progress.values().copied().collect();
        calls.sort_by_key(|call| call.begun);
        calls.truncate(most);
        calls
    }

    /// The slowest calls that ended lately, slowest first.
    pub fn slowest(&self, now: Instant) -> Vec<EndedCall> {
        let mut inner = self.0.lock();
        inner.drop_old(now);
        inner.slowest.clone()
    }

    /// The calls to an address that ended.
    pub fn of_peer(&self, peer: SocketAddr) -> PeerTimes {
        self.0.lock().peers.get(&peer).copied().unwrap_or_default()
    }
}

impl CallTimer<'_> {
    /// Records the end of the call.
    pub fn end(self, ended: Instant, has_failed: bool) {
        let mut inner = self.times.0.lock();
        if let Some(call) = inner.in_progress.remove(&self.id) {
            inner.note(EndedCall { call, ended, has_failed });
        }
    }
}

impl Drop for CallTimer<'_> {
    fn drop(&mut self) {
        self.times.0.lock().in_progress.remove(&self.id);
    }
}

impl Inner {
    fn note(&mut self, ended: EndedCall) {
        if self.peers.len() < PEERS_MAX || self.peers.contains_key(&ended.call.peer) {
            let times = self.peers.entry(ended.call.peer).or_default();
            times.calls += 1;
            times.failed += u64::from(ended.has_failed);
            times.total += ended.took();
        }
        self.drop_old(ended.ended);
        let at = self.slowest.partition_point(|other| other.took() >= ended.took());
        if at < SLOW_MAX {
            self.slowest.insert(at, ended);
            self.slowest.truncate(SLOW_MAX);
        }
    }

    fn drop_old(&mut self, now: Instant) {
        self.slowest.retain(|call| now.saturating_since(call.ended) <= SLOW_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn call(begun: u64) -> TimedCall {
        TimedCall { operation: "FetchStatus", peer: ([10, 0, 0, 1], 7000).into(), begun: at(begun) }
    }

    #[test]
    fn a_call_is_in_progress_until_it_ends_or_is_abandoned() {
        let times = CallTimes::default();
        let (first, second) = (times.begin(call(5)), times.begin(call(3)));
        assert_eq!(times.in_progress(9), [call(3), call(5)]);
        assert_eq!(times.in_progress(1), [call(3)]);
        first.end(at(25), true);
        drop(second);
        assert_eq!(times.in_progress(9), []);
        let peer = times.of_peer(call(0).peer);
        assert_eq!((peer.calls, peer.failed, peer.total), (1, 1, Duration::from_millis(20)));
    }

    #[test]
    fn peers_whose_calls_are_counted_are_bounded() {
        let times = CallTimes::default();
        let of = |n: usize| {
            let ip = std::net::Ipv4Addr::from_bits(n as u32);
            TimedCall { peer: (ip, 7000).into(), ..call(0) }
        };
        (0..2 * PEERS_MAX).for_each(|n| times.begin(of(n)).end(at(1), false));
        times.begin(of(0)).end(at(1), false);
        assert_eq!(times.0.lock().peers.len(), PEERS_MAX);
        let counted = [0, PEERS_MAX].map(|n| times.of_peer(of(n).peer).calls);
        assert_eq!(counted, [2, 0]);
    }

    #[test]
    fn the_slowest_of_the_last_minutes_are_kept() {
        let times = CallTimes::default();
        for took in 1..100 {
            times.begin(call(0)).end(at(took), false);
        }
        let slowest: Vec<u128> = times.slowest(at(100)).iter().map(|call| call.took().as_millis()).collect();
        assert_eq!(slowest, (84..100).rev().collect::<Vec<u128>>());
        times.begin(call(200_000)).end(at(200_001), false);
        assert_eq!(times.slowest(at(200_002)).len(), SLOW_MAX);
        // The call of one millisecond is one of the slowest once the others are old.
        times.begin(call(300_200)).end(at(300_201), false);
        assert_eq!(times.slowest(at(300_202)).len(), 1);
        assert_eq!(times.slowest(at(700_000)), []);
    }
}
