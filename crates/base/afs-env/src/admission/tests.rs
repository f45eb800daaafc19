//! Which entries give way, and that nothing is left of those that are gone.

use std::collections::BTreeMap;

use super::*;

/// A table of which the test has the slots.
struct Table {
    admission: Admission<u32>,
    slots: BTreeMap<u32, Slot>,
    next: u32,
}

impl Table {
    fn new(bounds: Bounds) -> Self {
        Table { admission: Admission::new(bounds), slots: BTreeMap::new(), next: 0 }
    }

    fn enter(&mut self, origin: Origin) -> Option<u32> {
        let key = self.next;
        let entered = self.admission.enter(origin, key)?;
        self.next += 1;
        self.slots.insert(key, entered.slot);
        entered.instead.into_iter().for_each(|instead| self.leave(instead));
        Some(key)
    }

    fn raise(&mut self, key: u32, class: Class, origin: Origin) -> Result<Option<u32>, Full> {
        let slot = self.slots.get_mut(&key).unwrap();
        if self.admission.raise(slot, class, origin, key).is_ok() {
            return Ok(None);
        }
        let instead = self.admission.largest_beside(class, origin).ok_or(Full)?;
        self.leave(instead);
        self.admission.raise(self.slots.get_mut(&key).unwrap(), class, origin, key).map(|()| Some(instead))
    }

    fn leave(&mut self, key: u32) {
        self.admission.leave(self.slots.remove(&key).unwrap());
    }

    fn has(&self, key: u32) -> bool {
        self.slots.contains_key(&key)
    }

    fn count(&self) -> usize {
        assert_eq!(self.slots.len(), self.admission.tally().count());
        self.slots.len()
    }
}

fn v4(number: u32) -> Origin {
    Origin::of(std::net::Ipv4Addr::from(0x0a00_0000 + number).into())
}

/// A /64 within a /48.
fn v6(site: u32, network: u32) -> Origin {
    Origin::of(format!("2001:db8:{site:x}:{network:x}::1").parse().unwrap())
}

#[test]
fn of_many_networks_the_one_with_most_gives_way_and_a_host_with_few_loses_nothing() {
    let mut table = Table::new(Bounds::of(64, 4));
    let honest = table.enter(v4(200)).unwrap();
    for round in 0..400 {
        assert!(table.enter(v4(round % 20)).is_some());
        assert!(table.count() <= 64);
    }
    assert!(table.has(honest), "it has one, and others have more");
    for round in 0..400 {
        assert!(table.enter(v6(1, round)).is_some(), "hosts of one site");
    }
    assert!(table.has(honest), "a site is one network, whatever its hosts");
    for round in 0..100 {
        table.enter(v4(round)).unwrap();
    }
    assert!(!table.has(honest), "where more networks come than there are entries, the oldest gives way");
}

#[test]
fn at_the_bound_of_a_host_or_site_its_own_oldest_gives_way() {
    let mut table = Table::new(Bounds::of(100, 2));
    let keys: Vec<u32> = (0..8).map(|n| table.enter(v6(1, n / 2)).unwrap()).collect();
    let other = table.enter(v4(1)).unwrap();
    table.enter(v6(1, 2)).unwrap();
    assert!(!table.has(keys[4]) && table.has(keys[0]), "that of the host");
    table.enter(v6(1, 9)).unwrap();
    assert!(!table.has(keys[0]) && table.has(keys[1]) && table.has(other), "that of the site");
    assert_eq!(table.count(), 9);
    let mut proven = Table::new(Bounds::of(100, 1));
    let key = proven.enter(v4(1)).unwrap();
    assert_eq!(proven.raise(key, Class::Proven, v4(1)), Ok(None));
    assert!(proven.enter(v4(1)).is_none() && proven.enter(v4(2)).is_some());
}

