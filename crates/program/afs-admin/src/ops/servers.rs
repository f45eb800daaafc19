//! File servers in the location database: list and removal.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Security};
use afs_wire::error::AbortCode;
use afs_wire::fs::GetTime;
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{AddressQuery, ChangeAddr, GetAddrs, GetAddrsU, REMOVE_ADDRESS, ServerKey};

use super::EntryFilter;
use crate::Admin;
use crate::error::{AdminError, AdminResult};

/// A file server in the location database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// Its UUID; `None` if it has never registered.
    pub uuid: Option<Uuid>,
    /// Its addresses; the first identifies it. At least one.
    pub addresses: Vec<Ipv4Addr>,
}

impl KnownServer {
    /// The address that identifies it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }
}

/// Marks OpenAFS's handle of a server with several addresses, in the place of an address in the list of all
/// servers. Its low 16 bits have a meaning only in its own database.
const HANDLE: u32 = 0xff00_0000;
/// Dead time of a file server that is asked for its time.
const DEAD: Duration = Duration::from_secs(3);
/// Most servers of a cell.
const SERVERS_MAX: i32 = 254;
/// Most names of volumes in an error.
const SHOWN_MAX: usize = 5;

impl Admin {
    /// All file servers in the location database, in its order.
    ///
    /// # Errors
    /// No location server replies.
    pub async fn servers(&self) -> AdminResult<Vec<KnownServer>> {
        let listed = self.locate(&GetAddrs { handle: 0, spare: 0 }).await.map_err(could_not_list)?;
        let mut found = Vec::new();
        for index in 1..=SERVERS_MAX {
            if found.len() == listed.addresses.len() {
                break;
            }
            match self.server_by(ServerKey::Index(index)).await {
                Ok(Some(server)) => found.push(server),
                // A slot without a registered server: there may be more after it.
                Ok(None) => {}
                Err(CallError::Abort(AbortCode::VL_INDEXERANGE)) => break,
                Err(error) => return Err(could_not_list(error)),
            }
        }
        for address in listed.addresses.iter().filter(|word| **word & HANDLE != HANDLE && **word != 0) {
            let address = Ipv4Addr::from(*address);
            if !found.iter().any(|server| server.addresses.contains(&address)) {
                found.push(KnownServer { uuid: None, addresses: vec![address] });
            }
        }
        Ok(found)
    }

    /// How many seconds the clock of a file server is ahead of this machine's; negative if it is behind. Off by a second, and by
    /// the way of the reply.
    ///
    /// # Errors
    /// Its file service does not reply, or not with a time.
    pub async fn clock_ahead(&self, server: Ipv4Addr) -> AdminResult<i64> {
        let peer = SocketAddr::from((server, self.cell().file_port));
        let files = self.rx().connection(peer, ServiceId::FILE, Security::null());
        let files = files.with_options(CallOptions { dead: Some(DEAD), hard: None });
        let asked = files.call(&GetTime {}).await;
        let reply = asked.map_err(|e| AdminError::call("Could not ask for the time", Some(server), e))?;
        Ok(i64::from(reply.seconds) - i64::from(self.now().0))
    }

    /// The server with that address, if the location database has it.
    ///
    /// # Errors
    /// No location server replies.
    pub async fn known_server(&self, address: Ipv4Addr) -> AdminResult<Option<KnownServer>> {
        match self.server_by(ServerKey::Address(address)).await {
            Ok(Some(server)) => Ok(Some(server)),
            Ok(None) => {
                let all = self.servers().await?;
                Ok(all.into_iter().find(|server| server.addresses.contains(&address)))
            }
            Err(error) => Err(could_not_list(error)),
        }
    }

    async fn server_by(&self, key: ServerKey) -> Result<Option<KnownServer>, CallError> {
        match self.locate(&GetAddrsU { query: AddressQuery::from(key) }).await {
            Ok(reply) => {
                let addresses = reply.addresses.into_vec();
                Ok(Some(KnownServer { uuid: Some(reply.uuid), addresses })
                    .filter(|s| !s.addresses.is_empty()))
            }
            Err(CallError::Abort(AbortCode::VL_NOENT)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a server from the location database.
    ///
    /// # Errors
    /// It is not in it, or an entry refers to it.
    pub async fn remove_server(&self, address: Ipv4Addr) -> AdminResult<KnownServer> {
        let doing = format!("Could not remove server {address}");
        let server = self.known_server(address).await?.ok_or_else(|| {
            AdminError::refused(&doing, "the location database does not know it")
                .with_hint("`andrew server list` shows those it knows")
        })?;
        let filter = EntryFilter { server: Some(address), ..EntryFilter::default() };
        let left = self.entries(&filter).await?;
        if !left.is_empty() {
            let names: Vec<String> = left.iter().take(SHOWN_MAX).map(|e| e.name.to_string()).collect();
            let more = if left.len() > SHOWN_MAX { ", ..." } else { "" };
            let why = format!("{} volumes are on it: {}{more}", left.len(), names.join(", "));
            return Err(AdminError::refused(doing, why)
                .with_hint(format!("move them away first: `andrew server empty {address}`")));
        }
        let gone = self.locate(&ChangeAddr { old: REMOVE_ADDRESS, new: server.address() }).await;
        gone.map_err(|error| AdminError::call(doing, None, error))?;
        Ok(server)
    }
}

fn could_not_list(error: CallError) -> AdminError {
    AdminError::call("Could not list the servers", None, error)
}
