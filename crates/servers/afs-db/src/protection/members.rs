//! Memberships in groups: addition, removal, and their bounds.

use std::collections::BTreeSet;

use afs_wire::ids::ViceId;

use super::access::{self, Right};
use super::rows::{GROUP, MEMBER, pair};
use super::{BAD_ID, Known, ProtectionError, Refusal, Requester, rows};
use crate::{Rows, RowsMut};

/// Most members of one group. Deleting it must fit into one transaction, and listing it into one reply.
pub const MEMBERS_MAX: usize = 100_000;
/// Most groups that one user or group is in directly; as many as old clients accept.
pub const GROUPS_MAX: usize = 5000;
/// Most groups on one path of nested groups: a user in one, that in a second, up to a fifth (docs/protocol
/// ptserver.md "5. Creation, naming, ownership", AddToGroup). An addition that would create a longer path is
/// refused, so that no membership is ever left out.
pub const NESTING_MAX: usize = 5;

/// The groups that an id is in directly, sorted.
pub(super) fn groups_of(rows: &(impl Rows + ?Sized), id: ViceId) -> Result<Vec<ViceId>, ProtectionError> {
    rows::seconds(rows, GROUP, id, BAD_ID, usize::MAX)
}

/// The members of a group, sorted.
pub(super) fn members_of(rows: &(impl Rows + ?Sized), group: ViceId) -> Result<Vec<ViceId>, ProtectionError> {
    rows::seconds(rows, MEMBER, group, BAD_ID, usize::MAX)
}

/// Whether a member is in a group directly.
pub(super) fn is_in(
    rows: &(impl Rows + ?Sized),
    member: ViceId,
    group: ViceId,
) -> Result<bool, ProtectionError> {
    Ok(rows.get(MEMBER, &pair(group, member))?.is_some())
}

/// Adds a member to a group.
pub(super) fn add(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    member: ViceId,
    group: ViceId,
) -> Result<(), ProtectionError> {
    let known = Known::of(rows, requester)?;
    // `system:anyuser` and `system:authuser` have no member list, and neither they nor the anonymous user can
    // be on one.
    let everybody = |id| matches!(id, ViceId::ANYUSER | ViceId::AUTHUSER);
    if everybody(group) || everybody(member) || member == ViceId::ANONYMOUS {
        return Err(Refusal::Permission.into());
    }
    rows::find(rows, member)?;
    let entry = rows::find(rows, group)?;
    if !group.is_group() {
        return Err(Refusal::NotGroup.into());
    }
    access::check(requester, &known, &entry, Right::Add)?;
    if is_in(rows, member, group)? {
        return Err(Refusal::IdExists.into());
    }
    check_room(rows, member, group)?;
    put(rows, member, group)
}

/// Removes a member from a group.
pub(super) fn remove(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    member: ViceId,
    group: ViceId,
) -> Result<(), ProtectionError> {
    let known = Known::of(rows, requester)?;
    rows::find(rows, member)?;
    let entry = rows::find(rows, group)?;
    if !group.is_group() {
        return Err(Refusal::NotGroup.into());
    }
    access::check(requester, &known, &entry, Right::Remove)?;
    if !is_in(rows, member, group)? {
        return Err(Refusal::NoEntry.into());
    }
    take(rows, member, group)
}

/// Writes a membership and both counts; the count of a group is that of its members only.
pub(super) fn put(
    rows: &mut (impl RowsMut + ?Sized),
    member: ViceId,
    group: ViceId,
) -> Result<(), ProtectionError> {
    rows.put(MEMBER, &pair(group, member), &[])?;
    rows.put(GROUP, &pair(member, group), &[])?;
    for id in counted(member, group) {
        let count = rows::count(rows, id)?;
        rows::set_count(rows, id, count + 1)?;
    }
    Ok(())
}

/// Removes a membership and updates both counts.
pub(super) fn take(
    rows: &mut (impl RowsMut + ?Sized),
    member: ViceId,
    group: ViceId,
) -> Result<(), ProtectionError> {
    rows.delete(MEMBER, &pair(group, member))?;
    rows.delete(GROUP, &pair(member, group))?;
    for id in counted(member, group) {
        let count = rows::count(rows, id)?.checked_sub(1).ok_or(Refusal::Damaged)?;
        rows::set_count(rows, id, count)?;
    }
    Ok(())
}

/// The ids whose counts a membership changes.
fn counted(member: ViceId, group: ViceId) -> impl Iterator<Item = ViceId> {
    [Some(group), Some(member).filter(|id| !id.is_group())].into_iter().flatten()
}

/// Checks that one more membership stays within the bounds.
pub(super) fn check_room(
    rows: &(impl Rows + ?Sized),
    member: ViceId,
    group: ViceId,
) -> Result<(), ProtectionError> {
    // Only for users is the number of groups counted.
    let groups = match member.is_group() {
        true => rows::seconds(rows, GROUP, member, BAD_ID, GROUPS_MAX)?.len(),
        false => rows::count(rows, member)? as usize,
    };
    if rows::count(rows, group)? as usize >= MEMBERS_MAX || groups >= GROUPS_MAX {
        return Err(Refusal::TooMany.into());
    }
    if member.is_group() { check_nesting(rows, member, group) } else { Ok(()) }
}

/// Checks that adding one group to another creates no cycle and is not too deep.
fn check_nesting(rows: &(impl Rows + ?Sized), member: ViceId, group: ViceId) -> Result<(), ProtectionError> {
    let above = levels(group, member, |id| groups_of(rows, id))?;
    let below = levels(member, group, |id| groups_in(rows, id))?;
    if above + below > NESTING_MAX { Err(Refusal::TooMany.into()) } else { Ok(()) }
}

/// The groups in a group; they precede its users.
fn groups_in(rows: &(impl Rows + ?Sized), group: ViceId) -> Result<Vec<ViceId>, ProtectionError> {
    let (from, until) = (pair(group, BAD_ID), pair(group, ViceId(0)));
    let found = rows.range(MEMBER, &from, &until, MEMBERS_MAX)?;
    let id =
        |key: &[u8]| key.last_chunk::<4>().map(|id| ViceId((u32::from_be_bytes(*id) ^ 0x8000_0000) as i32));
    found.iter().map(|(key, _)| id(key).ok_or_else(|| Refusal::Damaged.into())).collect()
}

/// Groups on the longest path from `start`, itself included. Meeting `forbidden` is a cycle.
fn levels(
    start: ViceId,
    forbidden: ViceId,
    next: impl Fn(ViceId) -> Result<Vec<ViceId>, ProtectionError>,
) -> Result<usize, ProtectionError> {
    let mut level = BTreeSet::from([start]);
    for count in 0..=NESTING_MAX {
        if level.is_empty() {
            return Ok(count);
        }
        if level.contains(&forbidden) {
            return Err(Refusal::BadArgument.into());
        }
        let mut further = BTreeSet::new();
        for id in level {
            further.extend(next(id)?);
            if further.len() > MEMBERS_MAX {
                return Err(Refusal::TooMany.into());
            }
        }
        level = further;
    }
    Err(Refusal::TooMany.into())
}