#[test]
fn proven_entries_give_way_to_nobody_and_have_a_share_that_others_do_not_get() {
    let mut table = Table::new(Bounds::of(16, 64).with_proven(2));
    let known: Vec<u32> = (0..14).map(|n| table.enter(v4(n)).unwrap()).collect();
    assert!(known.iter().all(|key| table.raise(*key, Class::Known, v4(*key)) == Ok(None)));
    let more = table.enter(v4(20)).unwrap();
    assert_eq!(table.raise(more, Class::Known, v4(20)), Err(Full), "nobody has more than one");
    assert_eq!(table.raise(more, Class::Proven, v4(20)), Ok(None));
    let last = table.enter(v4(21)).unwrap();
    let newer = table.enter(v4(22)).unwrap();
    assert!(!table.has(last), "the unknown one gives way, and no known one");
    assert_eq!(table.raise(newer, Class::Proven, v4(22)), Ok(None));
    assert!(table.enter(v4(23)).is_none(), "nobody is left to give way");
    assert_eq!(table.raise(known[0], Class::Proven, v4(0)), Ok(None), "an entry is counted once");
    assert_eq!(table.raise(known[0], Class::Known, v4(0)), Ok(None), "what it was it stays");
    assert_eq!(table.slots[&known[0]].class(), Class::Proven);
}

#[test]
fn a_network_with_most_known_entries_gives_way_to_one_with_fewer() {
    let mut table = Table::new(Bounds::of(16, 64).with_proven(4));
    let known: Vec<u32> = (0..12).map(|n| table.enter(v4(n % 3)).unwrap()).collect();
    assert!(known.iter().all(|key| table.raise(*key, Class::Known, v4(key % 3)) == Ok(None)));
    let fourth = table.enter(v4(9)).unwrap();
    assert_eq!(table.raise(fourth, Class::Known, v4(9)), Ok(Some(known[0])));
    let own = table.enter(v4(1)).unwrap();
    assert_eq!(table.raise(own, Class::Known, v4(1)), Err(Full), "its own has as many as any");
}

#[test]
fn forged_addresses_are_one_network_and_are_counted_for_their_host_when_they_are_none() {
    let mut table = Table::new(Bounds::of(8, 2).with_proven(2));
    let keys: Vec<u32> = (0..8).map(|_| table.enter(Origin::FORGEABLE).unwrap()).collect();
    table.enter(Origin::FORGEABLE).unwrap();
    assert!(!table.has(keys[0]) && table.has(keys[1]), "the oldest of all");
    assert_eq!(table.admission.tally().networks(), 0);
    assert_eq!(table.raise(keys[1], Class::Known, v4(1)), Ok(None));
    assert_eq!(table.raise(keys[2], Class::Proven, v4(1)), Ok(None));
    assert_eq!(table.raise(keys[3], Class::Proven, v4(1)), Err(Full), "the host has two");
    assert!(table.has(keys[3]) && table.slots[&keys[3]].class() == Class::Unknown);
}

#[test]
fn an_entry_whose_turn_has_come_and_that_cannot_leave_is_the_youngest() {
    let mut table = Table::new(Bounds::of(3, 3));
    let keys: Vec<u32> = (0..3).map(|_| table.enter(v4(1)).unwrap()).collect();
    assert_eq!(table.admission.oldest(Class::Unknown), Some(keys[0]));
    table.admission.renew(table.slots.get_mut(&keys[0]).unwrap(), keys[0]);
    assert_eq!(table.admission.oldest(Class::Unknown), Some(keys[1]));
    assert_eq!(table.admission.oldest(Class::Proven), None);
    assert!(table.admission.is_full());
}

#[test]
fn nothing_is_left_of_entries_that_are_gone() {
    let mut table = Table::new(Bounds::of(50, 4).with_proven(10));
    for round in 0..2000_u32 {
        let origin = if round % 3 == 0 { v4(round % 40) } else { v6(round % 7, round % 31) };
        let Some(key) = table.enter(origin) else { continue };
        let class = [Class::Unknown, Class::Known, Class::Proven][(round % 5 / 2) as usize];
        let _ = table.raise(key, class, origin);
        if round % 4 == 0 {
            let first = *table.slots.keys().next().unwrap();
            table.leave(first);
        }
    }
    let keys: Vec<u32> = table.slots.keys().copied().collect();
    keys.into_iter().for_each(|key| table.leave(key));
    assert_eq!((table.count(), table.admission.tally().networks()), (0, 0));
    assert!(table.admission.crowds.iter().all(Crowd::is_empty));
}
