//! Bounded table of capabilities at one server, by token, group of objects and access.
//!
//! A capability is given to one identity. It is looked up by the token of the call that needs it, so that none serves a call
//! that another token, or none, would prove; a new token of the same user begins without capabilities.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{Access, Capability, Group, Refusal, Secret};
use afs_rpc::Instant;
use afs_wire::ids::Fid;

use super::doubts::Doubts;
use crate::identity::TokenId;

/// Most capabilities of one server, with those that are being asked for.
pub(super) const CAPABILITIES_MAX: usize = 1024;
/// How long no capability is asked for after one was not given, or several were refused as soon as they were given.
const REFUSED_FOR: Duration = Duration::from_secs(60);
/// A capability that is refused before it is this old is refused for what it permits, unless something has changed just then.
const YOUNG: Duration = Duration::from_secs(10);

/// What a capability is needed for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Use {
    Read,
    Write,
}

impl Use {
    pub fn access(self) -> Access {
        match self {
            Use::Read => Access::READ,
            Use::Write => Access::WRITE,
        }
    }
}

/// A file, and for whom and what for a capability is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub token: TokenId,
    pub fid: Fid,
    /// The directory in which the file was last seen.
    pub directory: Option<Fid>,
    pub used: Use,
}

/// A capability as the file server gave it.
pub(super) struct Given {
    /// Number of the capability among those of its table, which gives it.
    pub number: u64,
    pub capability: Capability,
    pub secret: Secret,
    /// When the call for it began. From then on its lifetime counts here, so that it ends here before it ends at the drive.
    pub asked: Instant,
    pub ends: Instant,
}

impl Given {
    /// Whether it is time for another: the last quarter of its life has begun.
    fn is_due(&self, now: Instant) -> bool {
        let life = self.ends.saturating_since(self.asked);
        self.ends.saturating_since(now) < life / 4
    }
}

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

type Key = (TokenId, Use, Group);

enum Slot {
    Asked,
    Here { given: Arc<Given>, renewing: bool, used: u64 },
    Refused { until: Instant },
}

/// The table.
#[derive(Default)]
pub(super) struct Capabilities {
    slots: BTreeMap<Key, Slot>,
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
                Some(Slot::Here { given, renewing, used }) if now < given.ends => {
                    *used = self.uses;
                    let is_due = given.is_due(now) && !std::mem::replace(renewing, true);
                    return if is_due { Lookup::Due(given.clone()) } else { Lookup::Here(given.clone()) };
                }
                Some(Slot::Refused { until }) if now < *until => return Lookup::Refused,
                Some(Slot::Asked) => return Lookup::Asked,
                _ => {}
            }
        }
        if !self.make_room(now) {
            return Lookup::Refused;
        }
        self.slots.insert(asked_as(need), Slot::Asked);
        Lookup::Missing
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
        self.given += 1;
        let given = Arc::new(Given { number: self.given, ..given });
        let group = given.capability.group;
        let known = keys(need).any(|(.., key)| key == group);
        let group = if known { group } else { Group::File(need.fid) };
        let key = (need.token, need.used, group);
        if self.slots.contains_key(&key) || self.make_room(now) {
            let used = self.uses;
            self.slots.insert(key, Slot::Here { given, renewing: false, used });
        }
    }

    /// For this file alone: another one of the directory may have another mode.
    fn refuse(&mut self, need: &Need, now: Instant) {
        let key = (need.token, need.used, Group::File(need.fid));
        if self.slots.contains_key(&key) || self.make_room(now) {
            self.slots.insert(key, Slot::Refused { until: now + REFUSED_FOR });
        }
    }

    /// The drive has refused a capability for a need.
    pub fn refused(&mut self, need: &Need, refused: &Arc<Given>, why: Refusal, now: Instant) {
        if matches!(why, Refusal::NotAllowed | Refusal::OtherObject | Refusal::OutOfRange) {
            return self.refuse(need, now);
        }
        let before = self.slots.len();
        self.slots.retain(|_, slot| !matches!(slot, Slot::Here { given, .. } if Arc::ptr_eq(given, refused)));
        let is_first = self.slots.len() < before;
        let is_young = now.saturating_since(refused.asked) < YOUNG;
        if is_first && is_young && self.doubts.note(need, now) {
            self.refuse(need, now);
        }
    }

    /// Whether there is a free slot, after the oldest one was given up if need be. None is given up that is being asked for.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.slots.len() < CAPABILITIES_MAX {
            return true;
        }
        self.slots.retain(|_, slot| match slot {
            Slot::Asked => true,
            Slot::Here { given, .. } => now < given.ends,
            Slot::Refused { until } => now < *until,
        });
        if self.slots.len() >= CAPABILITIES_MAX {
            let oldest = self.slots.iter().filter_map(|(key, slot)| Some((age(slot)?, *key))).min();
            oldest.map(|(_, key)| self.slots.remove(&key));
        }
        self.slots.len() < CAPABILITIES_MAX
    }
}

