//! Memberships of `prdb.DB0`, which records each in the group and in the member.

use std::collections::{BTreeMap, BTreeSet};

use afs_wire::ids::ViceId;

use super::chains::Records;
use super::nesting;
use super::slot::{Continuation, Record};
use crate::import::finding::Findings;
use crate::protection::{Entry, GROUPS_MAX, MEMBERS_MAX};

/// Continuations of member lists by address; removed as their lists are followed.
pub(super) type Continuations = BTreeMap<u32, Continuation>;

/// A member and a group it is in.
pub(super) type Membership = (ViceId, ViceId);

/// The memberships recorded in groups, and those recorded in members.
struct Sides {
    of_groups: Vec<Membership>,
    of_members: Vec<Membership>,
}

/// All memberships recorded on either side, sorted by member. Only those between `entries` count.
pub(super) fn memberships(
    records: &Records,
    mut continuations: Continuations,
    entries: &BTreeMap<ViceId, (u32, Entry)>,
    findings: &mut Findings,
) -> Vec<Membership> {
    let mut sides = Sides { of_groups: Vec::new(), of_members: Vec::new() };
    for (at, _) in entries.values() {
        if let Some(record) = records.get(at) {
            sides.take(*at, record, &mut continuations, findings);
        }
    }
    for (at, lost) in &continuations {
        findings.damage(*at, format!("nothing leads to this list of members of {}", lost.of.0));
    }
    let mut union = sides.union(entries, findings);
    bounded(&mut union, entries, findings);
    nesting::flatten(&mut union, entries, findings);
    union
}

impl Sides {
    /// Adds the memberships recorded in one entry.
    fn take(&mut self, at: u32, record: &Record, continuations: &mut Continuations, findings: &mut Findings) {
        let id = record.id;
        let listed = list(at, id, &record.members, record.next, continuations, findings);
        if record.group {
            self.of_groups.extend(listed.map(|member| (member, id)));
            let groups = list(at, id, &record.groups, record.next_group, continuations, findings);
            self.of_members.extend(groups.map(|group| (id, group)));
        } else {
            self.of_members.extend(listed.map(|group| (id, group)));
        }
    }

    /// The union of both sides, with findings for memberships on one side only.
    fn union(self, entries: &BTreeMap<ViceId, (u32, Entry)>, findings: &mut Findings) -> Vec<Membership> {
        let sorted = |mut side: Vec<Membership>| {
            side.sort_unstable();
            side.dedup();
            side
        };
        let (of_groups, of_members) = (sorted(self.of_groups), sorted(self.of_members));
        let mut union = [of_groups.as_slice(), &of_members].concat();
        union.sort_unstable();
        union.dedup();
        union.retain(|membership| possible(*membership, entries, findings));
        for (member, group) in &union {
            let at = |id| entries.get(id).map_or(0, |(at, _)| *at);
            let (member, group, address) = (member.0, group.0, at(group));
            let key = (ViceId(member), ViceId(group));
            if of_members.binary_search(&key).is_err() {
                findings.difference(address, format!("only group {group} says that {member} is in it"));
            } else if of_groups.binary_search(&key).is_err() {
                findings.difference(address, format!("only {member} says that it is in group {group}"));
            }
        }
        union
    }
}

/// A list with its continuations.
fn list<'a>(
    at: u32,
    id: ViceId,
    first: &'a [ViceId],
    next: u32,
    continuations: &mut Continuations,
    findings: &mut Findings,
) -> impl Iterator<Item = ViceId> + use<'a> {
    let mut more = Vec::new();
    let (mut from, mut next) = (at, next);
    while next != 0 {
        // Removed, so that no list is followed twice or in a circle.
        let Some(found) = continuations.remove(&next).filter(|found| found.of == id) else {
            let text =
                format!("the list of members of {} goes on at address {next}, where no more of it is", id.0);
            findings.damage(from, text);
            break;
        };
        (from, next) = (next, found.next);
        more.extend(found.members);
    }
    first.iter().copied().chain(more)
}

/// Whether a membership is valid: both entries exist, the group is a group, and not one of those without a
/// member list.
fn possible(
    (member, group): Membership,
    entries: &BTreeMap<ViceId, (u32, Entry)>,
    findings: &mut Findings,
) -> bool {
    let everybody = |id| matches!(id, ViceId::ANYUSER | ViceId::AUTHUSER);
    let why = if !entries.contains_key(&member) || !entries.contains_key(&group) {
        "one of them is not there"
    } else if !group.is_group() || member == group {
        "that is no group it can be in"
    } else if everybody(member) || everybody(group) || member == ViceId::ANONYMOUS {
        "system:anyuser, system:authuser and anonymous take part in no membership (such a one gives no rights in OpenAFS either)"
    } else {
        return true;
    };
    let at = entries.get(&group).or_else(|| entries.get(&member)).map_or(0, |(at, _)| *at);
    findings.difference(at, format!("{} is said to be in group {}, but {why}; left out", member.0, group.0));
    false
}

/// Drops memberships beyond the bounds of one group or one member.
fn bounded(union: &mut Vec<Membership>, entries: &BTreeMap<ViceId, (u32, Entry)>, findings: &mut Findings) {
    let (mut members, mut groups) = (BTreeMap::<ViceId, usize>::new(), BTreeMap::<ViceId, usize>::new());
    let mut told = BTreeSet::new();
    union.retain(|(member, group)| {
        let (of_group, of_member) = (members.entry(*group).or_default(), groups.entry(*member).or_default());
        if *of_group < MEMBERS_MAX && *of_member < GROUPS_MAX {
            *of_group += 1;
            *of_member += 1;
            return true;
        }
        let full = if *of_group < MEMBERS_MAX { member } else { group };
        if told.insert(*full) {
            let at = entries.get(full).map_or(0, |(at, _)| *at);
            let what = format!("{} has more memberships than there may be; the rest is left out", full.0);
            findings.damage(at, what);
        }
        false
    });
}
