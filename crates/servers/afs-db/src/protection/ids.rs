//! Allocation of ids for new users and groups (docs/protocol ptserver.md "2. Ids").

use afs_wire::ids::ViceId;

use super::{BAD_ID, Known, ProtectionError, Refusal, Requester, rows};
use crate::{Rows, RowsMut};

/// Consecutive ids that are tried before the counter counts as stuck.
const TRIES: i32 = 50;
/// The group id before the first: the ids of the groups that every cell has come before.
const FIRST_GROUP: ViceId = ViceId::BACKUP;
/// The group id after which there is none.
const LAST_GROUP: i32 = BAD_ID.0 + 1;
/// Foreign ids have the user's number above the 16 bits of its cell, and are positive.
const FOREIGN_NUMBER_MAX: u32 = 0x7fff;

/// The largest user id and the smallest group id ever assigned.
pub(super) fn max(rows: &(impl Rows + ?Sized)) -> Result<(ViceId, ViceId), ProtectionError> {
    let (user, group) = rows::max_ids(rows)?;
    Ok((user.unwrap_or_default(), group.unwrap_or(FIRST_GROUP)))
}

/// Sets one of the counters.
pub(super) fn set_max(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    id: ViceId,
    group: bool,
) -> Result<(), ProtectionError> {
    Known::of(rows, requester)?.administrator_only()?;
    let wrong = if group { id.0 > 0 || id == BAD_ID } else { id.0 < 0 };
    if wrong {
        return Err(Refusal::BadArgument.into());
    }
    rows::set_max(rows, id, group)
}

/// The next free id of a user or group. The counter moves when the entry is created.
pub(super) fn next(rows: &(impl Rows + ?Sized), group: bool) -> Result<ViceId, ProtectionError> {
    let (user_max, group_max) = max(rows)?;
    for step in 1..=TRIES {
        let id = if group { group_max.0.checked_sub(step) } else { user_max.0.checked_add(step) };
        let id = id.map(ViceId).filter(|id| *id != BAD_ID).ok_or(Refusal::NoIds)?;
        if rows::entry(rows, id)?.is_none() {
            return Ok(id);
        }
    }
    Err(Refusal::NoIds.into())
}

/// Moves the counter to an id that is beyond it, except one after which there is none: new users would find no id any more.
pub(super) fn taken(rows: &mut (impl RowsMut + ?Sized), id: ViceId) -> Result<(), ProtectionError> {
    let (user_max, group_max) = max(rows)?;
    let is_last = matches!(id.0, i32::MAX | LAST_GROUP);
    if !is_last && (id > user_max || id < group_max) {
        rows::set_max(rows, id, id.is_group())
    } else {
        Ok(())
    }
}

/// The next free number of a user of a foreign cell, and its id: the number above the low half of the id of the
/// cell's group.
pub(super) fn next_foreign(
    rows: &(impl Rows + ?Sized),
    group: ViceId,
    last: u32,
) -> Result<(u32, ViceId), ProtectionError> {
    for number in (last..FOREIGN_NUMBER_MAX).map(|last| last + 1).take(TRIES as usize) {
        let id = ViceId((number << 16 | group.0 as u32 & 0xffff) as i32);
        if rows::entry(rows, id)?.is_none() {
            return Ok((number, id));
        }
    }
    Err(Refusal::NoIds.into())
}
