//! Protection service calls that translate names and ids, and list the groups of a subject (docs/protocol
//! ptserver.md "6. Translation and CPS").

use afs_db::protection::BAD_ID;
use afs_rpc::{Caller, Table};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{self, Ids, IdsReply, NameChars};

use super::{ProtectionServer, Server, call, code, convert};

/// Most ids translated at a time: their names fill the largest reply that our clients accept.
const IDS_MAX: usize = 4000;

pub(super) fn add(table: Table<ProtectionServer>) -> Table<ProtectionServer> {
    let table = call(table, |server: Server, _, call: pt::NameToId| async move { server.ids(&call).await });
    let table =
        call(
            table,
            |server: Server, caller, call: pt::IdToName| async move { server.names(&caller, call).await },
        );
    let table = call(table, |server: Server, caller, call: pt::GetCps| async move {
        let found = server.db.cps_of(server.reader(&caller)?, call.id, None).await;
        Ok(reply(found.map_err(code)?))
    });
    let table = call(table, |server: Server, caller, call: pt::GetCps2| async move {
        let found = server.db.cps_of(server.reader(&caller)?, call.id, Some(call.host)).await;
        Ok(reply(found.map_err(code)?))
    });
    call(table, |server: Server, caller, call: pt::GetHostCps| async move {
        let found = server.db.cps_of(server.reader(&caller)?, BAD_ID, Some(call.host)).await;
        Ok(reply(found.map_err(code)?))
    })
}

pub(super) fn reply(ids: Vec<ViceId>) -> IdsReply {
    IdsReply { ids: Ids::first_of(ids), over: 0 }
}

impl ProtectionServer {
    /// For every caller, known or not.
    async fn ids(&self, call: &pt::NameToId) -> Result<pt::NameToIdReply, AbortCode> {
        let names = call.names.iter().map(|name| self.local_name(convert::looked_up(name))).collect();
        let found = self.db.ids_of(names).await.map_err(code)?;
        let ids = found.into_iter().map(|id| id.unwrap_or(ViceId::ANONYMOUS));
        Ok(pt::NameToIdReply { ids: Ids::first_of(ids) })
    }

    async fn names(&self, caller: &Caller, call: pt::IdToName) -> Result<pt::IdToNameReply, AbortCode> {
        self.identified(caller).await?;
        if call.ids.len() > IDS_MAX {
            return Err(AbortCode::PRTOOMANY);
        }
        let ids = call.ids.into_vec();
        let found = self.db.names_of(ids.clone()).await.map_err(code)?;
        let text = |(name, id): (Option<String>, ViceId)| name.unwrap_or_else(|| id.to_string());
        let names = found.into_iter().zip(ids).map(text);
        let names = names.map(|name| NameChars::truncated(name.as_bytes()));
        Ok(pt::IdToNameReply { names: pt::Names::first_of(names) })
    }

    /// A name without this cell's name at its end.
    fn local_name(&self, name: String) -> String {
        match name.split_once('@') {
            Some((user, cell)) if self.options.local.iter().any(|own| own.eq_ignore_ascii_case(cell)) => {
                user.into()
            }
            _ => name,
        }
    }
}
