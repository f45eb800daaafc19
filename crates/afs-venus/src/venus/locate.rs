//! Finding volumes and their servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_wire::ids::{VolumeId, VolumeKind};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::CellIndex;
use crate::location::{Address, Asking, Cell, Group, Server, ServerName, Volume, address_of};
use crate::venus::Venus;
use crate::venus::calls::Target;

/// A doubt about where a volume is that could not be settled comes back after this.
const DOUBT_AGAIN: Duration = Duration::from_secs(30);

impl Venus {
    /// A volume by its number.
    pub(super) async fn volume(&self, cell: CellIndex, id: VolumeId) -> Result<Arc<Volume>> {
        if let Some(volume) = self.location.volumes().get(cell, id) {
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
        if let Some(volume) = self.location.volumes().get(cell, id) {
            return Ok(volume);
        }
        let sites = self.servers_of(cell, &group.sites_of(kind)).await?;
        self.measure(kind, &sites);
        Ok(self.location.volumes().learn(cell, id, kind, group.clone(), sites, self.now()))
    }

    /// The volumes of a name (or decimal number); ENODEV if there are none.
    pub(super) async fn group(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        let now = self.now();
        let since =
            afs_rpc::Instant(now.as_nanos().saturating_sub(self.limits.location_max_age.as_nanos() as u64));
        match self.location.volumes().group(cell, name, since) {
            Some(group) => Ok(group),
            None => self.group_anew(cell, name).await,
        }
    }

    /// The same, whatever is remembered.
    pub(super) async fn group_anew(&self, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        self.ask_group(cell, name).await?.ok_or(missing())
    }

    async fn ask_group(&self, cell: CellIndex, name: &str) -> Result<Option<Arc<Group>>> {
        let config = self.cell_at(cell)?;
        let asking = self.asking();
        let group = self.ask_patiently(config, || config.group(&asking, name)).await?.map(Arc::new);
        if let Some(group) = &group {
            self.location.volumes().remember_group(cell, name, group.clone(), self.now());
        }
        Ok(group)
    }

    /// Asks again where a volume is. Says whether it is somewhere else now.
    pub(super) async fn relocate(&self, volume: &Arc<Volume>) -> Result<bool> {
        let (group, sites) = match self.ask_group(volume.cell, &address_of(volume.id)).await? {
            Some(group) => {
                let sites = self.servers_of(volume.cell, &group.sites_of(volume.kind)).await?;
                (group, sites)
            }
            None => (volume.group(), Vec::new()),
        };
        self.measure(volume.kind, &sites);
        let changed = volume.relocate(group, sites, self.now());
        if changed {
            tracing::info!(volume = %volume.id, "the volume is at other servers than before");
            self.heard.notify_all();
            self.promises.left(volume);
        }
        Ok(changed)
    }

    /// As [`Venus::relocate`], for a call under way. Where nobody answered the location service may be as silent as the
    /// server was: whoever waits has waited long enough for both.
    pub(super) async fn relocate_within(&self, volume: &Arc<Volume>, silent: bool) -> bool {
        let asking = self.relocate(volume);
        if !silent {
            return asking.await.unwrap_or(false);
        }
        let asked = self.env.timeout(self.limits.hedge_patience * 2, asking).await;
        matches!(asked, Ok(Ok(true)))
    }

    /// Before a call: asks where a volume is if a server has broken all promises on it, which it does when the volume
    /// moves, or is released. Not for long: without an answer the call goes where the volume was.
    pub(super) async fn settle_doubt(&self, volume: &Arc<Volume>) {
        let now = self.now();
        if !volume.take_doubt(now, now + DOUBT_AGAIN) {
            return;
        }
        let asking = self.env.timeout(self.limits.hedge_patience * 2, self.relocate(volume));
        if !matches!(asking.await, Ok(Ok(_))) {
            tracing::debug!(volume = %volume.id, "it cannot be told whether the volume is still where it was");
        }
    }

    /// Finds out how near the servers of a replicated volume are, those that nobody has called yet.
    fn measure(&self, kind: VolumeKind, sites: &[Arc<Server>]) {
        if kind != VolumeKind::ReadOnly || sites.len() < 2 {
            return;
        }
        let unmeasured =
            sites.iter().flat_map(|server| server.addresses().into_iter().map(move |at| (server, at)));
        for (server, address) in unmeasured.filter(|(_, address)| address.claim_first_probe()) {
            let (me, target) = (self.again(), Target::anonymous(server, address));
            self.env.spawn(Box::pin(async move { me.probe_and_judge(&target).await }));
        }
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
                if let Some(server) = self.location.servers().current(cell, uuid, unique) {
                    return Ok(Some(server));
                }
                let asking = self.asking();
                let (addresses, _) = self.ask_patiently(config, || config.addresses(&asking, uuid)).await?;
                (Some(uuid), unique, addresses)
            }
        };
        let peers: Vec<SocketAddr> =
            reachable(addresses).map(|ip| SocketAddr::from((ip, config.file_port))).collect();
        let dead = self.limits.server_dead;
        let draw = self.env.random_u64();
        Ok(self
            .location
            .servers()
            .learn(cell, uuid, unique, &peers, draw, |peer| Address::new(&self.rx, peer, dead)))
    }

    fn asking(&self) -> Asking<'_> {
        Asking { env: &self.env, counters: &self.counters, haste: self.limits.hedge_patience }
    }

    fn cell_at(&self, cell: CellIndex) -> Result<&Cell> {
        self.location.cell(cell).ok_or(missing())
    }
}

/// Addresses that can be one server's. Loopback addresses only if there are no others: they are somebody else's unless
/// the server is on this machine (docs/protocol/vldb.md "9. Traps").
fn reachable(mut addresses: Vec<Ipv4Addr>) -> impl Iterator<Item = Ipv4Addr> {
    addresses.retain(|ip| !ip.is_unspecified() && !ip.is_multicast() && !is_reserved(*ip));
    let only_loopback = addresses.iter().all(Ipv4Addr::is_loopback);
    addresses.into_iter().filter(move |ip| only_loopback || !ip.is_loopback())
}

/// 240.0.0.0/4, with the address of everybody (RFC 1112, section 4; RFC 919, section 7).
fn is_reserved(ip: Ipv4Addr) -> bool {
    ip.octets()[0] >= 240
}

fn missing() -> VenusError {
    VenusError::new(ErrorKind::NoVolume, "volume")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_to_addresses_that_can_be_one_servers_only() {
        let kept = |addresses: &[[u8; 4]]| {
            let addresses = addresses.iter().map(|octets| Ipv4Addr::from(*octets)).collect();
            reachable(addresses).map(|ip| ip.octets()).collect::<Vec<_>>()
        };
        let (server, here) = ([192, 0, 2, 1], [127, 0, 0, 1]);
        assert_eq!(kept(&[server, here]), [server]);
        assert_eq!(kept(&[here]), [here]);
        for nobodys in [[0, 0, 0, 0], [224, 0, 0, 1], [239, 255, 255, 255], [240, 0, 0, 1], [255; 4]] {
            assert_eq!(kept(&[nobodys, server]), [server], "{nobodys:?}");
            assert_eq!(kept(&[nobodys, here]), [here], "{nobodys:?}");
            assert!(kept(&[nobodys]).is_empty(), "{nobodys:?}");
        }
    }
}
