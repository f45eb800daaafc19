//! The sites of a volume and their addresses, as far as one call knows them.

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
    /// Not to be asked again before the next pause or relocation.
    passed: bool,
    busy: bool,
    /// The volume is off line there, or not known though it should be.
    unavailable: Option<ErrorKind>,
}

#[derive(Clone, Debug)]
struct Address {
    down: bool,
    tried: bool,
}

impl Sites {
    /// For each site, whether each of its addresses is thought to be down. Nothing was called yet.
    pub fn new(down: &[Vec<bool>]) -> Self {
        Sites { sites: views(down), at: None }
    }

    /// Sites in the place of these. What was called last is still known.
    pub fn replace(&mut self, down: &[Vec<bool>]) {
        self.sites = views(down);
    }

    /// Site and address that were called last.
    pub fn at(&self) -> Option<(usize, usize)> {
        self.at
    }

    /// Takes the best address that was not tried yet.
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

    /// The address that was called last does not answer.
    pub fn mark_down(&mut self) {
        if let Some(address) = self.address_at() {
            address.down = true;
        }
    }

    /// The site that was called last is not asked again before the next pause or relocation.
    pub fn pass(&mut self) {
        if let Some(site) = self.site_at() {
            site.passed = true;
        }
    }

    /// The volume is busy at the site that was called last.
    pub fn mark_busy(&mut self) {
        if let Some(site) = self.site_at() {
            site.busy = true;
        }
    }

    /// The volume is off line at the site that was called last, or not known there.
    pub fn mark_unavailable(&mut self, why: ErrorKind) {
        if let Some(site) = self.site_at() {
            site.unavailable = Some(why);
        }
    }

    /// Whether the volume is busy at any of them.
    pub fn is_any_busy(&self) -> bool {
        self.sites.iter().any(|site| site.busy)
    }

    /// Why the volume is not to be had at the first site that said so.
    pub fn why_unavailable(&self) -> Option<ErrorKind> {
        self.sites.iter().find_map(|site| site.unavailable)
    }

    /// Whether an address is thought to be down.
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
