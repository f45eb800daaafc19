//! Role of a database server: location, operations, protection and login service, and the votes that clients of ubik
//! request.

use super::{BosRole, Host, Role, SocketServices, bind_server};
use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::error::CellResult;
use afs_admin::Resumer;
use afs_net::{System, Udp};
use afs_rpc::Service;
use afs_server::VoteServer;
use afs_wire::rpc::ServiceId;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The services of the location database at one port, those of the protection database at another.
pub(super) struct DatabaseServices {
    location: Udp,
    protection: Udp,
    of_location: Vec<Arc<dyn Service>>,
    of_protection: Vec<Arc<dyn Service>>,
}

impl DatabaseServices {
    /// Binds both ports.
    ///
    /// # Errors
    /// As [`bind_at`](super::bind_at).
    pub(super) fn bind(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        Ok(Self {
            location: bind_server(system, options, options.ports.location())?,
            protection: bind_server(system, options, options.ports.protection())?,
            of_location: Vec::new(),
            of_protection: Vec::new(),
        })
    }
}

impl Role for DatabaseServices {
    fn start(&mut self, host: &Host<'_>) -> CellResult {
        let Some(databases) = host.stores.databases() else { return Ok(()) };
        let Host { system, options, security, guard, .. } = *host;
        let here = options.listen;
        let others: Vec<Ipv4Addr> =
            options.database_servers.iter().copied().filter(|server| *server != here).collect();
        let vote = |socket: &Udp| {
            VoteServer::among(system.env(), socket.local_addr(), &others, databases.has_quorum())
        };
        self.of_location = vec![
            databases.location_service(system, guard),
            databases.operations_service(system, guard),
            vote(&self.location),
        ];
        // Resumes operations on volumes whose tools have ended.
        let resumer = host.admin(self.location.rx(), &[here]);
        system.env().spawn(Box::pin(Resumer::new(resumer).run()));
        self.of_protection =
            vec![databases.protection_service(system, security, guard), vote(&self.protection)];
        if security.file().login.enabled {
            self.of_protection.push(databases.login_service(system, options, security, guard)?);
        }
        Ok(())
    }

    fn offers(&self) -> Vec<SocketServices<'_>> {
        vec![
            SocketServices { socket: &self.location, services: &self.of_location },
            SocketServices { socket: &self.protection, services: &self.of_protection },
        ]
    }

    fn for_owner(&self, ports: Ports) -> Vec<(ServiceId, u16)> {
        vec![
            (ServiceId::LOCATION, ports.location()),
            (ServiceId::OPERATIONS, ports.location()),
            (ServiceId::PROTECTION, ports.protection()),
            (ServiceId::LOGIN, ports.protection()),
        ]
    }

    fn overseen(&self) -> &'static [BosRole] {
        &[BosRole::Protection, BosRole::Locations]
    }

    fn stop(self: Box<Self>, _system: &System) {
        self.location.shutdown();
        self.protection.shutdown();
    }
}
