//! From what a connection proves to who asks the database.

use afs_db::protection::Who;
use afs_rpc::{Identity, Principal};

/// Who calls (docs/protocol ptserver.md "4. Access control inside PR"). A name of another cell stays one: nothing
/// makes it a name of this cell.
pub(crate) fn who(identity: &Identity) -> Who {
    match (identity, identity.principal()) {
        (Identity::Local, _) | (_, Some(Principal::CellKey)) => Who::CellKey,
        (_, Some(Principal::Named { name, cell: None })) => Who::Local(name.to_ascii_lowercase()),
        (_, Some(Principal::Named { name, cell: Some(cell) })) => {
            Who::Foreign(format!("{name}@{cell}").to_ascii_lowercase())
        }
        (_, None) => Who::Anonymous,
    }
}
