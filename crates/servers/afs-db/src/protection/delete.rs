//! Deletion of users and groups.

use afs_rpc::UnixTime;
use afs_wire::ids::ViceId;

use super::access::{self, Right};
use super::entry::QUOTA_DEFAULT;
use super::rows::{OWNED, pair};
use super::{BAD_ID, Entry, Known, ProtectionError, Refusal, Requester, cps, gone, members, names, rows};
use crate::RowsMut;

/// Entries that cannot be deleted or renumbered.
pub(super) fn is_fixed(id: ViceId) -> bool {
    matches!(id, ViceId::ANYUSER | ViceId::AUTHUSER | ViceId::ADMINISTRATORS | ViceId::ANONYMOUS)
}

/// Removes an entry, its memberships both ways, and its ownership of groups.
pub(super) fn delete(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    id: ViceId,
    now: UnixTime,
) -> Result<(), ProtectionError> {
    let known = Known::of(rows, requester)?;
    if is_fixed(id) {
        return Err(Refusal::Permission.into());
    }
    let entry = rows::find(rows, id)?;
    access::check(requester, &known, &entry, Right::Change)?;
    // Without an administrator nobody could make another one over the network.
    if members::members_of(rows, ViceId::ADMINISTRATORS)? == [id] {
        return Err(Refusal::Permission.into());
    }
    if names::is_foreign_group(&entry.name) && rows::count(rows, id)? != 0 {
        return Err(Refusal::BadArgument.into());
    }
    give_back(rows, &entry)?;
    for group in members::groups_of(rows, id)? {
        members::take(rows, id, group)?;
    }
    for member in members::members_of(rows, id)? {
        members::take(rows, member, id)?;
    }
    rows::remove(rows, &entry)?;
    gone::note(rows, &entry, now)?;
    orphan(rows, id)
}

/// Groups of a deleted owner have no owner.
fn orphan(rows: &mut (impl RowsMut + ?Sized), owner: ViceId) -> Result<(), ProtectionError> {
    for group in rows::seconds(rows, OWNED, owner, BAD_ID, usize::MAX)? {
        let entry = Entry { owner: ViceId(0), ..rows::find(rows, group)? };
        rows.delete(OWNED, &pair(owner, group))?;
        rows.put(OWNED, &pair(ViceId(0), group), &[])?;
        rows::put(rows, &entry)?;
    }
    Ok(())
}

/// Returns the quota that the entry used: to its creator, or to its foreign cell.
fn give_back(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), ProtectionError> {
    if entry.id.is_group() {
        let Some(mut creator) = rows::entry(rows, entry.creator)?.filter(|c| !c.id.is_group()) else {
            return Ok(());
        };
        let free = cps::groups(rows, creator.id)?.contains(&ViceId::ADMINISTRATORS);
        if !free || creator.group_quota < QUOTA_DEFAULT {
            creator.group_quota = creator.group_quota.saturating_add(1);
        }
        return rows::put(rows, &creator);
    }
    let Some((_, cell)) = entry.name.split_once('@') else { return Ok(()) };
    let Some(group) = rows::id_of(rows, &names::foreign_group(cell))? else { return Ok(()) };
    let mut group = rows::find(rows, group)?;
    group.group_quota = group.group_quota.saturating_add(1);
    rows::put(rows, &group)
}
