//! Which incoming calls are served, which wait, and which are sent away.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use crate::limits::Limits;

/// What to do with a call that has just arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Serve,
    Wait,
    Refuse,
}

/// The load of one peer. Absent from the map when it has neither running nor waiting calls.
struct Load<C> {
    running: usize,
    waiting: VecDeque<C>,
    /// Whether this peer stands in [`Admission::turns`].
    queued: bool,
}

impl<C> Default for Load<C> {
    fn default() -> Self {
        Self { running: 0, waiting: VecDeque::new(), queued: false }
    }
}

/// Counts calls per peer and in total. Peers that wait take turns, so a busy one does not hold up the others.
///
/// Invariant: a peer stands in `turns`, once, exactly if it has waiting calls and is below its own limit.
pub(crate) struct Admission<C> {
    limits: Limits,
    running: usize,
    waiting: usize,
    peers: BTreeMap<SocketAddr, Load<C>>,
    turns: VecDeque<SocketAddr>,
}

impl<C: Copy + PartialEq> Admission<C> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, running: 0, waiting: 0, peers: BTreeMap::new(), turns: VecDeque::new() }
    }

    /// A call arrives. `Serve` counts it as running; `Wait` remembers it.
    pub(crate) fn arrive(&mut self, peer: SocketAddr, call: C) -> Verdict {
        let load = self.peers.entry(peer).or_default();
        if load.running < self.limits.calls_per_peer
            && self.running < self.limits.calls
            && load.waiting.is_empty()
        {
            load.running += 1;
            self.running += 1;
            return Verdict::Serve;
        }
        if load.waiting.len() >= self.limits.waiting_per_peer || self.waiting >= self.limits.waiting {
            self.tidy(peer);
            return Verdict::Refuse;
        }
        load.waiting.push_back(call);
        self.waiting += 1;
        self.tidy(peer);
        Verdict::Wait
    }

    /// A running call of `peer` is over.
    pub(crate) fn depart(&mut self, peer: SocketAddr) {
        if let Some(load) = self.peers.get_mut(&peer) {
            load.running = load.running.saturating_sub(1);
            self.running = self.running.saturating_sub(1);
        }
        self.tidy(peer);
    }

    /// A waiting call ended before it was served. `false` if it was not waiting.
    pub(crate) fn forget(&mut self, peer: SocketAddr, call: C) -> bool {
        let Some(load) = self.peers.get_mut(&peer) else { return false };
        let Some(place) = load.waiting.iter().position(|c| *c == call) else { return false };
        load.waiting.remove(place);
        self.waiting -= 1;
        self.tidy(peer);
        true
    }

    /// The next waiting call that may run; it counts as running from here on.
    pub(crate) fn next(&mut self) -> Option<C> {
        while self.running < self.limits.calls {
            let peer = self.turns.pop_front()?;
            let Some(load) = self.peers.get_mut(&peer) else { continue };
            load.queued = false;
            let call =
                if load.running < self.limits.calls_per_peer { load.waiting.pop_front() } else { None };
            if let Some(call) = call {
                load.running += 1;
                self.running += 1;
                self.waiting -= 1;
                self.tidy(peer);
                return Some(call);
            }
            self.tidy(peer);
        }
        None
    }

    /// Restores the invariant for one peer, and forgets it when it has no calls.
    fn tidy(&mut self, peer: SocketAddr) {
        let Some(load) = self.peers.get_mut(&peer) else { return };
        if load.queued && load.waiting.is_empty() {
            load.queued = false;
            // Rare: its only waiting call died. At most `Limits::waiting` peers stand here.
            self.turns.retain(|p| *p != peer);
        }
        if load.running == 0 && load.waiting.is_empty() {
            self.peers.remove(&peer);
            return;
        }
        if !load.queued && !load.waiting.is_empty() && load.running < self.limits.calls_per_peer {
            load.queued = true;
            self.turns.push_back(peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn admission(calls: usize, per_peer: usize, waiting: usize) -> Admission<u32> {
        let limits =
            Limits { calls, calls_per_peer: per_peer, waiting, waiting_per_peer: 2, ..Limits::default() };
        Admission::new(limits)
    }

    #[test]
    fn a_peer_over_its_limit_waits_and_does_not_hold_up_others() {
        let mut gate = admission(3, 1, 10);
        assert_eq!(gate.arrive(peer(1), 1), Verdict::Serve);
        assert_eq!(gate.arrive(peer(1), 2), Verdict::Wait);
        assert_eq!(gate.next(), None, "the peer is at its own limit");
        assert_eq!(gate.arrive(peer(2), 3), Verdict::Serve);
        gate.depart(peer(1));
        assert_eq!(gate.next(), Some(2));
    }

    #[test]
    fn waiting_peers_take_turns() {
        let mut gate = admission(1, 1, 10);
        assert_eq!(gate.arrive(peer(9), 0), Verdict::Serve);
        for (port, call) in [(1, 11), (1, 12), (2, 21)] {
            assert_eq!(gate.arrive(peer(port), call), Verdict::Wait);
        }
        let mut order = Vec::new();
        let mut running = peer(9);
        for _ in 0..3 {
            gate.depart(running);
            let call = gate.next().unwrap();
            running = peer(u16::try_from(call / 10).unwrap());
            order.push(call);
        }
        assert_eq!(order, [11, 21, 12]);
    }

    #[test]
    fn what_exceeds_the_queue_is_refused_and_leaves_nothing_behind() {
        let mut gate = admission(1, 1, 1);
        assert_eq!(gate.arrive(peer(1), 1), Verdict::Serve);
        assert_eq!(gate.arrive(peer(2), 2), Verdict::Wait);
        assert_eq!(gate.arrive(peer(3), 3), Verdict::Refuse);
        assert!(gate.forget(peer(2), 2));
        gate.depart(peer(1));
        assert_eq!(gate.next(), None);
        assert!(gate.peers.is_empty() && gate.turns.is_empty());
        assert_eq!((gate.running, gate.waiting), (0, 0));
    }
}