/// By what slots that may be given up are ordered: refusals first.
fn age(slot: &Slot) -> Option<u64> {
    match slot {
        Slot::Asked => None,
        Slot::Refused { .. } => Some(0),
        Slot::Here { used, .. } => Some(*used),
    }
}

/// Where a capability for a need may be: the file's own first.
fn keys(need: &Need) -> impl Iterator<Item = Key> + use<> {
    let Need { token, fid, directory, used } = *need;
    let groups = [Some(Group::File(fid)), directory.map(Group::Directory)];
    groups.into_iter().flatten().map(move |group| (token, used, group))
}

/// Under what it is noted that a need is being asked for: one call for all files of a directory.
fn asked_as(need: &Need) -> Key {
    (need.token, need.used, need.directory.map_or(Group::File(need.fid), Group::Directory))
}

#[cfg(test)]
mod tests {
    use afs_datapath::capability::{ByteRange, DriveId, Generation, HolderId, KeyEpoch};
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    fn file(vnode: u32) -> Fid {
        Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1))
    }

    fn need(token: u64, vnode: u32) -> Need {
        Need { token: TokenId(token), fid: file(vnode), directory: Some(file(1)), used: Use::Read }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn given(group: Group, asked: u64) -> Given {
        let capability = Capability {
            drive: DriveId(1),
            epoch: KeyEpoch(1),
            group,
            access: Access::READ,
            range: ByteRange::ALL,
            expires: 0,
            generation: Generation(0),
            holder: HolderId(0),
        };
        let secret = Secret::new([0; 32]);
        Given { number: 0, capability, secret, asked: at(asked), ends: at(asked + 300) }
    }

    /// Asks for a need, and gives it a capability.
    fn give(table: &mut Capabilities, need: Need, group: Group, now: u64) {
        assert!(matches!(table.look_up(&need, at(now)), Lookup::Missing));
        table.answered(&need, Some(given(group, now)), at(now));
    }

    fn is_here(table: &mut Capabilities, need: Need, now: u64) -> bool {
        matches!(table.look_up(&need, at(now)), Lookup::Here(_))
    }

    #[test]
    fn one_capability_serves_a_directory_and_one_user_for_one_use() {
        let mut table = Capabilities::default();
        give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
        assert!(is_here(&mut table, need(1, 2), 0) && is_here(&mut table, need(1, 4), 0));
        let others = [
            need(2, 2),
            Need { used: Use::Write, ..need(1, 2) },
            Need { directory: Some(file(3)), ..need(1, 2) },
            Need { token: TokenId::NONE, ..need(1, 2) },
        ];
        for other in others {
            assert!(matches!(table.look_up(&other, at(0)), Lookup::Missing), "{other:?}");
        }
    }

    #[test]
    fn a_capability_for_a_file_or_another_directory_serves_the_file_alone() {
        for group in [Group::File(file(2)), Group::Directory(file(9))] {
            let mut table = Capabilities::default();
            give(&mut table, need(1, 2), group, 0);
            assert!(is_here(&mut table, need(1, 2), 0));
            assert!(matches!(table.look_up(&need(1, 4), at(0)), Lookup::Missing));
        }
    }

    #[test]
    fn one_asks_and_asks_again_before_the_end_and_nobody_uses_it_afterwards() {
        let mut table = Capabilities::default();
        give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
        assert!(is_here(&mut table, need(1, 2), 225));
        assert!(matches!(table.look_up(&need(1, 2), at(226)), Lookup::Due(_)));
        assert!(is_here(&mut table, need(1, 4), 227), "another one asks already");
        assert!(matches!(table.look_up(&need(1, 2), at(300)), Lookup::Missing));
        assert!(matches!(table.look_up(&need(1, 4), at(300)), Lookup::Asked));
    }

    #[test]
    fn a_capability_that_is_not_given_again_is_used_to_its_end() {
        let mut table = Capabilities::default();
        give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
        assert!(matches!(table.look_up(&need(1, 2), at(250)), Lookup::Due(_)));
        table.answered(&need(1, 2), None, at(251));
        assert!(is_here(&mut table, need(1, 2), 299));
        assert!(matches!(table.look_up(&need(1, 2), at(300)), Lookup::Missing));
    }

    #[test]
    fn what_is_denied_is_not_asked_for_again_for_a_minute() {
        let mut table = Capabilities::default();
        assert!(matches!(table.look_up(&need(1, 2), at(0)), Lookup::Missing));
        table.answered(&need(1, 2), None, at(0));
        assert!(matches!(table.look_up(&need(1, 2), at(59)), Lookup::Refused));
        assert!(matches!(table.look_up(&need(1, 4), at(59)), Lookup::Missing), "another file");
        assert!(matches!(table.look_up(&need(1, 2), at(60)), Lookup::Asked), "by the same directory");
    }

    #[test]
    fn a_refused_capability_is_dropped_and_after_three_refused_at_once_no_other_is_asked_for() {
        for (age, is_refused) in [(100, [false; 4]), (1, [false, false, false, true])] {
            let mut table = Capabilities::default();
            for (round, is_refused) in is_refused.into_iter().enumerate() {
                let asked = round as u64 * (age + 1);
                let found = table.look_up(&need(1, 2), at(asked));
                assert_eq!(matches!(found, Lookup::Refused), is_refused, "{round}, after {age} s");
                assert_eq!(matches!(found, Lookup::Missing), !is_refused, "{round}, after {age} s");
                if is_refused {
                    continue;
                }
                table.answered(&need(1, 2), Some(given(Group::Directory(file(1)), asked)), at(asked));
                let now = at(asked + age);
                let Lookup::Here(held) = table.look_up(&need(1, 2), now) else { panic!("not here") };
                // Several transfers by the same one are refused at once.
                (0..5).for_each(|_| table.refused(&need(1, 2), &held, Refusal::Revoked, now));
            }
        }
        let mut table = Capabilities::default();
        give(&mut table, need(1, 2), Group::Directory(file(1)), 0);
        let Lookup::Here(held) = table.look_up(&need(1, 2), at(100)) else { panic!("not here") };
        table.refused(&need(1, 2), &held, Refusal::NotAllowed, at(100));
        assert!(matches!(table.look_up(&need(1, 2), at(100)), Lookup::Refused), "the mode of this file");
        assert!(is_here(&mut table, need(1, 4), 100));
    }

    #[test]
    fn the_table_is_bounded_and_what_is_used_stays() {
        let mut table = Capabilities::default();
        let of = |n: u32| Need { directory: Some(file(2 * n + 1)), ..need(1, 2 * n + 2) };
        for n in 0..3 * CAPABILITIES_MAX as u32 {
            give(&mut table, of(n), Group::Directory(file(2 * n + 1)), 0);
            assert!(is_here(&mut table, of(0), 0), "after {n}");
        }
        assert_eq!(table.slots.len(), CAPABILITIES_MAX);
        // Those that are being asked for are not given up, and no more are asked for then.
        let mut table = Capabilities::default();
        for n in 0..CAPABILITIES_MAX as u32 {
            assert!(matches!(table.look_up(&of(n), at(0)), Lookup::Missing));
        }
        assert!(matches!(table.look_up(&of(CAPABILITIES_MAX as u32), at(0)), Lookup::Refused));
    }
}
