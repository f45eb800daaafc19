//! Protection service calls that change entries and memberships.

use afs_db::protection::Change;
use afs_rpc::Table;
use afs_wire::pt::{self, EntryKind};

use super::{ProtectionServer, Server, call, code, convert};

pub(super) fn add(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    add_memberships(add_entries(table))
}

fn add_entries(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    let table = call(table, |server: Server, caller, call: pt::Delete| async move {
        server.db.delete(server.requester(&caller), call.id, server.env.wall()).await.map_err(code)
    });
    let table = call(table, |server: Server, caller, call: pt::ChangeEntry| async move {
        let name = Some(convert::name(&call.name)?).filter(|name| !name.is_empty());
        let change = Change { name, owner: convert::given(call.owner), id: convert::given(call.new_id) };
        server.db.change(server.requester(&caller), call.id, change, server.env.wall()).await.map_err(code)
    });
    let table = call(table, |server: Server, caller, call: pt::SetFieldsEntry| async move {
        let fields = convert::fields(&call);
        server.db.set_fields(server.requester(&caller), call.id, fields).await.map_err(code)
    });
    call(table, |server: Server, caller, call: pt::SetMax| async move {
        let group = call.kind.0 & EntryKind::GROUP.0 != 0;
        server.db.set_max_id(server.requester(&caller), call.id, group).await.map_err(code)
    })
}

fn add_memberships(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    let table = call(table, |server: Server, caller, call: pt::AddToGroup| async move {
        server.db.add_member(server.requester(&caller), call.member, call.group).await.map_err(code)
    });
    call(table, |server: Server, caller, call: pt::RemoveFromGroup| async move {
        server.db.remove_member(server.requester(&caller), call.member, call.group).await.map_err(code)
    })
}
