//! Mapping from the identity of a connection to the database's caller type.

use afs_db::protection::RequesterIdentity;
use afs_rpc::{Identity, Principal};

/// The caller of a request (docs/protocol ptserver.md "4. Access control inside PR"). A name of another cell
/// keeps that cell: nothing makes it a name of this cell.
pub(crate) fn requester_identity(identity: &Identity) -> RequesterIdentity {
    match (identity, identity.principal()) {
        (Identity::Local, _) | (_, Some(Principal::CellKey)) => RequesterIdentity::CellKey,
        (_, Some(Principal::Named { name, cell: None, terms })) => {
            RequesterIdentity::Local { name: name.to_ascii_lowercase(), terms: terms.clone() }
        }
        // No login service of ours makes these; they have no rights rather than too many.
        (_, Some(Principal::Named { cell: Some(_), terms, .. })) if !terms.suspended.is_empty() => {
            RequesterIdentity::Anonymous
        }
        (_, Some(Principal::Named { name, cell: Some(cell), terms })) => {
            let name = format!("{name}@{cell}").to_ascii_lowercase();
            RequesterIdentity::Foreign { name, terms: terms.clone() }
        }
        (_, None) => RequesterIdentity::Anonymous,
    }
}
