//! Protection service calls that create users and groups.

use afs_db::protection::{NewEntry, NewId};
use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::pt::{self, EntryKind};

use super::{ProtectionServer, Server, call, code, convert};

pub(super) fn add(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    let table = call(table, |server: Server, caller, call: pt::NewEntry| async move {
        let id = kind(call.kind)?;
        let new = NewEntry { name: convert::name(&call.name)?, id, owner: call.owner };
        let id = server.db.create(server.requester(&caller), new).await.map_err(code)?;
        Ok(pt::NewEntryReply { id })
    });
    call(table, |server: Server, caller, call: pt::INewEntry| async move {
        let id = NewId::Given(call.id);
        let new = NewEntry { name: convert::name(&call.name)?, id, owner: call.owner };
        server.db.create(server.requester(&caller), new).await.map(drop).map_err(code)
    })
}

fn kind(kind: EntryKind) -> Result<NewId, AbortCode> {
    match kind {
        EntryKind::USER => Ok(NewId::User),
        EntryKind::GROUP => Ok(NewId::Group),
        EntryKind::FOREIGN => Err(AbortCode::PRPERM),
        _ => Err(AbortCode::PRBADARG),
    }
}
