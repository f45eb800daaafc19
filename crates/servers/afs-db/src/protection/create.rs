//! Creation of users and groups (docs/protocol ptserver.md "5. Creation, naming, ownership").

use afs_wire::ids::ViceId;

use super::entry::FOREIGN_QUOTA_DEFAULT;
use super::{
    BAD_ID, Entry, Known, ProtectionError, Refusal, Requester, RequesterIdentity, ids, members, names, rows,
};
use crate::RowsMut;

/// The id of a new entry, which determines whether it is a user or a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewId {
    /// The next id of a user.
    User,
    /// The next id of a group.
    Group,
    /// This one.
    Given(ViceId),
}

/// An entry to be created; unchecked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewEntry {
    /// The name, in upper or lower case.
    pub name: String,
    /// The id.
    pub id: NewId,
    /// Owner of a group; 0 is the caller. Users are always owned by administrators.
    pub owner: ViceId,
}

/// Creates an entry and returns its id.
pub(super) fn create(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    new: &NewEntry,
) -> Result<ViceId, ProtectionError> {
    let name = names::lower(&new.name);
    let known = maker(rows, requester, new, &name)?;
    let group = match new.id {
        NewId::User => false,
        NewId::Group => true,
        NewId::Given(ViceId(0)) => return Err(Refusal::Permission.into()),
        NewId::Given(BAD_ID) => return Err(Refusal::BadArgument.into()),
        NewId::Given(id) => id.is_group(),
    };
    if group {
        create_group(rows, requester, &known, new, name)
    } else {
        create_user(rows, &known, new, name)
    }
}

/// The caller that creates the entry. A foreign user may create its own, and counts as an administrator for
/// that alone.
fn maker(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    new: &NewEntry,
    name: &str,
) -> Result<Known, ProtectionError> {
    match &requester.identity {
        RequesterIdentity::Foreign { name: proven, .. } => {
            let itself = proven == name && name.contains('@');
            let plain = new.id == NewId::User && new.owner == ViceId(0) && !requester.restricted;
            if itself && plain { Ok(Known::administrators()) } else { Err(Refusal::Permission.into()) }
        }
        _ => Known::of(rows, requester),
    }
}

fn create_user(
    rows: &mut (impl RowsMut + ?Sized),
    known: &Known,
    new: &NewEntry,
    name: String,
) -> Result<ViceId, ProtectionError> {
    known.administrator_only()?;
    let cell = names::check_user(&name)?.map(names::foreign_group);
    check_free(rows, &name, new.id)?;
    let Some(cell) = cell else {
        let id = given_or_next(rows, new.id, false)?;
        return write(rows, &Entry::new(id, name, ViceId::ADMINISTRATORS, known.id)).map(|()| id);
    };
    create_foreign(rows, known, new.id, name, &cell)
}

/// Creates a user of a foreign cell, as a member of the cell's group.
fn create_foreign(
    rows: &mut (impl RowsMut + ?Sized),
    known: &Known,
    id: NewId,
    name: String,
    cell: &str,
) -> Result<ViceId, ProtectionError> {
    let group = rows::id_of(rows, cell)?.ok_or(Refusal::BadName)?;
    let mut group = rows::find(rows, group)?;
    if group.group_quota <= 0 {
        return Err(Refusal::NoMore.into());
    }
    group.group_quota -= 1;
    let id = if let NewId::Given(id) = id {
        ids::taken(rows, id)?;
        id
    } else {
        let (number, id) = ids::next_foreign(rows, group.id, group.last_foreign)?;
        group.last_foreign = number;
        id
    };
    members::check_room(rows, id, group.id)?;
    rows::put(rows, &group)?;
    rows::insert(rows, &Entry::new(id, name, ViceId::ADMINISTRATORS, known.id))?;
    members::put(rows, id, group.id)?;
    Ok(id)
}

fn create_group(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    known: &Known,
    new: &NewEntry,
    name: String,
) -> Result<ViceId, ProtectionError> {
    let administrator = known.is_administrator();
    if known.id == ViceId::ANONYMOUS || requester.restricted && !administrator {
        return Err(Refusal::Permission.into());
    }
    let owner = if new.owner == ViceId(0) { known.id } else { new.owner };
    let itself = if let NewId::Given(id) = new.id { Some(id) } else { None };
    // Only administrators choose ids, and only a caller that chooses one can name a group that does not exist
    // yet as its owner.
    if itself.is_some() && !administrator && itself != Some(ids::next(rows, true)?) {
        return Err(Refusal::Permission.into());
    }
    names::check_group(rows, known, &name, owner, itself.filter(|_| administrator))?;
    check_free(rows, &name, new.id)?;
    let id = given_or_next(rows, new.id, true)?;
    if !administrator {
        pay(rows, known.id)?;
    }
    let mut entry = Entry::new(id, name, owner, known.id);
    if names::is_foreign_group(&entry.name) {
        entry.group_quota = FOREIGN_QUOTA_DEFAULT;
    }
    write(rows, &entry).map(|()| id)
}

/// Takes one unit of the creator's group quota.
fn pay(rows: &mut (impl RowsMut + ?Sized), creator: ViceId) -> Result<(), ProtectionError> {
    let mut creator = rows::find(rows, creator)?;
    if creator.group_quota <= 0 {
        return Err(Refusal::NoMore.into());
    }
    creator.group_quota -= 1;
    rows::put(rows, &creator)
}

fn check_free(rows: &mut (impl RowsMut + ?Sized), name: &str, id: NewId) -> Result<(), ProtectionError> {
    if rows::id_of(rows, name)?.is_some() {
        return Err(Refusal::NameExists.into());
    }
    match id {
        NewId::Given(id) if rows::entry(rows, id)?.is_some() => Err(Refusal::IdExists.into()),
        _ => Ok(()),
    }
}

fn given_or_next(
    rows: &mut (impl RowsMut + ?Sized),
    id: NewId,
    group: bool,
) -> Result<ViceId, ProtectionError> {
    if let NewId::Given(id) = id { Ok(id) } else { ids::next(rows, group) }
}

fn write(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), ProtectionError> {
    ids::taken(rows, entry.id)?;
    rows::insert(rows, entry)
}
