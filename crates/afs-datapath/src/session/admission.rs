//! Counts of the requests of a drive, by address and in all, with their bounds.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

use super::DriveLimits;

/// Admits requests up to the drive's limits.
#[derive(Debug)]
pub(super) struct Admission(Mutex<Tally>);

#[derive(Debug)]
struct Tally {
    most: usize,
    most_per_address: usize,
    total: usize,
    /// No address with a count of 0.
    by_address: BTreeMap<IpAddr, usize>,
}

/// Counts one request until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
}

impl Admission {
    pub fn new(limits: &DriveLimits) -> Arc<Self> {
        let (most, most_per_address) = (limits.requests, limits.requests_per_address);
        Arc::new(Self(Mutex::new(Tally { most, most_per_address, total: 0, by_address: BTreeMap::new() })))
    }

    /// One more of an address; `None` if there are too many.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Permit> {
        let address = network(address);
        self.0.lock().add(address).then(|| Permit { admission: self.clone(), address })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().total
    }
}

impl Tally {
    fn add(&mut self, address: IpAddr) -> bool {
        let here = self.by_address.get(&address).copied().unwrap_or(0);
        if self.total >= self.most || here >= self.most_per_address {
            return false;
        }
        self.total += 1;
        self.by_address.insert(address, here + 1);
        true
    }

    fn remove(&mut self, address: IpAddr) {
        self.total -= 1;
        match self.by_address.get_mut(&address) {
            Some(here) if *here > 1 => *here -= 1,
            _ => _ = self.by_address.remove(&address),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.0.lock().remove(self.address);
    }
}

/// A host of IPv6 has all addresses of a /64 (RFC 4291, 2.5.1).
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_all_addresses_have_bounds() {
        let limits = DriveLimits { requests: 3, requests_per_address: 2, ..DriveLimits::default() };
        let admission = Admission::new(&limits);
        let admit = |address: &str| admission.admit(address.parse().unwrap());
        let held = [admit("2001:db8::1"), admit("2001:db8::2")];
        assert!(held.iter().all(Option::is_some));
        assert!(admit("2001:db8::3").is_none(), "the same network");
        let other = admit("192.0.2.1");
        assert!(other.is_some() && admit("192.0.2.2").is_none(), "in all");
        drop(held);
        assert_eq!(admission.count(), 1);
        assert!(admit("2001:db8::3").is_some());
    }
}
