//! Walk over the groups of a user by calls, level by level, that leaves suspended memberships out.
//!
//! A protection server computes the groups of a user with all memberships; it has no call for fewer.

use std::collections::BTreeSet;

use afs_db::protection::NESTING_MAX;
use afs_rpc::{CallError, Suspended};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{ListElements, ListSuperGroups};

use super::DatabaseServers;
use super::protection::ids;

/// The groups that a user is in, directly and through nested groups, without the suspended ones and without those that
/// only follow from them.
pub(super) async fn without(
    servers: &DatabaseServers,
    user: ViceId,
    suspended: &Suspended,
) -> Result<BTreeSet<ViceId>, CallError> {
    let (mut found, mut fresh) = (BTreeSet::new(), Vec::new());
    let direct = servers.call(&ListElements { id: user }).await.map(ids)?;
    fresh.extend(direct.into_iter().filter(|group| !suspended.has(*group) && found.insert(*group)));
    for _ in 1..NESTING_MAX {
        let mut next = Vec::new();
        for id in fresh {
            let outer = match servers.call(&ListSuperGroups { id }).await {
                // Servers that were built without nested groups, and groups that were removed meanwhile.
                Err(CallError::Abort(AbortCode::RXGEN_OPCODE | AbortCode::PRNOENT)) => continue,
                outer => outer.map(ids)?,
            };
            next.extend(outer.into_iter().filter(|group| !suspended.has(*group) && found.insert(*group)));
        }
        fresh = next;
    }
    Ok(found)
}
