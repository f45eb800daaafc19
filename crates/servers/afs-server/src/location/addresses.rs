//! Location service calls about servers and their addresses.

use std::sync::Arc;

use afs_db::{SERVERS_MAX, Server};
use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vl::{self, ServerKey};
use afs_wire::xdr::BoundedVec;

use super::{LocationServer, code};
use crate::guard::{administrators, anyone};

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    type Server = Arc<LocationServer>;
    let table = anyone(table, |server: Server, _: vl::GetAddrs| async move { server.all_addresses().await });
    let table =
        anyone(table, |server: Server, call: vl::GetAddrsU| async move { server.addresses(&call).await });
    let table = administrators(table, |server: Server, call: vl::RegisterAddrs| async move {
        server.register(call).await
    });
    administrators(
        table,
        |server: Server, call: vl::ChangeAddr| async move { server.change_address(&call).await },
    )
}

impl LocationServer {
    /// One address for each server. The handles that OpenAFS lists for servers with several addresses refer
    /// to its own database; callers that need all addresses ask by index.
    async fn all_addresses(&self) -> Result<vl::GetAddrsReply, AbortCode> {
        let servers = self.db.servers().await.map_err(code)?;
        let addresses = BoundedVec::first_of(servers.iter().map(|server| server.first_address().into()));
        Ok(vl::GetAddrsReply { callback: [0; 4], count: addresses.len() as i32, addresses })
    }

    async fn addresses(&self, call: &vl::GetAddrsU) -> Result<vl::GetAddrsUReply, AbortCode> {
        let found = match call.query.key()? {
            ServerKey::Address(address) => self.db.server_by_address(address).await,
            ServerKey::Uuid(uuid) => self.db.server_by_uuid(uuid).await,
            ServerKey::Index(index) => self.by_index(index).await?,
        };
        let server = found.map_err(code)?.ok_or(AbortCode::VL_NOENT)?;
        let uuid = server.uuid.ok_or(AbortCode::VL_NOENT)?;
        let addresses = BoundedVec::first_of(server.addresses);
        Ok(vl::GetAddrsUReply { uuid, unique: server.uniquifier, count: addresses.len() as i32, addresses })
    }

    async fn by_index(&self, index: i32) -> Result<Result<Option<Server>, afs_db::LocationError>, AbortCode> {
        if !(1..=i32::from(SERVERS_MAX)).contains(&index) {
            return Err(AbortCode::VL_INDEXERANGE);
        }
        let servers = self.db.servers().await;
        Ok(servers.map(|servers| servers.into_iter().find(|server| i32::from(server.slot.0) == index)))
    }

    async fn register(&self, call: vl::RegisterAddrs) -> Result<Nothing, AbortCode> {
        self.db.register(call.uuid, call.addresses.into_vec()).await.map(drop).map_err(code)
    }

    async fn change_address(&self, call: &vl::ChangeAddr) -> Result<Nothing, AbortCode> {
        self.db.change_address(call.old, call.new).await.map_err(code)
    }
}
