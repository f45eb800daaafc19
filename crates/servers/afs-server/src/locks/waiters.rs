//! Clients that were refused a lock, in the order of asking.
//!
//! When the lock becomes free for the first of them it is told, and others are kept away until its reply: it has taken
//! the lock by then, or does not want it any more. A client that was refused in passing (a test without waiting) says so
//! in its turn.

use std::collections::{BTreeMap, VecDeque};

use afs_wire::ids::Fid;

use super::{Holder, LockMode};
use crate::hosts::HostId;

/// Most clients remembered for one object. Others ask again by themselves.
const OF_OBJECT_MAX: usize = 256;

/// All clients that wait. Bounded by the number of locks that the server holds at most.
#[derive(Default)]
pub(super) struct Waiters {
    of: BTreeMap<Fid, VecDeque<Waiter>>,
    count: usize,
}

#[derive(Clone, Copy)]
struct Waiter {
    holder: Holder,
    host: HostId,
    mode: LockMode,
    is_told: bool,
}

impl Waiters {
    /// Remembers a client that was refused. One that was told, and is refused all the same, loses its place.
    pub(super) fn add(&mut self, fid: Fid, holder: Holder, host: HostId, mode: LockMode, max: usize) {
        let known = self.of.get(&fid).into_iter().flatten().find(|waiter| waiter.holder == holder).copied();
        match known {
            Some(known) if !known.is_told && known.mode == mode => return,
            Some(_) => drop(self.remove(fid, holder)),
            None => {}
        }
        let queue = self.of.entry(fid).or_default();
        if queue.len() < OF_OBJECT_MAX && self.count < max {
            queue.push_back(Waiter { holder, host, mode, is_told: false });
            self.count += 1;
        }
    }

    /// Forgets a client; returns whether it was told.
    pub(super) fn remove(&mut self, fid: Fid, holder: Holder) -> bool {
        let Some(queue) = self.of.get_mut(&fid) else { return false };
        let at = queue.iter().position(|waiter| waiter.holder == holder);
        let removed = at.and_then(|at| queue.remove(at));
        self.count -= usize::from(removed.is_some());
        if queue.is_empty() {
            self.of.remove(&fid);
        }
        removed.is_some_and(|waiter| waiter.is_told)
    }

    /// Forgets a client that was told, after its reply.
    pub(super) fn replied(&mut self, fid: Fid, holder: Holder) {
        let mut waiters = self.of.get(&fid).into_iter().flatten();
        if waiters.any(|waiter| waiter.holder == holder && waiter.is_told) {
            self.remove(fid, holder);
        }
    }

    /// Whether a client that was told keeps another one's lock away.
    pub(super) fn keeps_away(&self, fid: Fid, holder: Holder, mode: LockMode) -> bool {
        let mut told = self.of.get(&fid).into_iter().flatten().filter(|waiter| waiter.is_told);
        told.any(|waiter| waiter.holder != holder && waiter.mode.conflicts_with(mode))
    }

    /// The clients to tell now: from the first one on all in whose way there is neither a lock nor who was told before.
    pub(super) fn call(
        &mut self,
        fid: Fid,
        is_held_against: impl Fn(Holder, LockMode) -> bool,
    ) -> Vec<(Holder, HostId)> {
        let Some(queue) = self.of.get_mut(&fid) else { return Vec::new() };
        let (mut called, mut told): (Vec<(Holder, HostId)>, Vec<LockMode>) = Default::default();
        for waiter in queue {
            let in_the_way = told.iter().any(|mode| mode.conflicts_with(waiter.mode));
            if in_the_way || is_held_against(waiter.holder, waiter.mode) {
                break;
            }
            told.push(waiter.mode);
            if !waiter.is_told {
                waiter.is_told = true;
                called.push((waiter.holder, waiter.host));
            }
        }
        called
    }

    /// Forgets those who wait for a deleted object.
    pub(super) fn forget(&mut self, fid: Fid) {
        self.count -= self.of.remove(&fid).map_or(0, |queue| queue.len());
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uuid, VolumeId};

    use super::*;

    const F: Fid = Fid::root(VolumeId(1));
    const MAX: usize = 1000;

    fn holder(number: u32) -> Holder {
        let mut name = [0; 16];
        name[..4].copy_from_slice(&number.to_be_bytes());
        Holder::Uuid(Uuid(name))
    }

    fn waiters(modes: &[LockMode]) -> Waiters {
        let mut waiters = Waiters::default();
        for (number, mode) in (0..).zip(modes) {
            waiters.add(F, holder(number), HostId(number), *mode, MAX);
        }
        waiters
    }

    fn call(waiters: &mut Waiters) -> Vec<u32> {
        waiters.call(F, |_, _| false).into_iter().map(|(_, host)| host.0).collect()
    }

    use LockMode::{Read, Write};

    #[test]
    fn the_first_is_told_and_keeps_others_away_until_its_reply() {
        let mut waiters = waiters(&[Write, Read, Read, Write]);
        assert!(waiters.call(F, |_, _| true).is_empty(), "it is not free");
        assert!(!waiters.keeps_away(F, holder(9), Write));
        assert_eq!(call(&mut waiters), [0]);
        assert!(call(&mut waiters).is_empty(), "told once");
        assert!(waiters.keeps_away(F, holder(9), Read) && !waiters.keeps_away(F, holder(0), Write));
        waiters.replied(F, holder(0));
        waiters.replied(F, holder(1));
        assert_eq!(call(&mut waiters), [1, 2], "readers together, and the writer behind them not yet");
        assert!(waiters.remove(F, holder(1)) && waiters.remove(F, holder(2)));
        assert_eq!(call(&mut waiters), [3]);
    }

    #[test]
    fn a_client_that_asks_again_keeps_its_place_unless_it_had_its_turn() {
        let mut waiters = waiters(&[Write, Write]);
        waiters.add(F, holder(0), HostId(0), Write, MAX);
        assert_eq!(call(&mut waiters), [0]);
        waiters.add(F, holder(0), HostId(0), Write, MAX);
        assert_eq!(call(&mut waiters), [1]);
        waiters.replied(F, holder(0));
        waiters.replied(F, holder(1));
        assert_eq!(call(&mut waiters), [0]);
    }

    #[test]
    fn those_who_wait_are_bounded_for_an_object_and_in_all() {
        let mut waiters = waiters(&[Write; OF_OBJECT_MAX + 10]);
        assert_eq!(waiters.count, OF_OBJECT_MAX);
        for volume in 2..2000 {
            waiters.add(Fid::root(VolumeId(volume)), holder(0), HostId(0), Write, MAX);
        }
        assert_eq!(waiters.count, MAX);
        waiters.forget(F);
        assert_eq!(waiters.count, MAX - OF_OBJECT_MAX);
    }
}
