//! Finding volumes and their servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_wire::ids::{VolumeId, VolumeKind};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::CellIndex;
use crate::location::{Address, Cell, Group, Server, ServerName, Volume, address_of};
use crate::venus::Venus;

impl Venus {
    /// A volume by its number.
    pub(super) async fn volume(&self, cell: CellIndex, id: VolumeId) -> Result<Arc<Volume>> {
        if let Some(volume) = self.volumes.get(cell, id) {
            return Ok(volume);
        }
        let group = self.group(cell, &address_of(id)).await?;
        let kind = group.kind_of(id).ok_or(missing())?;
        self.learn_volume(cell, &group, id, kind).await
    }

    /// A volume of a group, with its servers.
    pub(super) async fn learn_volume(
        &self,
        cell: CellIndex,
        group: &Arc<Group>,
        id: VolumeId,
        kind: VolumeKind,
    ) -> Result<Arc<Volume>> {
        if let Some(volume) = self.volumes.get(cell, id) {
            return Ok(volume);
        }
        let sites = self.servers_of(cell, &group.sites_of(kind)).await?;
        Ok(self.volumes.learn(cell, id, kind, group.clone(), sites, self.now()))
    }

    /// The volumes of a name (or decimal number); ENODEV if there are none.
    pub(super) async fn group(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        let now = self.now();
        let since =
            afs_rpc::Instant(now.as_nanos().saturating_sub(self.limits.location_max_age.as_nanos() as u64));
        match self.volumes.group(cell, name, since) {
            Some(group) => Ok(group),
            None => self.ask_group(cell, name).await?.ok_or(missing()),
        }
    }

    async fn ask_group(&self, cell: CellIndex, name: &str) -> Result<Option<Arc<Group>>> {
        let group = self.cell_at(cell)?.group(&self.env, &self.counters, name).await?.map(Arc::new);
        if let Some(group) = &group {
            self.volumes.remember_group(cell, name, group.clone(), self.now());
        }
        Ok(group)
    }

    /// Asks again where a volume is. Says whether it is somewhere else now.
    pub(super) async fn relocate(&self, volume: &Arc<Volume>) -> Result<bool> {
        let Some(group) = self.ask_group(volume.cell, &address_of(volume.id)).await? else {
            return Ok(volume.relocate(volume.group(), Vec::new(), self.now()));
        };
        let sites = self.servers_of(volume.cell, &group.sites_of(volume.kind)).await?;
        Ok(volume.relocate(group, sites, self.now()))
    }

    /// The servers of some sites. A server that the location service does not know any more is left out.
    async fn servers_of(&self, cell: CellIndex, names: &[ServerName]) -> Result<Vec<Arc<Server>>> {
        let mut servers = Vec::with_capacity(names.len());
        for name in names {
            match self.server_of(cell, *name).await {
                Ok(server) => servers.extend(server),
                Err(error) if error.kind == ErrorKind::NoVolume => {}
                Err(error) => return Err(error),
            }
        }
        Ok(servers)
    }

    async fn server_of(&self, cell: CellIndex, name: ServerName) -> Result<Option<Arc<Server>>> {
        let config = self.cell_at(cell)?;
        let (uuid, unique, addresses) = match name {
            ServerName::Address(address) => (None, 0, vec![address]),
            ServerName::Uuid(uuid, unique) => {
                if let Some(server) = self.servers.current(uuid, unique) {
                    return Ok(Some(server));
                }
                let (addresses, _) = config.addresses(&self.env, &self.counters, uuid).await?;
                (Some(uuid), unique, addresses)
            }
        };
        let peers: Vec<SocketAddr> =
            reachable(addresses).map(|ip| SocketAddr::from((ip, config.file_port))).collect();
        let dead = self.limits.server_dead;
        Ok(self.servers.learn(uuid, unique, &peers, |peer| Address::new(&self.rx, peer, dead)))
    }

    fn cell_at(&self, cell: CellIndex) -> Result<&Cell> {
        self.cells.get(usize::from(cell.0)).ok_or(missing())
    }
}

/// Loopback addresses only if there are no others: they are somebody else's unless the server is on this machine
/// (docs/protocol/vldb.md "9. Traps").
fn reachable(addresses: Vec<Ipv4Addr>) -> impl Iterator<Item = Ipv4Addr> {
    let only_loopback = addresses.iter().all(Ipv4Addr::is_loopback);
    addresses.into_iter().filter(move |ip| only_loopback || !ip.is_loopback())
}

fn missing() -> VenusError {
    VenusError::new(ErrorKind::NoVolume, "volume")
}
