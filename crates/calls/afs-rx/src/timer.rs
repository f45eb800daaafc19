//! Binary heap of deadlines: one entry for each owner, corrected lazily.
//!
//! An owner whose deadline moves later keeps its entry: when that is due, the owner examines its timers and is
//! inserted again. Only a deadline that moves earlier moves the entry. The heap knows the position of each owner's
//! entry, so it never holds more entries than there are owners.

use crate::Instant;
use crate::slab::Key;

/// Owner of a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Connection(Key),
    Peer(Key),
}

impl Owner {
    fn kind(self) -> usize {
        match self {
            Owner::Connection(_) => 0,
            Owner::Peer(_) => 1,
        }
    }

    fn slot(self) -> usize {
        match self {
            Owner::Connection(key) | Owner::Peer(key) => key.slot as usize,
        }
    }
}

/// Invariant: `places[kind][slot]` is one more than the index of that owner's entry, or 0 without one.
#[derive(Default)]
pub(crate) struct Timers {
    heap: Vec<(Instant, Owner)>,
    places: [Vec<u32>; 2],
}

impl Timers {
    /// Makes sure that `owner` is due at `deadline` or before.
    pub(crate) fn arm(&mut self, owner: Owner, deadline: Instant) {
        if !deadline.is_set() {
            return;
        }
        let index = match self.place(owner) {
            Some(index) if self.heap[index].0 <= deadline && self.heap[index].1 == owner => return,
            Some(index) => {
                self.heap[index] = (deadline, owner);
                index
            }
            None => {
                self.heap.push((deadline, owner));
                self.heap.len() - 1
            }
        };
        self.restore_order(index);
    }

    /// Removes an owner.
    pub(crate) fn disarm(&mut self, owner: Owner) {
        if let Some(index) = self.place(owner) {
            self.remove(index);
        }
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|(deadline, _)| *deadline)
    }

    /// Removes the next owner that is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Owner> {
        let (deadline, owner) = *self.heap.first()?;
        if deadline > now {
            return None;
        }
        self.remove(0);
        Some(owner)
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    fn place(&self, owner: Owner) -> Option<usize> {
        let place = *self.places[owner.kind()].get(owner.slot())?;
        (place as usize).checked_sub(1)
    }

    fn note(&mut self, index: usize) {
        let owner = self.heap[index].1;
        let places = &mut self.places[owner.kind()];
        if places.len() <= owner.slot() {
            places.resize(owner.slot() + 1, 0);
        }
        places[owner.slot()] = index as u32 + 1;
    }

    fn remove(&mut self, index: usize) {
        let (_, owner) = self.heap.swap_remove(index);
        self.places[owner.kind()][owner.slot()] = 0;
        if index < self.heap.len() {
            self.restore_order(index);
        }
    }

    /// Restores the heap order around an entry.
    fn restore_order(&mut self, mut index: usize) {
        while index > 0 && self.heap[index].0 < self.heap[(index - 1) / 2].0 {
            self.swap(index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
        loop {
            let left = 2 * index + 1;
            let children = left..self.heap.len().min(left + 2);
            let Some(least) = children.min_by_key(|child| self.heap[*child].0) else { break };
            if self.heap[least].0 >= self.heap[index].0 {
                break;
            }
            self.swap(index, least);
            index = least;
        }
        self.note(index);
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.note(a);
        self.note(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(slot: u32) -> Owner {
        Owner::Connection(Key { slot, generation: 0 })
    }

    #[test]
    fn an_owner_has_one_entry_at_its_earliest_deadline() {
        let mut timers = Timers::default();
        for deadline in [10, 20, 5, 7] {
            timers.arm(owner(3), Instant(deadline));
        }
        assert_eq!((timers.len(), timers.next()), (1, Some(Instant(5))));
        assert_eq!(timers.pop_due(Instant(4)), None);
        assert_eq!(timers.pop_due(Instant(5)), Some(owner(3)));
        assert_eq!(timers.pop_due(Instant(99)), None);
    }

    #[test]
    fn a_new_tenant_of_a_slot_replaces_the_old_one() {
        let mut timers = Timers::default();
        let new = Owner::Connection(Key { slot: 3, generation: 1 });
        timers.arm(owner(3), Instant(5));
        timers.arm(new, Instant(9));
        assert_eq!((timers.len(), timers.next()), (1, Some(Instant(9))));
        timers.disarm(new);
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn timers_expire_in_order() {
        let mut timers = Timers::default();
        let mut state = 1u64;
        for round in 0..2000u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (slot, at) = ((state >> 40) as u32 % 300, Instant(state >> 50));
            match round % 5 {
                0 => timers.disarm(owner(slot)),
                _ => timers.arm(owner(slot), at),
            }
        }
        let mut last = Instant::ZERO;
        while let Some(next) = timers.next() {
            assert!(next >= last);
            last = next;
            assert!(timers.pop_due(next).is_some());
        }
        assert!(timers.places[0].iter().all(|place| *place == 0));
    }
}
