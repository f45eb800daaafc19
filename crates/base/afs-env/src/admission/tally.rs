//! Counts by class and by network, with their bounds.

use std::collections::BTreeMap;

use super::{Class, Origin};

/// Bounds of a table, in entries or in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// All classes together.
    pub total: usize,
    /// The share of those that have shown nothing, which the known do not get. They may have more while others do not need it.
    pub unknown: usize,
    /// The share of those with a key or a token, which others do not get.
    pub proven: usize,
    /// One host: an IPv4 address, or a /64.
    pub of_host: usize,
    /// One site: a /48.
    pub of_site: usize,
}

/// Counts up to their bounds. What is at no known address ([`Origin::FORGEABLE`]) is counted for no network.
#[derive(Debug)]
pub struct Tally {
    bounds: Bounds,
    classes: [usize; 3],
    /// No host or site with a count of 0. Sites are those that are not one host.
    hosts: BTreeMap<u64, usize>,
    sites: BTreeMap<u64, usize>,
}

impl Bounds {
    /// So many in all and of one host, four times that of a site, and no shares.
    #[must_use]
    pub const fn of(total: usize, of_host: usize) -> Self {
        Self { total, unknown: 0, proven: 0, of_host, of_site: of_host.saturating_mul(HOSTS_OF_SITE) }
    }

    /// With a share for those who have a key or a token.
    #[must_use]
    pub const fn with_proven(self, proven: usize) -> Self {
        Self { proven, ..self }
    }

    /// With a share for those who have shown nothing.
    #[must_use]
    pub const fn with_unknown(self, unknown: usize) -> Self {
        Self { unknown, ..self }
    }

    /// Whether `amount` more fits, where the classes have these.
    #[must_use]
    pub const fn fits(&self, class: Class, classes: [usize; 3], amount: usize) -> bool {
        let [unknown, known, proven] = classes;
        let is_within = match class {
            Class::Known => known.saturating_add(amount) <= self.known_max(),
            Class::Unknown | Class::Proven => true,
        };
        is_within && (unknown + known + proven).saturating_add(amount) <= self.total
    }

    const fn known_max(&self) -> usize {
        self.total.saturating_sub(self.proven).saturating_sub(self.unknown)
    }
}

impl Tally {
    /// Nothing, so far.
    #[must_use]
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, classes: [0; 3], hosts: BTreeMap::new(), sites: BTreeMap::new() }
    }

    /// Counts an amount, unless a bound is reached.
    #[must_use]
    pub fn take(&mut self, class: Class, origin: Origin, amount: usize) -> bool {
        let fits = self.fits(class, amount) && self.network_has_room(origin, amount);
        if fits {
            self.add(class, origin, amount);
        }
        fits
    }

    /// Whether a class has room for an amount, whatever its network.
    #[must_use]
    pub const fn fits(&self, class: Class, amount: usize) -> bool {
        self.bounds.fits(class, self.classes, amount)
    }

    /// Counts an amount whatever the bounds.
    pub fn add(&mut self, class: Class, origin: Origin, amount: usize) {
        self.classes[class as usize] += amount;
        if origin == Origin::FORGEABLE {
            return;
        }
        *self.hosts.entry(origin.host_number()).or_default() += amount;
        if origin.is_within() {
            *self.sites.entry(origin.site_number()).or_default() += amount;
        }
    }

    /// An amount that was taken is given back.
    pub fn remove(&mut self, class: Class, origin: Origin, amount: usize) {
        self.classes[class as usize] -= amount;
        if origin == Origin::FORGEABLE {
            return;
        }
        less(&mut self.hosts, origin.host_number(), amount);
        if origin.is_within() {
            less(&mut self.sites, origin.site_number(), amount);
        }
    }

    /// Everything.
    #[must_use]
    pub const fn count(&self) -> usize {
        let [unknown, known, proven] = self.classes;
        unknown + known + proven
    }

    /// What a class has.
    #[must_use]
    pub const fn of(&self, class: Class) -> usize {
        self.classes[class as usize]
    }

    /// Networks with something.
    #[must_use]
    pub fn networks(&self) -> usize {
        self.hosts.len() + self.sites.len()
    }

    pub(super) const fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Whether an entry that is counted already may be counted for another class.
    pub(super) const fn class_has_room(&self, class: Class, amount: usize) -> bool {
        let [_, known, _] = self.classes;
        self.bounds.fits(class, [0, known, 0], amount)
    }

    /// Whether a network has room for an amount, whatever its class.
    #[must_use]
    pub fn network_has_room(&self, origin: Origin, amount: usize) -> bool {
        self.of_host(origin).saturating_add(amount) <= self.bounds.of_host
            && self.of_site(origin).saturating_add(amount) <= self.bounds.of_site
    }

    pub(super) fn of_host(&self, origin: Origin) -> usize {
        self.hosts.get(&origin.host_number()).copied().unwrap_or(0)
    }

    /// 0 for an IPv4 address, which has the bound of a host.
    pub(super) fn of_site(&self, origin: Origin) -> usize {
        match origin.is_within() {
            true => self.sites.get(&origin.site_number()).copied().unwrap_or(0),
            false => 0,
        }
    }
}

fn less(counts: &mut BTreeMap<u64, usize>, network: u64, amount: usize) {
    match counts.get_mut(&network) {
        Some(here) if *here > amount => *here -= amount,
        _ => _ = counts.remove(&network),
    }
}

/// What a site may have, in hosts.
const HOSTS_OF_SITE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Origin {
        Origin::of(text.parse().unwrap())
    }

    #[test]
    fn a_host_a_site_and_all_have_bounds() {
        let mut tally = Tally::new(Bounds::of(10, 2));
        let mut take = |text: &str| tally.take(Class::Known, at(text), 1);
        assert!(take("2001:db8:1::1") && take("2001:db8:1::2") && !take("2001:db8:1::3"), "a /64");
        for network in 1..4 {
            assert!((0..2).all(|_| take(&format!("2001:db8:1:{network}::1"))));
        }
        assert!(!take("2001:db8:1:4::1"), "a /48");
        assert!(take("192.0.2.1") && take("192.0.2.1") && !take("192.0.2.1"));
        assert!(!take("192.0.2.2"), "in all");
        tally.remove(Class::Known, at("2001:db8:1::9"), 1);
        assert!(tally.take(Class::Known, at("192.0.2.2"), 1));
        assert_eq!((tally.count(), tally.networks()), (10, 4 + 1 + 2));
    }

    #[test]
    fn each_class_has_its_share() {
        let bounds = Bounds::of(16, 16).with_proven(4).with_unknown(2);
        let mut tally = Tally::new(bounds);
        assert!(!tally.take(Class::Known, at("192.0.2.1"), 11), "six are for the others");
        assert!(
            tally.take(Class::Known, at("192.0.2.1"), 10) && !tally.take(Class::Known, at("192.0.2.2"), 1)
        );
        assert!(
            tally.take(Class::Proven, at("192.0.2.2"), 4) && tally.take(Class::Unknown, at("192.0.2.3"), 2)
        );
        assert!(
            !tally.take(Class::Proven, at("192.0.2.2"), 1) && !tally.take(Class::Unknown, at("192.0.2.3"), 1)
        );
        assert_eq!(Class::Unknown.max(Class::Proven), Class::Proven);
        assert_eq!([tally.of(Class::Unknown), tally.of(Class::Known), tally.of(Class::Proven)], [2, 10, 4]);
    }
}
