//! File servers of a volume's sites, and which of their addresses are usable.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_rpc::EnvExt;
use afs_wire::ids::{Uuid, VolumeKind};

use crate::calls::{CallContext, Calls, Target, WaitPolicy};
use crate::error::{ErrorKind, Result};
use crate::key::CellIndex;
use crate::location::{Address, Cell, Server, ServerName, is_reserved};

impl Calls {
    /// Measures the round-trip times of the servers of a replicated volume that have not been called yet.
    pub(super) fn measure(&self, kind: VolumeKind, sites: &[Arc<Server>]) {
        if kind != VolumeKind::ReadOnly || sites.len() < 2 {
            return;
        }
        let unmeasured =
            sites.iter().flat_map(|server| server.addresses().into_iter().map(move |at| (server, at)));
        for (server, address) in unmeasured.filter(|(_, address)| address.claim_first_probe()) {
            self.probe_soon(Target::anonymous(server, address));
        }
    }

    /// The servers of some sites. A server that the location service does not know is left out.
    pub(super) async fn servers_of(
        &self,
        context: &CallContext,
        cell: CellIndex,
        names: &[ServerName],
    ) -> Result<Vec<Arc<Server>>> {
        let mut servers = Vec::with_capacity(names.len());
        for name in names {
            match self.server_of(context, cell, *name).await {
                Ok(server) => servers.extend(server),
                Err(error) if error.kind == ErrorKind::NoVolume => {}
                Err(error) => return Err(error),
            }
        }
        Ok(servers)
    }

    async fn server_of(
        &self,
        context: &CallContext,
        cell: CellIndex,
        name: ServerName,
    ) -> Result<Option<Arc<Server>>> {
        let config = self.cell_at(cell)?;
        let (uuid, unique, addresses) = match name {
            ServerName::Address(address) => (None, 0, vec![address]),
            ServerName::Uuid(uuid, unique) => {
                let known = self.parts.location.servers().current(cell, uuid, unique);
                // One that replies is where it was said to be.
                if let Some(server) = known.as_ref().filter(|server| !server.is_unreachable()) {
                    return Ok(Some(server.clone()));
                }
                // Nobody waits for what is known.
                let wait = if known.is_some() { WaitPolicy::NoWait } else { context.wait };
                match self.addresses_of(&CallContext { wait, ..*context }, &config, uuid).await {
                    Ok((addresses, unique)) => (Some(uuid), unique, addresses),
                    Err(error) => return known.map(Some).ok_or(error),
                }
            }
        };
        Ok(self.learn_server(cell, &config, (uuid, unique), addresses))
    }

    /// The addresses of a server, with the version that the reply says: what is of another one is asked for again.
    async fn addresses_of(
        &self,
        context: &CallContext,
        cell: &Arc<Cell>,
        uuid: Uuid,
    ) -> Result<(Vec<Ipv4Addr>, u32)> {
        let query_env = self.query_env(context);
        self.query_with_wait(context, cell, || cell.addresses(&query_env, uuid)).await
    }

    /// Takes up a server with the addresses that it had when an earlier mount ended.
    pub fn restore_server(&self, cell: CellIndex, name: ServerName, addresses: &[Ipv4Addr]) -> Result<()> {
        let config = self.cell_at(cell)?;
        let named = match name {
            ServerName::Address(_) => (None, 0),
            ServerName::Uuid(uuid, unique) => (Some(uuid), unique),
        };
        self.learn_server(cell, &config, named, addresses.to_vec());
        Ok(())
    }

    fn learn_server(
        &self,
        cell: CellIndex,
        config: &Cell,
        (uuid, unique): (Option<Uuid>, u32),
        addresses: Vec<Ipv4Addr>,
    ) -> Option<Arc<Server>> {
        let peers: Vec<SocketAddr> = reachable(addresses, !config.is_found())
            .map(|ip| SocketAddr::from((ip, config.file_port())))
            .collect();
        let dead = self.limits.server_dead;
        let draw = self.parts.env.random_u64();
        let servers = self.parts.location.servers();
        servers.learn(cell, uuid, unique, &peers, draw, |peer| Address::new(&self.parts.rx, peer, dead))
    }
}

/// Usable addresses of a server. Loopback addresses only if there are no others: they lead to the wrong machine unless
/// the server is on this one (docs/protocol/vldb.md "9. Traps"), and none if no administrator of this machine has named the cell.
fn reachable(mut addresses: Vec<Ipv4Addr>, may_be_here: bool) -> impl Iterator<Item = Ipv4Addr> {
    addresses.retain(|ip| !ip.is_unspecified() && !ip.is_multicast() && !is_reserved(*ip));
    let only_loopback = may_be_here && addresses.iter().all(Ipv4Addr::is_loopback);
    addresses.into_iter().filter(move |ip| only_loopback || !ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_to_addresses_that_can_be_one_servers_only() {
        let kept_of = |addresses: &[[u8; 4]], may_be_here| {
            let addresses = addresses.iter().map(|octets| Ipv4Addr::from(*octets)).collect();
            reachable(addresses, may_be_here).map(|ip| ip.octets()).collect::<Vec<_>>()
        };
        let kept = |addresses: &[[u8; 4]]| kept_of(addresses, true);
        let (server, here) = ([192, 0, 2, 1], [127, 0, 0, 1]);
        assert_eq!(kept_of(&[here], false), [[0; 4]; 0], "of a cell that was found by a look-up");
        assert_eq!(kept(&[server, here]), [server]);
        assert_eq!(kept(&[here]), [here]);
        for nobodys in [[0, 0, 0, 0], [224, 0, 0, 1], [239, 255, 255, 255], [240, 0, 0, 1], [255; 4]] {
            assert_eq!(kept(&[nobodys, server]), [server], "{nobodys:?}");
            assert_eq!(kept(&[nobodys, here]), [here], "{nobodys:?}");
            assert!(kept(&[nobodys]).is_empty(), "{nobodys:?}");
        }
    }
}
