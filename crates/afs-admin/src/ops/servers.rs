//! The servers that the location database knows.

use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;
use afs_wire::vl::{AddressQuery, ChangeAddr, GetAddrs, GetAddrsU, REMOVE_ADDRESS, ServerKey};

use super::EntryFilter;
use crate::Admin;
use crate::error::{AdminError, AdminResult};

/// A file server in the location database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownServer {
    /// Its permanent name; `None` of one that has never registered.
    pub uuid: Option<Uuid>,
    /// Its addresses; the first stands for it. At least one.
    pub addresses: Vec<Ipv4Addr>,
}

impl KnownServer {
    /// The address that stands for it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
    }
}

/// In place of an address, in the list of all servers: OpenAFS's handle of one with several. Its low 16 bits are no
/// use outside of the database that it is of.
const HANDLE: u32 = 0xff00_0000;
/// Most servers of a cell.
const SERVERS_MAX: i32 = 254;
/// How many names of volumes an error shows.
const SHOWN_MAX: usize = 5;

impl Admin {
    /// All file servers that the location database knows, in its order.
    ///
    /// # Errors
    /// No location server answers.
    pub async fn servers(&self) -> AdminResult<Vec<KnownServer>> {
        let listed = self.locate(&GetAddrs { handle: 0, spare: 0 }).await.map_err(could_not_list)?;
        let mut found = Vec::new();
        for index in 1..=SERVERS_MAX {
            if found.len() == listed.addresses.len() {
                break;
            }
            match self.server_by(ServerKey::Index(index)).await {
                Ok(Some(server)) => found.push(server),
                // A place without a registered server: whether there are more behind it is not known.
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

    /// The server with that address, if the location database knows it.
    ///
    /// # Errors
    /// No location server answers.
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

    /// Takes a server out of the location database.
    ///
    /// # Errors
    /// It is not in it, or an entry names it.
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
