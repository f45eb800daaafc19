//! Initial entries of every protection database (docs/protocol ptserver.md "2. Ids").

use afs_wire::ids::ViceId;

use super::{Entry, Pending, ProtectionDb, ProtectionError, Refusal, ids, members, names, rows};
use crate::RowsMut;

/// The id of a cell's first user.
pub const FIRST_USER: ViceId = ViceId(1);

pub(super) const WELL_KNOWN: [ViceId; 6] = [
    ViceId::ADMINISTRATORS,
    ViceId::BACKUP,
    ViceId::ANYUSER,
    ViceId::AUTHUSER,
    ViceId::PTSVIEWERS,
    ViceId::ANONYMOUS,
];

/// Creates the entries that a database lacks: those that every cell has, and in a new one user 1, a member of
/// `system:administrators`. Existing entries are unchanged: an administrator who was removed is not added
/// again.
///
/// # Errors
/// [`Refusal::NameExists`] if `administrator` is the name of another user or group.
pub fn bootstrap_protection<'a>(db: &'a dyn ProtectionDb, administrator: &'a str) -> Pending<'a, ()> {
    db.bootstrap(administrator.into())
}

pub(super) fn bootstrap(
    rows: &mut (impl RowsMut + ?Sized),
    administrator: &str,
) -> Result<(), ProtectionError> {
    let owner = ViceId::ADMINISTRATORS;
    for id in WELL_KNOWN {
        if rows::entry(rows, id)?.is_none() {
            let name = id.well_known_name().unwrap_or_default();
            rows::insert(rows, &Entry::new(id, name.into(), owner, owner))?;
        }
    }
    let (user_max, group_max) = rows::max_ids(rows)?;
    if user_max.is_none() {
        rows::set_max(rows, ViceId(0), false)?;
    }
    if group_max.is_none() {
        rows::set_max(rows, ViceId::BACKUP, true)?;
    }
    // A database that has assigned ids, such as an imported one, has had its first user.
    if user_max.is_none() { first_user(rows, administrator) } else { Ok(()) }
}

fn first_user(rows: &mut (impl RowsMut + ?Sized), name: &str) -> Result<(), ProtectionError> {
    if rows::entry(rows, FIRST_USER)?.is_some() {
        return Ok(());
    }
    let name = names::lower(name);
    if names::check_user(&name)?.is_some() {
        return Err(Refusal::BadName.into());
    }
    if rows::id_of(rows, &name)?.is_some() {
        return Err(Refusal::NameExists.into());
    }
    rows::insert(rows, &Entry::new(FIRST_USER, name, ViceId::ADMINISTRATORS, ViceId::ADMINISTRATORS))?;
    ids::taken(rows, FIRST_USER)?;
    members::put(rows, FIRST_USER, ViceId::ADMINISTRATORS)
}
