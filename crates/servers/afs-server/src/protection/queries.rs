//! Protection service calls that read entries and lists of them (docs/protocol ptserver.md "7. Listing").

use afs_db::protection::{After, Kinds};
use afs_rpc::{Caller, Table};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{self, ENTRIES_MAX, Entries, Ids, OWNED_MAX, list_kinds};

use super::translate::reply;
use super::{ProtectionServer, Server, call, code, convert};

/// The cursor of `ListEntries` at the end.
const NO_MORE_ENTRIES: i32 = -1;
/// The cursor of `ListOwned` at the end.
const NO_MORE_OWNED: i32 = 0;

pub(super) fn add(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    let table = call(table, |server: Server, caller, _: pt::ListMax| async move {
        server.identified(&caller).await?;
        let (user, group) = server.db.max_ids().await.map_err(code)?;
        Ok(pt::ListMaxReply { user, group })
    });
    let table = call(table, |server: Server, caller, call: pt::ListEntry| async move {
        let status = server.db.status(server.reader(&caller)?, call.id).await.map_err(code)?;
        Ok(pt::ListEntryReply { entry: convert::entry(&status) })
    });
    let table = call(table, |server: Server, caller, call: pt::ListElements| async move {
        let found = server.db.elements(server.reader(&caller)?, call.id).await;
        Ok(reply(found.map_err(code)?))
    });
    let table = call(table, |server: Server, caller, call: pt::ListSuperGroups| async move {
        let found = server.db.supergroups(server.reader(&caller)?, call.id).await;
        Ok(reply(found.map_err(code)?))
    });
    let table = call(table, |server: Server, caller, call: pt::IsAMemberOf| async move {
        let found = server.db.is_member(server.reader(&caller)?, call.member, call.group).await;
        Ok(pt::IsAMemberOfReply { is_member: found.map_err(code)? })
    });
    let table = call(table, |server: Server, caller, call: pt::ListOwned| async move {
        server.owned(&caller, &call).await
    });
    call(table, |server: Server, caller, call: pt::ListEntries| async move {
        server.entries(&caller, &call).await
    })
}

impl ProtectionServer {
    async fn owned(&self, caller: &Caller, call: &pt::ListOwned) -> Result<pt::ListOwnedReply, AbortCode> {
        let after = After(ViceId(call.last));
        let page = self.db.owned(self.reader(caller)?, call.owner, after, OWNED_MAX).await.map_err(code)?;
        let last = convert::cursor(page.next, NO_MORE_OWNED);
        Ok(pt::ListOwnedReply { ids: Ids::first_of(page.items), last })
    }

    async fn entries(
        &self,
        caller: &Caller,
        call: &pt::ListEntries,
    ) -> Result<pt::ListEntriesReply, AbortCode> {
        let kinds = Kinds {
            users: call.kinds & list_kinds::USERS != 0,
            groups: call.kinds & list_kinds::GROUPS != 0,
        };
        let after = After(ViceId(call.start));
        let page = self.db.list(self.reader(caller)?, kinds, after, ENTRIES_MAX).await.map_err(code)?;
        let next = convert::cursor(page.next, NO_MORE_ENTRIES);
        let entries = Entries::first_of(page.items.iter().map(convert::entry));
        Ok(pt::ListEntriesReply { entries, next })
    }
}
