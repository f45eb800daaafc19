//! Capabilities that are asked for again together, before they end, and those that come with something else.

use afs_datapath::capability::Group;
use afs_rpc::Instant;
use afs_wire::fs::{CapabilityRequest, OWN_DRIVE};
use afs_wire::ids::Fid;

use super::Capabilities;
use super::given::Given;
use super::need::{Key, Need, Use, keys};
use super::slots::Slot;
use crate::identity::TokenId;

/// A capability that is being asked for again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renewal {
    key: Key,
    /// What it covers; another group is no renewal.
    group: Group,
    /// What stands for the group in a call.
    fid: Fid,
}

impl Renewal {
    fn of(key: Key, given: &Given) -> Option<Self> {
        let group = given.capability.group;
        let (Group::File(fid) | Group::Directory(fid)) = group else { return None };
        Some(Renewal { key, group, fid })
    }

    /// What it is used for.
    pub fn used(&self) -> Use {
        self.key.1
    }

    /// As a call asks for it.
    pub fn request(&self) -> CapabilityRequest {
        CapabilityRequest { fid: self.fid, access: self.used().wanted(), drive: OWN_DRIVE }
    }
}

impl Capabilities {
    /// The capability of a need that is due, and others of the same token that were used since they were given and whose
    /// second half of life has begun: at most `most`. They count as being asked for again.
    pub fn renewals(&mut self, need: &Need, now: Instant, most: usize) -> Vec<Renewal> {
        let is_here =
            |key: &Key| matches!(self.slots.get(key), Some(Slot::Here { given, .. }) if now < given.ends);
        let due = keys(need).find(is_here);
        let mut renewals = Vec::new();
        // The one that is due is the first: others may be more than fit.
        if let Some(key) = due
            && let Some(Slot::Here { given, .. }) = self.slots.get(&key)
        {
            renewals.extend(Renewal::of(key, given));
        }
        for (key, slot) in self.slots.iter_mut().filter(|(key, _)| key.0 == need.token && Some(**key) != due)
        {
            let Slot::Here { given, renewing, put, used } = slot else { continue };
            let is_wanted = !*renewing && used > put && now < given.ends && given.is_half_over(now);
            if let Some(renewal) = Renewal::of(*key, given).filter(|_| is_wanted && renewals.len() < most) {
                *renewing = true;
                renewals.push(renewal);
            }
        }
        renewals
    }

    /// A capability was given again; `None` if not: then the one that is here is used until it ends.
    pub fn renewed(&mut self, renewal: &Renewal, given: Option<Given>, now: Instant) {
        if let Some(given) = given.filter(|given| given.capability.group == renewal.group)
            && matches!(self.slots.get(&renewal.key), Some(Slot::Here { .. }))
        {
            self.put_at(renewal.key, given, now);
        }
    }

    /// Whether a capability to read the files of a directory is missing or about to end, and nobody asks for it.
    pub fn lacks(&self, token: TokenId, directory: Fid, now: Instant) -> bool {
        match self.slots.get(&(token, Use::Read, Group::Directory(directory))) {
            Some(Slot::Here { given, renewing, .. }) => {
                now >= given.ends || given.is_half_over(now) && !renewing
            }
            Some(Slot::Asked) => false,
            Some(Slot::Refused { .. }) | None => true,
        }
    }

    /// A capability to read the files of a directory came with something else. One that is asked for, or lives longer, stays.
    pub fn came(&mut self, token: TokenId, directory: Fid, given: Given, now: Instant) {
        let group = Group::Directory(directory);
        if given.capability.group == group && self.lacks(token, directory, now) {
            self.put_at((token, Use::Read, group), given, now);
        }
    }
}
