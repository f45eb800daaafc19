//! Queue of anonymous callers' calls that are served while their requests are incomplete.
//!
//! They have a limit of their own, so that callers who begin requests and do not end them take no capacity from
//! complete ones: at the limit, the oldest is displaced.

use std::collections::{BTreeMap, VecDeque};

use super::claimant::Claimant;
use crate::limits::Limits;

/// Calls with an incomplete request, in the order of their arrival.
pub(crate) struct Incomplete<C> {
    limits: Limits,
    calls: BTreeMap<C, Claimant>,
    order: VecDeque<C>,
}

impl<C: Copy + Ord> Incomplete<C> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, calls: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Adds a call. Returns the displaced one, if any: the oldest of the same host if that is at its limit, else the
    /// oldest of all.
    pub(crate) fn arrive(&mut self, claimant: Claimant, call: C) -> Option<(C, Claimant)> {
        let of_host = self.calls.values().filter(|other| **other == claimant).count();
        let displaced = if of_host >= self.limits.calls_per_host {
            self.order.iter().find(|other| self.calls.get(other) == Some(&claimant)).copied()
        } else if self.calls.len() >= self.limits.incomplete {
            self.order.front().copied()
        } else {
            None
        };
        let displaced = displaced.and_then(|call| self.remove(call).map(|claimant| (call, claimant)));
        self.calls.insert(call, claimant);
        self.order.push_back(call);
        displaced
    }

    /// Removes a call whose request is complete, or that is over. `None` for an unknown call.
    pub(crate) fn remove(&mut self, call: C) -> Option<Claimant> {
        let claimant = self.calls.remove(&call)?;
        self.order.retain(|other| *other != call);
        Some(claimant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> Claimant {
        Claimant { host: [10, 0, 0, number].into(), known: false }
    }

    #[test]
    fn the_oldest_of_a_host_that_has_its_fill_gives_way_else_the_oldest_of_all() {
        let limits = Limits { incomplete: 3, calls_per_host: 2, ..Limits::default() };
        let mut calls = Incomplete::new(limits);
        assert_eq!(calls.arrive(host(1), 1), None);
        assert_eq!(calls.arrive(host(2), 2), None);
        assert_eq!(calls.arrive(host(2), 3), None);
        assert_eq!(calls.arrive(host(2), 4), Some((2, host(2))));
        assert_eq!(calls.arrive(host(3), 5), Some((1, host(1))));
        assert_eq!(calls.remove(4), Some(host(2)));
        assert_eq!(calls.remove(4), None);
        assert_eq!(calls.arrive(host(3), 6), None);
        assert_eq!((calls.calls.len(), calls.order.len()), (3, 3));
    }
}
