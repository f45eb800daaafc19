//! Bounded table of capabilities at one server, by token, group of objects and access.
//!
//! A capability is given to one identity. It is looked up by the token of the call that needs it, so that none serves a call
//! that another token, or none, would prove; a new token of the same user begins without capabilities.

mod given;
mod need;
mod renewals;
mod slots;

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{Group, Refusal};
use afs_rpc::Instant;

pub(crate) use given::Given;
pub(crate) use need::{Need, Use};
pub(super) use renewals::Renewal;

use need::{Key, asked_as, keys};
use slots::{Slot, Slots};

use super::doubts::Doubts;

/// How long no capability is asked for after one was not given, or several were refused as soon as they were given.
const REFUSED_FOR: Duration = Duration::from_secs(60);
/// A capability that is refused before it is this old is refused for what it permits, unless something has changed just then.
const YOUNG: Duration = Duration::from_secs(10);

/// What the table has for a need.
pub(super) enum Lookup {
    Here(Arc<Given>),
    /// Here, and to be asked for again by who is told so.
    Due(Arc<Given>),
    /// Being asked for.
    Asked,
    /// To be asked for by who is told so.
    Missing,
    /// Not to be had for now.
    Refused,
}

/// The table.
#[derive(Default)]
pub(super) struct Capabilities {
    slots: Slots,
    doubts: Doubts,
    /// Counts capabilities.
    given: u64,
    /// Counts uses, for the order in which slots are given up.
    uses: u64,
}

impl Capabilities {
    /// The capability for a need. Who is told that it is missing or due must call [`Capabilities::answered`].
    pub fn look_up(&mut self, need: &Need, now: Instant) -> Lookup {
        self.uses += 1;
        for key in keys(need) {
            match self.slots.get_mut(&key) {
                Some(Slot::Here { given, renewing, used, .. }) if now < given.ends => {
                    *used = self.uses;
                    let is_due = given.is_due(now) && !std::mem::replace(renewing, true);
                    return if is_due { Lookup::Due(given.clone()) } else { Lookup::Here(given.clone()) };
                }
                Some(Slot::Refused { until }) if now < *until => return Lookup::Refused,
                Some(Slot::Asked) => return Lookup::Asked,
                _ => {}
            }
        }
        match self.slots.put(asked_as(need), Slot::Asked, now) {
            true => Lookup::Missing,
            false => Lookup::Refused,
        }
    }

    /// What the file server has replied to who asked for a need: `None` is a refusal, or no reply in time. A capability that is
    /// here is used until it ends, whatever the reply to the request for another one.
    pub fn answered(&mut self, need: &Need, reply: Option<Given>, now: Instant) {
        if matches!(self.slots.get(&asked_as(need)), Some(Slot::Asked)) {
            self.slots.remove(&asked_as(need));
        }
        match reply {
            Some(given) => self.put(need, given, now),
            None if self.has(need, now) => {}
            None => self.refuse(need, now),
        }
    }

    fn has(&self, need: &Need, now: Instant) -> bool {
        let is_valid =
            |key| matches!(self.slots.get(&key), Some(Slot::Here { given, .. }) if now < given.ends);
        keys(need).any(is_valid)
    }

    /// A group that is not the one by which the file is looked up here serves the file alone.
    fn put(&mut self, need: &Need, given: Given, now: Instant) {
        let group = given.capability.group;
        let known = keys(need).any(|(.., key)| key == group);
        let group = if known { group } else { Group::File(need.fid) };
        self.put_at((need.token, need.used, group), given, now);
    }

    fn put_at(&mut self, key: Key, given: Given, now: Instant) {
        self.given += 1;
        let given = Arc::new(Given { number: self.given, ..given });
        let slot = Slot::Here { given, renewing: false, put: self.uses, used: self.uses };
        self.slots.put(key, slot, now);
    }

    /// For this file alone: another one of the directory may have another mode.
    fn refuse(&mut self, need: &Need, now: Instant) {
        let slot = Slot::Refused { until: now + REFUSED_FOR };
        self.slots.put((need.token, need.used, Group::File(need.fid)), slot, now);
    }

    /// The drive cannot have the bytes of a file now: they are moved by calls for a while.
    pub fn leave_alone(&mut self, need: &Need, now: Instant) {
        self.refuse(need, now);
    }

    /// The drive has refused a capability for a need.
    pub fn refused(&mut self, need: &Need, refused: &Arc<Given>, why: Refusal, now: Instant) {
        if matches!(why, Refusal::NotAllowed | Refusal::OtherObject | Refusal::OutOfRange) {
            return self.refuse(need, now);
        }
        let is_first = self.slots.drop_given(refused);
        let is_young = now.saturating_since(refused.asked) < YOUNG;
        if is_first && is_young && self.doubts.note(need, now) {
            self.refuse(need, now);
        }
    }
}

#[cfg(test)]
mod tests;
