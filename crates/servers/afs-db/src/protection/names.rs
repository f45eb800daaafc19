//! Rules for names of users and groups (docs/protocol ptserver.md "5. Creation, naming, ownership").

use afs_wire::ids::ViceId;

use super::{Known, ProtectionError, Refusal, rows};
use crate::Rows;

/// Longest name, in bytes.
pub const NAME_MAX: usize = 63;
/// Prefix of the names of groups of foreign cells.
const FOREIGN_GROUP: &str = "system:authuser@";
/// The prefix of groups that administrators own.
const SYSTEM: &str = "system";

/// Names are kept in lower case.
pub(super) fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The name of the group of all users of a foreign cell.
pub(super) fn foreign_group(cell: &str) -> String {
    format!("{FOREIGN_GROUP}{cell}")
}

/// Whether a group is that of the users of a foreign cell.
pub(super) fn is_foreign_group(name: &str) -> bool {
    name.starts_with(FOREIGN_GROUP)
}

/// Checks the rules common to all names. A name with white space cannot stand in an access list, and a number
/// would be taken for the id of a deleted entry.
fn check_text(name: &str) -> Result<(), Refusal> {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    let digits = name.strip_prefix('-').unwrap_or(name);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if name.is_empty() || name.len() > NAME_MAX || name.contains(odd) || is_number {
        return Err(Refusal::BadName);
    }
    Ok(())
}

/// Checks a user's name and returns the foreign cell in it.
pub(super) fn check_user(name: &str) -> Result<Option<&str>, Refusal> {
    check_text(name)?;
    if name.contains(':') {
        return Err(Refusal::BadName);
    }
    match name.split_once('@') {
        None => Ok(None),
        Some((user, cell)) if !user.is_empty() && !cell.is_empty() && !cell.contains('@') => Ok(Some(cell)),
        Some(_) => Err(Refusal::BadName),
    }
}

/// Checks the name of a group against its owner, who must exist unless it is the group `itself`.
pub(super) fn check_group(
    rows: &(impl Rows + ?Sized),
    requester: &Known,
    name: &str,
    owner: ViceId,
    itself: Option<ViceId>,
) -> Result<(), ProtectionError> {
    check_text(name)?;
    if name.contains('@') && !name.strip_prefix(FOREIGN_GROUP).is_some_and(is_cell) {
        return Err(Refusal::BadName.into());
    }
    let (prefix, rest) = name.split_once(':').map_or((name, None), |(prefix, rest)| (prefix, Some(rest)));
    let wanted = owner_prefix(rows, requester, owner)?.filter(|_| Some(owner) != itself);
    if wanted.is_none() && Some(owner) != itself {
        return Err(Refusal::NoEntry.into());
    }
    if (prefix == SYSTEM || wanted.as_deref() == Some(SYSTEM)) && !requester.is_administrator() {
        return Err(Refusal::Permission.into());
    }
    match rest {
        None if requester.is_administrator() => Ok(()),
        Some(rest) if !rest.is_empty() && !rest.contains(':') && wanted.is_none_or(|w| w == prefix) => Ok(()),
        _ => Err(Refusal::BadName.into()),
    }
}

fn is_cell(cell: &str) -> bool {
    !cell.is_empty() && !cell.contains(['@', ':'])
}

/// Prefix of the names of an owner's groups; `None` if there is no such owner.
pub(super) fn owner_prefix(
    rows: &(impl Rows + ?Sized),
    requester: &Known,
    owner: ViceId,
) -> Result<Option<String>, ProtectionError> {
    if owner == ViceId::ADMINISTRATORS {
        return Ok(Some(SYSTEM.into()));
    }
    // The owner of a group decides on its members: it must not be the group of all users.
    let everybody = matches!(owner, ViceId::ANONYMOUS | ViceId::ANYUSER);
    if everybody || owner == ViceId::AUTHUSER && !requester.is_administrator() {
        return Err(Refusal::Permission.into());
    }
    let Some(entry) = rows::entry(rows, owner)? else { return Ok(None) };
    if owner.is_group() && rows::count(rows, owner)? == 0 && !requester.is_administrator() {
        return Err(Refusal::GroupEmpty.into());
    }
    let prefix = entry.name.split(':').next().unwrap_or_default();
    Ok(Some(prefix.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users() {
        for good in ["alice", "host.example", "10.1.2.3", "a-b_c", "ünal", "x509"] {
            assert_eq!(check_user(good), Ok(None), "{good}");
        }
        assert_eq!(check_user("alice@example.org"), Ok(Some("example.org")));
        let long = "a".repeat(64);
        for bad in [
            "",
            "a:b",
            "a\nb",
            "a b",
            "a\tb",
            "-204",
            "32766",
            "-",
            "@x",
            "a@",
            "a@b@c",
            "a\0b",
            long.as_str(),
        ] {
            assert_eq!(check_user(bad), Err(Refusal::BadName), "{bad:?}");
        }
    }
}
