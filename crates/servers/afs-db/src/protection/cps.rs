//! Current protection subdomain (CPS): the id of a subject with all its groups.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use afs_rpc::{Suspended, Terms};
use afs_wire::ids::ViceId;

use super::members::{self, NESTING_MAX};
use super::{Entry, ProtectionError, Refusal, rows};
use crate::Rows;

/// Most groups of one subdomain, nested ones included.
pub const CPS_MAX: usize = 20_000;

/// All groups that an id is in, directly and through nested groups.
pub(super) fn groups(rows: &(impl Rows + ?Sized), id: ViceId) -> Result<BTreeSet<ViceId>, ProtectionError> {
    groups_without(rows, id, &Suspended::default())
}

/// The same without suspended memberships, and without what follows from them alone.
fn groups_without(
    rows: &(impl Rows + ?Sized),
    id: ViceId,
    suspended: &Suspended,
) -> Result<BTreeSet<ViceId>, ProtectionError> {
    let (mut found, mut fresh) = (BTreeSet::new(), vec![id]);
    // Nesting is bounded when members are added, so the walk is complete.
    for _ in 0..NESTING_MAX {
        let mut next = Vec::new();
        for id in fresh {
            let groups = members::groups_of(rows, id)?.into_iter();
            next.extend(groups.filter(|group| !suspended.has(*group) && found.insert(*group)));
        }
        if found.len() > CPS_MAX {
            return Err(Refusal::TooMany.into());
        }
        fresh = next;
    }
    Ok(found)
}

/// The subdomain of an id that must exist, sorted (docs/protocol ptserver.md "6. Translation and CPS").
pub(super) fn subdomain(rows: &(impl Rows + ?Sized), id: ViceId) -> Result<Vec<ViceId>, ProtectionError> {
    of_entry(rows, &rows::find(rows, id)?, &Suspended::default())
}

/// The subdomain of the holder of a token, if the token counts still.
pub(super) fn of_holder(
    rows: &(impl Rows + ?Sized),
    id: ViceId,
    terms: &Terms,
) -> Result<Vec<ViceId>, ProtectionError> {
    let entry = rows::find(rows, id)?;
    if !terms.count_in(entry.tokens) {
        return Err(Refusal::Revoked.into());
    }
    of_entry(rows, &entry, &terms.suspended)
}

fn of_entry(
    rows: &(impl Rows + ?Sized),
    entry: &Entry,
    suspended: &Suspended,
) -> Result<Vec<ViceId>, ProtectionError> {
    let id = entry.id;
    let mut all = groups_without(rows, id, suspended)?;
    all.extend([id, ViceId::ANYUSER]);
    if is_local(id, entry.is_foreign()) {
        all.insert(ViceId::AUTHUSER);
    }
    Ok(all.into_iter().collect())
}

/// Whether an id is in `system:authuser`: an authenticated user of this cell.
pub(super) fn is_local(id: ViceId, is_foreign: bool) -> bool {
    !matches!(id, ViceId::ANONYMOUS | ViceId::ANYUSER) && !is_foreign
}

/// The groups of a host, sorted: those of the users named by its address and by its networks.
pub(super) fn of_host(rows: &(impl Rows + ?Sized), host: Ipv4Addr) -> Result<Vec<ViceId>, ProtectionError> {
    let [a, b, c, d] = host.octets();
    let mut all = BTreeSet::new();
    for address in [[a, b, c, d], [a, b, c, 0], [a, b, 0, 0], [a, 0, 0, 0]] {
        let name = Ipv4Addr::from(address).to_string();
        if let Some(id) = rows::id_of(rows, &name)? {
            all.append(&mut groups(rows, id)?);
        }
    }
    Ok(all.into_iter().collect())
}
