//! Admission to a table with a bound: three classes with shares, and the oldest unproven entry of the network that has most gives way.
//!
//! The one rule for connections, calls and requests of hosts that anybody may be, with no clock and no socket. [`Tally`] counts
//! what is refused beyond its bounds; [`Admission`] knows, too, in which order its entries came, and which of them is to give way.
//! An attacker with many addresses so loses its own entries before those of a host that has a few.

mod crowd;
mod origin;
mod tally;

pub use origin::Origin;
pub use tally::{Bounds, Tally};

use crowd::Crowd;

/// What the host behind an entry has shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Nothing: its entry gives way first.
    Unknown,
    /// That it receives what is sent to its address, or has what a server gives to anybody who asks.
    Known,
    /// A key or a token of the cell. Its entry gives way to nobody.
    Proven,
}

/// The entries of a table. `K` is the table's own key of an entry.
#[derive(Debug)]
pub struct Admission<K> {
    tally: Tally,
    next: u64,
    /// The entries that may give way: those of [`Class::Unknown`] and of [`Class::Known`].
    crowds: [Crowd<K>; 2],
}

/// The entry of a table, counted until it is given to [`Admission::leave`].
#[derive(PartialEq, Eq, Debug)]
#[must_use = "it is counted until it leaves"]
pub struct Slot {
    class: Class,
    origin: Origin,
    turn: u64,
}

/// A new entry, and the key of the one that gives way to it: the caller removes that.
#[derive(Debug)]
pub struct Entered<K> {
    /// The new entry.
    pub slot: Slot,
    /// The entry that is to leave.
    pub instead: Option<K>,
}

impl Slot {
    /// What was shown so far.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }
}

impl<K: Copy> Admission<K> {
    /// An empty table.
    #[must_use]
    pub const fn new(bounds: Bounds) -> Self {
        Self { tally: Tally::new(bounds), next: 0, crowds: [Crowd::new(), Crowd::new()] }
    }

    /// Adds an entry of [`Class::Unknown`]. At the bound of its network the oldest unknown one of that gives way, and in a full table the
    /// oldest unknown one of the network that has most; `None` if there is none.
    pub fn enter(&mut self, origin: Origin, key: K) -> Option<Entered<K>> {
        let [unknown, _] = &self.crowds;
        let bounds = self.tally.bounds();
        let instead = if self.tally.of_host(origin) >= bounds.of_host {
            Some(unknown.oldest_of_host(origin)?)
        } else if self.tally.of_site(origin) >= bounds.of_site {
            Some(unknown.oldest_of_site(origin)?)
        } else if self.is_full() {
            Some(unknown.oldest()?)
        } else {
            None
        };
        let slot = self.add(Class::Unknown, origin, key);
        Some(Entered { slot, instead })
    }

    /// The host has shown more, or is known by its address now: the entry is counted anew, of the class and the network that are given.
    ///
    /// # Errors
    /// [`Full`]: the entry stays what it is. The share of its class is used up, where one of [`Admission::largest_beside`] may leave, or its
    /// network has as many as it may have.
    pub fn raise(&mut self, slot: &mut Slot, class: Class, origin: Origin, key: K) -> Result<(), Full> {
        if class <= slot.class {
            return Ok(());
        }
        let has_room = origin == slot.origin || self.tally.network_has_room(origin, 1);
        if !has_room || !self.tally.class_has_room(class, 1) {
            return Err(Full);
        }
        let raised = self.add(class, origin, key);
        self.leave(std::mem::replace(slot, raised));
        Ok(())
    }

    /// The oldest entry of the network that has most of a class, unless the network of `origin` would have as many with one more.
    #[must_use]
    pub fn largest_beside(&self, class: Class, origin: Origin) -> Option<K> {
        let crowd = self.crowds.get(class as usize)?;
        (crowd.largest() > crowd.of_site(origin) + 1).then(|| crowd.oldest()).flatten()
    }

    /// Removes an entry.
    #[expect(clippy::needless_pass_by_value, reason = "an entry leaves once")]
    pub fn leave(&mut self, slot: Slot) {
        self.tally.remove(slot.class, slot.origin, 1);
        if let Some(crowd) = crowd(&mut self.crowds, slot.class) {
            crowd.remove(slot.origin, slot.turn);
        }
    }

    /// The entry of a class that is to give way next: the oldest of the network that has most.
    #[must_use]
    pub fn oldest(&self, class: Class) -> Option<K> {
        self.crowds.get(class as usize)?.oldest()
    }

    /// Makes an entry the youngest of its network: its turn to give way came while it could not.
    pub fn renew(&mut self, slot: &mut Slot, key: K) {
        let Some(crowd) = crowd(&mut self.crowds, slot.class) else { return };
        crowd.remove(slot.origin, slot.turn);
        slot.turn = self.next;
        self.next += 1;
        crowd.insert(slot.origin, slot.turn, key);
    }

    /// Whether an entry has to leave before another enters.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.tally.count() >= self.tally.bounds().total
    }

    /// The counts.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Adds an entry whatever the bounds: the caller has compared them with [`Admission::tally`].
    pub fn add(&mut self, class: Class, origin: Origin, key: K) -> Slot {
        let turn = self.next;
        self.next += 1;
        self.tally.add(class, origin, 1);
        if let Some(crowd) = crowd(&mut self.crowds, class) {
            crowd.insert(origin, turn, key);
        }
        Slot { class, origin, turn }
    }
}

/// The share of its class, or of its network, is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no share of the table is left for it")]
pub struct Full;

fn crowd<K>(crowds: &mut [Crowd<K>; 2], class: Class) -> Option<&mut Crowd<K>> {
    crowds.get_mut(class as usize)
}

#[cfg(test)]
mod tests;
