//! Requests of a drive that are in progress, counted by address and in all. None gives way: each is half done.

use std::net::IpAddr;
use std::sync::Arc;

use afs_env::admission::{Class, Origin, Tally};
use parking_lot::Mutex;

use super::DriveLimits;
use super::connection_table::bounds;

/// Admits requests up to the drive's limits.
#[derive(Debug)]
pub(super) struct Admission(Mutex<Tally>);

/// Counts one request until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    class: Class,
    origin: Origin,
}

impl Admission {
    pub fn new(limits: &DriveLimits) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Tally::new(bounds(limits.requests, limits.requests_per_address)))))
    }

    /// One more of an address, on a connection of that class; `None` if there are too many.
    pub fn admit(self: &Arc<Self>, class: Class, address: IpAddr) -> Option<Permit> {
        let origin = Origin::of(address);
        let fits = self.0.lock().take(class, origin, 1);
        fits.then(|| Permit { admission: self.clone(), class, origin })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().count()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.0.lock().remove(self.class, self.origin, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_all_addresses_have_bounds() {
        let limits = DriveLimits { requests: 4, requests_per_address: 2, ..DriveLimits::default() };
        let admission = Admission::new(&limits);
        let admit = |class, address: &str| admission.admit(class, address.parse().unwrap());
        let held = ["2001:db8::1", "2001:db8::2"].map(|address| admit(Class::Known, address));
        assert!(held.iter().all(Option::is_some));
        assert!(admit(Class::Known, "2001:db8::3").is_none(), "the same network");
        let other = admit(Class::Known, "192.0.2.1");
        assert!(other.is_some() && admit(Class::Known, "192.0.2.2").is_none(), "one is for servers");
        let server = admit(Class::Proven, "192.0.2.2");
        assert!(server.is_some() && admit(Class::Proven, "192.0.2.3").is_none(), "in all");
        drop(held);
        assert_eq!(admission.count(), 2);
        assert!(admit(Class::Known, "2001:db8::3").is_some());
    }
}
