//! Admission control: fair queue of incoming calls per claimant, with limits on running and waiting ones.

use std::collections::{BTreeMap, VecDeque};

use afs_env::admission::{Bounds, Class};

use super::claimant::Claimant;
use crate::limits::Limits;

/// Decision about a call that has just arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Serve,
    Wait,
    Refuse,
}

/// Load of one claimant. Absent from the map when it has neither running nor waiting calls.
struct Load<C> {
    running: usize,
    waiting: VecDeque<C>,
    /// Whether this claimant is in [`Share::turns`].
    queued: bool,
}

impl<C> Default for Load<C> {
    fn default() -> Self {
        Self { running: 0, waiting: VecDeque::new(), queued: false }
    }
}

/// Counts of all authenticated callers, or of all anonymous ones.
#[derive(Default)]
struct Share {
    running: usize,
    waiting: usize,
    turns: VecDeque<Claimant>,
}

/// Counts calls per claimant, per share and in total. Claimants with waiting calls take turns, so that a busy one
/// does not delay the others; a quarter of every limit is reserved for authenticated callers.
///
/// Invariant: a claimant is in its share's `turns`, once, exactly if it has waiting calls and is below its own limit.
pub(crate) struct Admission<C> {
    limits: Limits,
    loads: BTreeMap<Claimant, Load<C>>,
    /// The share of anonymous callers, and that of authenticated ones.
    shares: [Share; 2],
    /// Which share has the next turn.
    next_class: Class,
}

impl<C: Copy + PartialEq> Admission<C> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, loads: BTreeMap::new(), shares: Default::default(), next_class: Class::Proven }
    }

    /// Admits, queues or refuses a new call. `Serve` counts it as running; `Wait` queues it.
    pub(crate) fn arrive(&mut self, claimant: Claimant, call: C) -> Verdict {
        let (room, queue) = (self.has_room(claimant.class), self.has_queue(claimant.class));
        let load = self.loads.entry(claimant).or_default();
        if room && load.running < self.limits.calls_per_host && load.waiting.is_empty() {
            self.count_running(claimant);
            return Verdict::Serve;
        }
        if !queue || load.waiting.len() >= self.limits.waiting_per_host {
            self.restore_invariant(claimant);
            return Verdict::Refuse;
        }
        load.waiting.push_back(call);
        self.share(claimant.class).waiting += 1;
        self.restore_invariant(claimant);
        Verdict::Wait
    }

    /// Counts a call that is running already, whatever the limits.
    pub(crate) fn count_running(&mut self, claimant: Claimant) {
        self.loads.entry(claimant).or_default().running += 1;
        self.share(claimant.class).running += 1;
    }

    /// A running call of `claimant` has ended.
    pub(crate) fn depart(&mut self, claimant: Claimant) {
        if let Some(load) = self.loads.get_mut(&claimant) {
            load.running = load.running.saturating_sub(1);
            let share = self.share(claimant.class);
            share.running = share.running.saturating_sub(1);
        }
        self.restore_invariant(claimant);
    }

    /// A waiting call ended before it was served. `false` if it was not waiting.
    pub(crate) fn forget(&mut self, claimant: Claimant, call: C) -> bool {
        let Some(load) = self.loads.get_mut(&claimant) else { return false };
        let Some(place) = load.waiting.iter().position(|c| *c == call) else { return false };
        load.waiting.remove(place);
        self.share(claimant.class).waiting -= 1;
        self.restore_invariant(claimant);
        true
    }

    /// The next waiting call that may run; it is counted as running.
    pub(crate) fn next(&mut self) -> Option<C> {
        let first = self.next_class;
        let (class, call) =
            [first, other(first)].into_iter().find_map(|class| Some((class, self.next_of(class)?)))?;
        self.next_class = other(class);
        Some(call)
    }

    fn next_of(&mut self, class: Class) -> Option<C> {
        while self.has_room(class) {
            let claimant = self.share(class).turns.pop_front()?;
            let Some(load) = self.loads.get_mut(&claimant) else { continue };
            load.queued = false;
            let below = load.running < self.limits.calls_per_host;
            let call = if below { load.waiting.pop_front() } else { None };
            if call.is_some() {
                self.share(class).waiting -= 1;
                self.count_running(claimant);
            }
            self.restore_invariant(claimant);
            if call.is_some() {
                return call;
            }
        }
        None
    }

    fn share(&mut self, class: Class) -> &mut Share {
        share(&mut self.shares, class)
    }

    fn has_room(&self, class: Class) -> bool {
        fits(class, self.limits.calls, self.shares.each_ref().map(|share| share.running))
    }

    fn has_queue(&self, class: Class) -> bool {
        fits(class, self.limits.waiting, self.shares.each_ref().map(|share| share.waiting))
    }

    /// Restores the invariant for one claimant, and removes it when it has no calls.
    fn restore_invariant(&mut self, claimant: Claimant) {
        let Some(load) = self.loads.get_mut(&claimant) else { return };
        let share = share(&mut self.shares, claimant.class);
        if load.queued && load.waiting.is_empty() {
            load.queued = false;
            // Rare: its only waiting call ended. The queue holds at most `Limits::waiting` claimants.
            share.turns.retain(|other| *other != claimant);
        }
        if load.running == 0 && load.waiting.is_empty() {
            self.loads.remove(&claimant);
            return;
        }
        if !load.queued && !load.waiting.is_empty() && load.running < self.limits.calls_per_host {
            load.queued = true;
            share.turns.push_back(claimant);
        }
    }
}

