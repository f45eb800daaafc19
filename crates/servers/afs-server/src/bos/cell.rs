//! Calls about the cell that a host serves, and its administrators.

use afs_db::protection::{ProtectionError, Refusal, Requester};
use afs_rpc::{Caller, Table};
use afs_wire::bos;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;

use super::instances::nth;
use super::{BosServer, Server, text};
use crate::guard::{Required, anyone, row};
use crate::protection::requester::requester_identity;

/// The code by which OpenAFS's servers end the list of administrators, and for which its tools wait.
const NO_MORE_USERS: AbortCode = AbortCode(1);

pub(super) fn add(table: Table<BosServer>) -> Table<BosServer> {
    let table = anyone(table, |server: Server, _: bos::GetCellName| async move {
        Ok(bos::GetCellNameReply { name: text(server.overseen.cell.as_str()) })
    });
    let table = anyone(table, |server: Server, call: bos::GetCellHost| async move {
        let host = nth(&server.overseen.hosts, call.index)?;
        Ok(bos::GetCellHostReply { name: text(host) })
    });
    // Restricted mode: programs are not installed, commands not run and instances not created.
    let table = anyone(table, |_: Server, _: bos::GetRestrictedMode| async move {
        Ok(bos::GetRestrictedModeReply { restricted: 1 })
    });
    row(table, Required::AnyConnection, |server: Server, caller, call: bos::ListSUsers| async move {
        server.administrator(&caller, call.index).await
    })
}

impl BosServer {
    /// The name of the administrator at an index, as far as the protection database shows administrators to
    /// this caller.
    async fn administrator(&self, caller: &Caller, index: i32) -> Result<bos::ListSUsersReply, AbortCode> {
        let requester = Requester { identity: requester_identity(&caller.identity), restricted: false };
        let members = self.db.elements(requester, ViceId::ADMINISTRATORS).await.map_err(code)?;
        let id = *nth(&members, index).map_err(|_| NO_MORE_USERS)?;
        let names = self.db.names_of(vec![id]).await.map_err(code)?;
        let name = names.into_iter().flatten().next().unwrap_or_else(|| id.to_string());
        Ok(bos::ListSUsersReply { name: text(&name) })
    }
}

fn code(error: ProtectionError) -> AbortCode {
    match error {
        ProtectionError::Refused(Refusal::Permission) => AbortCode::BZACCESS,
        error => {
            tracing::error!(%error, "the protection database cannot be used");
            AbortCode::BZIO
        }
    }
}
