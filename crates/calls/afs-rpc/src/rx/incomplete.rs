//! Anonymous callers' calls that are served while their requests are incomplete.
//!
//! They have a limit of their own, so that callers who begin requests and do not end them take no capacity from
//! complete ones: at the limit, the oldest of the network that has most is displaced.

use std::collections::BTreeMap;

use afs_env::admission::{Admission, Bounds, Slot};

use super::claimant::Claimant;
use crate::limits::Limits;

/// Calls with an incomplete request.
pub(crate) struct Incomplete<C> {
    admission: Admission<C>,
    calls: BTreeMap<C, (Claimant, Slot)>,
}

impl<C: Copy + Ord> Incomplete<C> {
    pub(crate) fn new(limits: Limits) -> Self {
        let bounds = Bounds::of(limits.incomplete.max(1), limits.calls_per_host.max(1));
        Self { admission: Admission::new(bounds), calls: BTreeMap::new() }
    }

    /// Adds a call. Returns the displaced one, if any: the oldest of the same host or site if that is at its limit, else the
    /// oldest of the network that has most.
    pub(crate) fn arrive(&mut self, claimant: Claimant, call: C) -> Option<(C, Claimant)> {
        let entered = self.admission.enter(claimant.origin, call)?;
        let displaced = entered.instead.and_then(|call| self.remove(call).map(|claimant| (call, claimant)));
        self.calls.insert(call, (claimant, entered.slot));
        displaced
    }

    /// Removes a call whose request is complete, or that is over. `None` for an unknown call.
    pub(crate) fn remove(&mut self, call: C) -> Option<Claimant> {
        let (claimant, slot) = self.calls.remove(&call)?;
        self.admission.leave(slot);
        Some(claimant)
    }
}

#[cfg(test)]
mod tests {
    use afs_env::admission::{Class, Origin};

    use super::*;

    fn host(number: u8) -> Claimant {
        Claimant { origin: Origin::of([10, 0, 0, number].into()), class: Class::Known }
    }

    #[test]
    fn the_oldest_of_a_host_that_has_its_fill_gives_way_else_that_of_the_network_with_most() {
        let limits = Limits { incomplete: 4, calls_per_host: 2, ..Limits::default() };
        let mut calls = Incomplete::new(limits);
        assert_eq!(calls.arrive(host(1), 1), None);
        assert_eq!(calls.arrive(host(2), 2), None);
        assert_eq!(calls.arrive(host(2), 3), None);
        assert_eq!(calls.arrive(host(2), 4), Some((2, host(2))));
        assert_eq!(calls.arrive(host(3), 5), None);
        assert_eq!(
            calls.arrive(host(4), 6),
            Some((3, host(2))),
            "the call of host 1 is older, and its only one"
        );
        assert_eq!(calls.remove(4), Some(host(2)));
        assert_eq!(calls.remove(4), None);
        assert_eq!(calls.arrive(host(3), 7), None);
        assert_eq!((calls.calls.len(), calls.admission.tally().count()), (4, 4));
    }
}