fn share(shares: &mut [Share; 2], class: Class) -> &mut Share {
    let [anonymous, authenticated] = shares;
    if class == Class::Proven { authenticated } else { anonymous }
}

/// The other of the two classes that callers have.
fn other(class: Class) -> Class {
    if class == Class::Proven { Class::Known } else { Class::Proven }
}

/// Whether one more fits under `max`, of which a quarter is reserved for authenticated callers.
fn fits(class: Class, max: usize, [anonymous, authenticated]: [usize; 2]) -> bool {
    Bounds::of(max, max).with_proven(max / 4).fits(class, [0, anonymous, authenticated], 1)
}

#[cfg(test)]
mod tests {
    use afs_env::admission::Origin;

    use super::*;

    fn peer(number: u8) -> Claimant {
        Claimant { origin: Origin::of([10, 0, 0, number].into()), class: Class::Proven }
    }

    fn anonymous(number: u8) -> Claimant {
        Claimant { class: Class::Known, ..peer(number) }
    }

    fn admission(calls: usize, per_peer: usize, waiting: usize) -> Admission<u32> {
        let limits =
            Limits { calls, calls_per_host: per_peer, waiting, waiting_per_host: 2, ..Limits::default() };
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
            running = peer(u8::try_from(call / 10).unwrap());
            order.push(call);
        }
        assert_eq!(order, [11, 21, 12]);
    }

    #[test]
    fn a_call_beyond_the_queue_is_refused_and_leaves_no_state_behind() {
        let mut gate = admission(1, 1, 1);
        assert_eq!(gate.arrive(peer(1), 1), Verdict::Serve);
        assert_eq!(gate.arrive(peer(2), 2), Verdict::Wait);
        assert_eq!(gate.arrive(peer(3), 3), Verdict::Refuse);
        assert!(gate.forget(peer(2), 2));
        gate.depart(peer(1));
        assert_eq!(gate.next(), None);
        assert!(gate.loads.is_empty());
        for share in &gate.shares {
            assert_eq!((share.running, share.waiting, share.turns.len()), (0, 0, 0));
        }
    }

    #[test]
    fn unproven_callers_leave_a_quarter_to_proven_ones() {
        let mut gate = admission(8, 2, 8);
        let mut verdicts = Vec::new();
        for number in 1..=20 {
            for call in 0..2 {
                verdicts.push(gate.arrive(anonymous(number), 1000 + u32::from(number) * 10 + call));
            }
        }
        let count = |of| verdicts.iter().filter(|verdict| **verdict == of).count();
        assert_eq!((count(Verdict::Serve), count(Verdict::Wait)), (6, 6));
        assert_eq!(gate.arrive(peer(1), 1), Verdict::Serve);
        assert_eq!(gate.arrive(peer(2), 2), Verdict::Serve);
        assert_eq!(gate.arrive(peer(2), 3), Verdict::Wait);
        gate.depart(anonymous(1));
        assert_eq!(gate.next(), Some(3), "the known wait for the known only");
    }

    #[test]
    fn both_shares_have_their_turns() {
        let mut gate = admission(4, 4, 100);
        for call in 0..4 {
            assert_eq!(gate.arrive(peer(9), call), Verdict::Serve);
        }
        for call in [11, 12] {
            gate.arrive(peer(1), call);
            gate.arrive(anonymous(1), 100 + call);
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            gate.depart(peer(9));
            order.extend(gate.next());
        }
        assert_eq!(order, [11, 111, 12, 112]);
    }
}
