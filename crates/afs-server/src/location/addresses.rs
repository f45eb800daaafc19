//! Calls about servers and their addresses.

use std::sync::Arc;

use afs_db::{SERVERS_MAX, Server};
use afs_rpc::{Caller, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vl::{self, ServerKey};
use afs_wire::xdr::BoundedVec;

use super::{LocationServer, code, owner_only};

pub(super) fn add(table: Table<LocationServer>) -> Table<LocationServer> {
    table
        .call::<vl::GetAddrs, _, _, _>(|server: Arc<LocationServer>, _, _: vl::GetAddrs| async move {
            server.counted(515, server.all_addresses().await)
        })
        .call::<vl::GetAddrsU, _, _, _>(|server: Arc<LocationServer>, _, call: vl::GetAddrsU| async move {
            server.counted(533, server.addresses(&call).await)
        })
        .call::<vl::RegisterAddrs, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::RegisterAddrs| async move {
                server.counted(532, server.register(&caller, call).await)
            },
        )
        .call::<vl::ChangeAddr, _, _, _>(
            |server: Arc<LocationServer>, caller, call: vl::ChangeAddr| async move {
                server.counted(516, server.change_address(&caller, &call).await)
            },
        )
}

impl LocationServer {
    /// One address for each server. The handles that OpenAFS puts here for servers with several belong to its own
    /// database; who wants all addresses asks by index.
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

    async fn register(&self, caller: &Caller, call: vl::RegisterAddrs) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        self.db.register(call.uuid, call.addresses.into_vec()).await.map(drop).map_err(code)
    }

    async fn change_address(&self, caller: &Caller, call: &vl::ChangeAddr) -> Result<Nothing, AbortCode> {
        owner_only(caller)?;
        self.db.change_address(call.old, call.new).await.map_err(code)
    }
}
