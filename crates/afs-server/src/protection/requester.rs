//! Mapping from the identity of a connection to the database's caller type.

use afs_db::protection::RequesterIdentity;
use afs_rpc::{Identity, Principal};

/// The caller of a request (docs/protocol ptserver.md "4. Access control inside PR"). A name of another cell
/// keeps that cell: nothing makes it a name of this cell.
pub(crate) fn requester_identity(identity: &Identity) -> RequesterIdentity {
    match (identity, identity.principal()) {
        (Identity::Local, _) | (_, Some(Principal::CellKey)) => RequesterIdentity::CellKey,
        (_, Some(Principal::Named { name, cell: None, suspended })) => {
            RequesterIdentity::Local { name: name.to_ascii_lowercase(), suspended: suspended.clone() }
        }
        // No login service of ours makes these; they have no rights rather than too many.
        (_, Some(Principal::Named { cell: Some(_), suspended, .. })) if !suspended.is_empty() => {
            RequesterIdentity::Anonymous
        }
        (_, Some(Principal::Named { name, cell: Some(cell), .. })) => {
            RequesterIdentity::Foreign(format!("{name}@{cell}").to_ascii_lowercase())
        }
        (_, None) => RequesterIdentity::Anonymous,
    }
}
