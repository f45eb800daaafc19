//! Drives with the capability by which a group of files is read there: shared by all layouts of the group, so that asking for one
//! capability renews them all.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use afs_datapath::capability::{Access, DriveId, Generation, Group, GroupTag};
use afs_rpc::Instant;
use afs_wire::ids::Fid;
use parking_lot::Mutex;

use super::super::capabilities::Given;
use super::super::offer::Offer;
use crate::identity::TokenId;

/// For whom, at which drive, for which files.
type SiteKey = (TokenId, DriveId, GroupTag);

/// A drive, and the capability for a group of files there.
pub(super) struct Site {
    key: SiteKey,
    pub offer: Offer,
    /// A file of the group, which stands for it where the capability is asked for again.
    pub fid: Fid,
    state: Mutex<State>,
}

struct State {
    given: Arc<Given>,
    /// What the drive binds chunks with now, at least: earlier bindings are void.
    valid_from: Generation,
    /// Whether it was used since the capability was given.
    is_used: bool,
    is_asked: bool,
    is_void: bool,
}

/// What a layout can do with a site now; of several sites the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Standing {
    /// It is used.
    Good,
    /// It is used; the caller asks for the capability again.
    Due,
    /// The capability has ended; the caller asks for it again.
    Ended,
    /// It has ended, and was asked for.
    Asked,
    /// What the layout says does not hold any more.
    Void,
}

impl Site {
    /// How a layout stands whose oldest binding is of a generation. Who is told that it is due, or has ended, must call
    /// [`Sites::renewals`].
    pub fn stand(&self, oldest: Generation, now: Instant) -> Standing {
        let mut state = self.state.lock();
        state.is_used = true;
        let is_over = now >= state.given.ends;
        if state.is_void || oldest < state.valid_from {
            return Standing::Void;
        }
        if !is_over && !state.given.is_due(now) {
            return Standing::Good;
        }
        match (is_over, std::mem::replace(&mut state.is_asked, true)) {
            (true, false) => Standing::Ended,
            (true, true) => Standing::Asked,
            (false, false) => Standing::Due,
            (false, true) => Standing::Good,
        }
    }

    /// The capability.
    pub fn given(&self) -> Arc<Given> {
        self.state.lock().given.clone()
    }

    /// The drive has refused a capability: another one is asked for before the next use, for it may be that one and not the chunk that
    /// is void.
    pub fn refused(&self, refused: &Arc<Given>, now: Instant) {
        let mut state = self.state.lock();
        if Arc::ptr_eq(&state.given, refused) && now < state.given.ends {
            state.given = Arc::new(Given { ends: now, ..(**refused).clone() });
        }
    }

    /// The capability was given again, with the oldest generation of what the drive still believes; `None`: it was not.
    pub fn renewed(&self, given: Option<(Given, Generation)>) {
        let mut state = self.state.lock();
        state.is_asked = false;
        match given.filter(|(given, _)| self.is_for(given)) {
            Some((given, valid_from)) => {
                state.valid_from = state.valid_from.max(valid_from);
                state.put(given);
            }
            None => state.is_void = true,
        }
    }

    /// It was not asked for after all, for the file server could not be reached: what is here is used until it ends.
    pub fn not_asked(&self, now: Instant) {
        let mut state = self.state.lock();
        state.is_asked = false;
        state.is_void |= now >= state.given.ends;
    }

    fn is_for(&self, given: &Given) -> bool {
        let (_, drive, tag) = self.key;
        let held = &given.capability;
        held.drive == drive && held.group == Group::Tagged(tag) && held.access.permits(Access::READ)
    }

    /// Whether it is worth asking for another capability where that costs no call.
    fn is_wanted(&self, now: Instant) -> bool {
        let state = self.state.lock();
        state.is_used && !state.is_asked && !state.is_void && state.given.is_half_over(now)
    }
}

impl State {
    fn put(&mut self, given: Given) {
        if given.ends >= self.given.ends {
            (self.given, self.is_used) = (Arc::new(given), false);
        }
    }
}

/// The sites of one file server's layouts. They live as long as layouts have them.
#[derive(Default)]
pub(super) struct Sites {
    table: BTreeMap<SiteKey, Weak<Site>>,
    /// Those that are gone are forgotten when there are so many.
    forget_at: usize,
}

impl Sites {
    /// The site of a capability that came with a layout of a file; `None` if that is for another drive, or for no group.
    pub fn given(&mut self, (token, fid): (TokenId, Fid), offer: Offer, given: Given) -> Option<Arc<Site>> {
        let Group::Tagged(tag) = given.capability.group else { return None };
        let key = (token, offer.drive, tag);
        if given.capability.drive != offer.drive {
            return None;
        }
        let known = self.table.get(&key).and_then(Weak::upgrade);
        if let Some(site) = known.filter(|site| site.offer == offer && !site.state.lock().is_void) {
            site.state.lock().put(given);
            return Some(site);
        }
        self.forget_unused();
        let (given, valid_from) = (Arc::new(given), Generation::default());
        let state = State { given, valid_from, is_used: false, is_asked: false, is_void: false };
        let site = Arc::new(Site { key, offer, fid, state: Mutex::new(state) });
        self.table.insert(key, Arc::downgrade(&site));
        Some(site)
    }

    /// Those whose capabilities are asked for, with others of the same user that were used since they were given and whose second
    /// half of life has begun: at most `most`, all of which count as asked for.
    pub fn renewals(&self, asked: Vec<Arc<Site>>, now: Instant, most: usize) -> Vec<Arc<Site>> {
        let Some(token) = asked.first().map(|site| site.key.0) else { return asked };
        let mut all = asked;
        let first = (token, DriveId(0), GroupTag([0; 12]));
        let of_user = self.table.range(first..).take_while(|(key, _)| key.0 == token);
        for site in of_user.filter_map(|(_, site)| site.upgrade()) {
            if all.len() >= most {
                break;
            }
            if site.is_wanted(now) {
                site.state.lock().is_asked = true;
                all.push(site);
            }
        }
        all
    }

    fn forget_unused(&mut self) {
        if self.table.len() >= self.forget_at {
            self.table.retain(|_, site| site.strong_count() > 0);
            self.forget_at = 64.max(2 * self.table.len());
        }
    }
}

#[cfg(test)]
mod tests;
