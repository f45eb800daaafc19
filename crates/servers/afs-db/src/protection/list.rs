//! Reading of entries, one by one and in lists (docs/protocol ptserver.md "7. Listing").

use std::net::Ipv4Addr;

use afs_wire::ids::ViceId;

use super::access::{self, Right};
use super::rows::OWNED;
use super::{BAD_ID, Entry, Known, ProtectionError, Refusal, Requester, Status, cps, members, rows};
use crate::Rows;

/// Kinds of entries to list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kinds {
    /// Users.
    pub users: bool,
    /// Groups.
    pub groups: bool,
}

/// Position in a list: after the entry with this id. Users come first, then groups, each ascending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct After(pub ViceId);

impl After {
    /// The start.
    pub const START: After = After(ViceId(0));
}

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// Its items.
    pub items: Vec<T>,
    /// Position to continue from; `None` at the end.
    pub next: Option<After>,
}

/// The entry of an id, if the caller may see its status.
pub(super) fn status(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    id: ViceId,
) -> Result<Status, ProtectionError> {
    let entry = seen(rows, requester, id, Right::Status)?;
    Ok(Status { entry, count: rows::count(rows, id)? })
}

fn seen(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    id: ViceId,
    right: Right,
) -> Result<Entry, ProtectionError> {
    let known = Known::of(rows, requester)?;
    let entry = rows::find(rows, id)?;
    access::check(requester, &known, &entry, right)?;
    Ok(entry)
}

/// The subdomain of an id, together with the groups of a host if one is given.
pub(super) fn cps_of(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    id: ViceId,
    host: Option<Ipv4Addr>,
) -> Result<Vec<ViceId>, ProtectionError> {
    let mut all = Vec::new();
    match host {
        // The groups of a host are visible to every caller.
        Some(_) if id == BAD_ID => drop(Known::of(rows, requester)?),
        _ => {
            seen(rows, requester, id, Right::Membership)?;
            all = cps::subdomain(rows, id)?;
        }
    }
    if let Some(host) = host {
        all.extend(cps::of_host(rows, host)?);
        all.sort_unstable();
        all.dedup();
    }
    Ok(all)
}

/// The members of a group, or the groups of a user.
pub(super) fn elements(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    id: ViceId,
) -> Result<Vec<ViceId>, ProtectionError> {
    seen(rows, requester, id, Right::Membership)?;
    if id.is_group() { members::members_of(rows, id) } else { members::groups_of(rows, id) }
}

/// The groups that a group is in directly.
pub(super) fn supergroups(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    id: ViceId,
) -> Result<Vec<ViceId>, ProtectionError> {
    seen(rows, requester, id, Right::Membership)?;
    if id.is_group() { members::groups_of(rows, id) } else { Err(Refusal::NotGroup.into()) }
}

/// Whether a user or group is in a group, directly or through nested groups.
pub(super) fn is_member(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    member: ViceId,
    group: ViceId,
) -> Result<bool, ProtectionError> {
    let known = Known::of(rows, requester)?;
    let (whose, of) = (rows::find(rows, member)?, rows::find(rows, group)?);
    if !group.is_group() {
        return Err(Refusal::BadArgument.into());
    }
    let readable = |entry| access::allows(requester, &known, entry, Right::Membership);
    if !readable(&whose) && !readable(&of) {
        return Err(Refusal::Permission.into());
    }
    match group {
        ViceId::ANYUSER => Ok(true),
        ViceId::AUTHUSER => Ok(cps::is_local(member, whose.is_foreign())),
        _ => Ok(cps::groups(rows, member)?.contains(&group)),
    }
}

/// At most `limit` groups of an owner; 0 is for groups without one.
pub(super) fn owned(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    owner: ViceId,
    after: After,
    limit: usize,
) -> Result<Page<ViceId>, ProtectionError> {
    if owner == ViceId(0) {
        Known::of(rows, requester)?.administrator_only()?;
    } else {
        seen(rows, requester, owner, Right::Owned)?;
    }
    let from = if after == After::START { Some(BAD_ID) } else { after.0.0.checked_add(1).map(ViceId) };
    let found = from.map(|from| rows::seconds(rows, OWNED, owner, from, limit.saturating_add(1)));
    Ok(page(found.transpose()?.unwrap_or_default(), limit, |id| *id))
}

/// At most `limit` entries; for administrators.
pub(super) fn entries(
    rows: &(impl Rows + ?Sized),
    requester: &Requester,
    kinds: Kinds,
    after: After,
    limit: usize,
) -> Result<Page<Status>, ProtectionError> {
    Known::of(rows, requester)?.administrator_only()?;
    let behind = after.0.0.checked_add(1).map(ViceId);
    let (mut found, wanted) = (Vec::new(), limit.saturating_add(1));
    if let Some(from) = behind.filter(|from| kinds.users && from.0 > 0) {
        found = rows::entries(rows, from, ViceId(i32::MAX), wanted)?;
    }
    let from = if after.0.0 >= 0 { BAD_ID } else { behind.unwrap_or_default() };
    if kinds.groups && found.len() < wanted {
        found.extend(rows::entries(rows, from, ViceId(-1), wanted - found.len())?);
    }
    let page = page(found, limit, |entry| entry.id);
    let items = page.items.into_iter().map(|entry| {
        let count = rows::count(rows, entry.id)?;
        Ok(Status { entry, count })
    });
    Ok(Page { items: items.collect::<Result<_, ProtectionError>>()?, next: page.next })
}

/// Truncates the items to `limit`.
fn page<T>(mut items: Vec<T>, limit: usize, id: impl Fn(&T) -> ViceId) -> Page<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| After(id(last)));
    Page { items, next }
}
