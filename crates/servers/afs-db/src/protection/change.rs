//! Change of an entry's name, owner or id.

use afs_rpc::UnixTime;
use afs_wire::ids::ViceId;

use super::access::{self, Right};
use super::delete::is_fixed;
use super::rows::{GROUP, MEMBER, OWNED, pair};
use super::{BAD_ID, Entry, Known, ProtectionError, Refusal, Requester, gone, ids, members, names, rows};
use crate::RowsMut;

/// The fields to change; `None` leaves one unchanged. Unchecked.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Change {
    /// The name, in upper or lower case.
    pub name: Option<String>,
    /// The owner. The prefix of the group's name follows, unless a name is given too.
    pub owner: Option<ViceId>,
    /// The id; memberships and ownership follow.
    pub id: Option<ViceId>,
}

/// Changes an entry (docs/protocol ptserver.md "5. Creation, naming, ownership", ChangeEntry).
pub(super) fn change(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    id: ViceId,
    change: &Change,
    now: UnixTime,
) -> Result<(), ProtectionError> {
    let known = Known::of(rows, requester)?;
    if is_fixed(id) {
        return Err(Refusal::Permission.into());
    }
    let old = rows::find(rows, id)?;
    access::check(requester, &known, &old, Right::Change)?;
    let mut new = old.clone();
    if let Some(owner) = change.owner.filter(|owner| *owner != old.owner) {
        check_owned(&old)?;
        new.owner = owner;
    }
    new.name = new_name(rows, &known, &old, new.owner, change.name.as_deref())?;
    if new.name != old.name && rows::id_of(rows, &new.name)?.is_some() {
        return Err(Refusal::NameExists.into());
    }
    if let Some(to) = change.id.filter(|to| *to != id) {
        check_id(rows, &known, &old, to)?;
        new.id = to;
    }
    if new == old {
        return Ok(());
    }
    rows::remove(rows, &old)?;
    if new.name != old.name {
        gone::note(rows, &old, now)?;
    }
    if new.id != old.id {
        renumber(rows, old.id, &mut new)?;
    }
    rows::insert(rows, &new)
}

/// Only groups of this cell can be given to another owner.
fn check_owned(entry: &Entry) -> Result<(), Refusal> {
    if entry.id.is_group() && !names::is_foreign_group(&entry.name) {
        Ok(())
    } else {
        Err(Refusal::Permission)
    }
}

/// The new name of an entry, checked against its new owner.
fn new_name(
    rows: &mut (impl RowsMut + ?Sized),
    known: &Known,
    old: &Entry,
    owner: ViceId,
    wanted: Option<&str>,
) -> Result<String, ProtectionError> {
    let name = match wanted {
        Some(name) => names::lower(name),
        None if owner == old.owner => return Ok(old.name.clone()),
        None => under_owner(rows, known, old, owner)?,
    };
    if name == old.name && owner == old.owner {
        return Ok(name);
    }
    let cell = |name: &str| name.split_once('@').map(|(_, cell)| cell.to_owned());
    if cell(&name) != cell(&old.name) {
        return Err(Refusal::Permission.into());
    }
    if !old.id.is_group() {
        names::check_user(&name)?;
        return Ok(name);
    }
    let itself = Some(old.id).filter(|id| *id == owner);
    names::check_group(rows, known, &name, owner, itself)?;
    Ok(name)
}

/// The name of a group with the prefix of a new owner; a name without a prefix is unchanged, and so is that
/// of a group that owns itself.
fn under_owner(
    rows: &mut (impl RowsMut + ?Sized),
    known: &Known,
    old: &Entry,
    owner: ViceId,
) -> Result<String, ProtectionError> {
    match old.name.split_once(':') {
        Some((_, rest)) if owner != old.id => {
            let prefix = names::owner_prefix(rows, known, owner)?.ok_or(Refusal::NoEntry)?;
            Ok(format!("{prefix}:{rest}"))
        }
        _ => Ok(old.name.clone()),
    }
}

/// Whether an entry may have that id. Ids of foreign users encode their cell.
fn check_id(
    rows: &mut (impl RowsMut + ?Sized),
    known: &Known,
    old: &Entry,
    to: ViceId,
) -> Result<(), ProtectionError> {
    known.administrator_only()?;
    if old.is_foreign() || to.is_group() != old.id.is_group() || matches!(to, ViceId(0) | BAD_ID) {
        return Err(Refusal::Permission.into());
    }
    match rows::entry(rows, to)? {
        Some(_) => Err(Refusal::IdExists.into()),
        None => Ok(()),
    }
}

/// Updates everything that refers to an id: memberships both ways, counts, ownership.
fn renumber(
    rows: &mut (impl RowsMut + ?Sized),
    from: ViceId,
    entry: &mut Entry,
) -> Result<(), ProtectionError> {
    let to = entry.id;
    for group in members::groups_of(rows, from)? {
        move_row(rows, GROUP, pair(from, group), pair(to, group))?;
        move_row(rows, MEMBER, pair(group, from), pair(group, to))?;
    }
    for member in members::members_of(rows, from)? {
        move_row(rows, MEMBER, pair(from, member), pair(to, member))?;
        move_row(rows, GROUP, pair(member, from), pair(member, to))?;
    }
    let count = rows::count(rows, from)?;
    rows::set_count(rows, from, 0)?;
    rows::set_count(rows, to, count)?;
    for group in rows::seconds(rows, OWNED, from, BAD_ID, usize::MAX)? {
        move_row(rows, OWNED, pair(from, group), pair(to, group))?;
        let owned = Entry { owner: to, ..rows::find(rows, group)? };
        rows::put(rows, &owned)?;
    }
    if entry.owner == from {
        entry.owner = to;
    }
    ids::taken(rows, to)
}

fn move_row(
    rows: &mut (impl RowsMut + ?Sized),
    table: &'static str,
    from: [u8; 8],
    to: [u8; 8],
) -> Result<(), ProtectionError> {
    rows.delete(table, &from)?;
    Ok(rows.put(table, &to, &[])?)
}
