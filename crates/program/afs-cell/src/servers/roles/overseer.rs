//! Role of every host: the overseer service, which reports the other roles to `bos`.

use super::{BosRole, Host, Role, SocketServices, bind_server};
use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::error::CellResult;
use crate::servers::key_keeping::KeyKeeping;
use afs_net::{System, Udp};
use afs_rpc::{Rx, Service};
use afs_server::{BosServer, KeyKeeper};
use afs_wire::rpc::ServiceId;
use std::sync::Arc;

/// Command in the output of `bos status -long`: without arguments, which only the owner may see.
const COMMAND: &str = "andrew";

/// The overseer service.
pub(crate) struct Overseer {
    socket: Udp,
    services: Vec<Arc<dyn Service>>,
}

impl Overseer {
    /// Binds the port.
    ///
    /// # Errors
    /// As [`bind_at`](super::bind_at).
    pub(crate) fn bind(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        let socket = bind_server(system, options, options.ports.overseer())?;
        Ok(Self { socket, services: Vec::new() })
    }

    /// Transport over which the host calls other hosts.
    pub(crate) fn rx(&self) -> &Rx {
        self.socket.rx()
    }
}

impl Role for Overseer {
    fn start(&mut self, host: &Host<'_>) -> CellResult {
        let hosts = host.options.location_servers();
        let overseen = afs_server::Overseen {
            cell: host.options.cell.clone(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
            roles: host.overseen.clone(),
            command: COMMAND.to_owned(),
        };
        let (names, guard) = (host.stores.protection().clone(), host.guard.clone());
        let env = host.system.env();
        let keys: Arc<dyn KeyKeeper> = Arc::new(KeyKeeping::new(host.security.clone(), env.clone()));
        self.services = vec![BosServer::service(&env, overseen, names, guard, Some(keys))];
        Ok(())
    }

    fn offers(&self) -> Vec<SocketServices<'_>> {
        vec![SocketServices { socket: &self.socket, services: &self.services }]
    }

    fn for_owner(&self, _ports: Ports) -> Vec<(ServiceId, u16)> {
        Vec::new()
    }

    fn overseen(&self) -> &'static [BosRole] {
        &[]
    }

    fn stop(self: Box<Self>, _system: &System) {
        self.socket.shutdown();
    }
}
