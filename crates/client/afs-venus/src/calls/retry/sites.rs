//! Sites of a volume and their addresses, as known to one call.

use crate::error::ErrorKind;

/// Sites in order of preference, and the address that was called last.
#[derive(Clone, Debug)]
pub(super) struct Sites {
    sites: Vec<Site>,
    at: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
struct Site {
    addresses: Vec<Address>,
    /// Not to be called before the next pause or relocation.
    passed: bool,
    busy: bool,
    /// Why the volume is not available there: off line, or unknown though the location service lists it.
    unavailable: Option<ErrorKind>,
}

#[derive(Clone, Debug)]
struct Address {
    down: bool,
    tried: bool,
}

impl Sites {
    /// For each address of each site, whether it is unreachable. None has been called.
    pub fn new(down: &[Vec<bool>]) -> Self {
        Sites { sites: views(down), at: None }
    }

    /// Replaces the sites. The address called last is kept.
    pub fn replace(&mut self, down: &[Vec<bool>]) {
        self.sites = views(down);
    }

    /// Site and address called last.
    pub fn at(&self) -> Option<(usize, usize)> {
        self.at
    }

    /// Takes the best address not yet tried.
    pub fn take(&mut self) -> Option<(usize, usize)> {
        let at = self.best()?;
        self.at = Some(at);
        if let Some(address) = self.address_at() {
            address.tried = true;
        }
        Some(at)
    }

    fn best(&self) -> Option<(usize, usize)> {
        let open = self.sites.iter().enumerate().filter(|(_, site)| !site.passed);
        let mut addresses = open
            .flat_map(|(s, site)| site.addresses.iter().enumerate().map(move |(a, address)| (s, a, address)));
        addresses.find(|(_, _, address)| !address.down && !address.tried).map(|(s, a, _)| (s, a))
    }

    /// Marks the address called last as unreachable.
    pub fn mark_down(&mut self) {
        if let Some(address) = self.address_at() {
            address.down = true;
        }
    }

    /// Skips the site called last until the next pause or relocation.
    pub fn pass(&mut self) {
        if let Some(site) = self.site_at() {
            site.passed = true;
        }
    }

    /// Marks the volume as busy at the site called last.
    pub fn mark_busy(&mut self) {
        if let Some(site) = self.site_at() {
            site.busy = true;
        }
    }

    /// Marks the volume as off line or unknown at the site called last.
    pub fn mark_unavailable(&mut self, why: ErrorKind) {
        if let Some(site) = self.site_at() {
            site.unavailable = Some(why);
        }
    }

    /// True if the volume is busy at any site.
    pub fn is_any_busy(&self) -> bool {
        self.sites.iter().any(|site| site.busy)
    }

    /// Why the volume is not available, by the first site that reported it.
    pub fn why_unavailable(&self) -> Option<ErrorKind> {
        self.sites.iter().find_map(|site| site.unavailable)
    }

    /// True if any address is unreachable.
    pub fn is_any_down(&self) -> bool {
        self.sites.iter().any(|site| site.addresses.iter().any(|address| address.down))
    }

    fn site_at(&mut self) -> Option<&mut Site> {
        self.at.and_then(|(site, _)| self.sites.get_mut(site))
    }

    fn address_at(&mut self) -> Option<&mut Address> {
        let (_, address) = self.at?;
        self.site_at()?.addresses.get_mut(address)
    }
}

fn views(down: &[Vec<bool>]) -> Vec<Site> {
    let address = |&down: &bool| Address { down, tried: false };
    let site = |addresses: &Vec<bool>| Site {
        addresses: addresses.iter().map(address).collect(),
        passed: false,
        busy: false,
        unavailable: None,
    };
    down.iter().map(site).collect()
}
