//! Clients of the database servers on other hosts.

use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::servers::security::CellSecurity;
use afs_db::ProtectionDb;
use afs_net::System;
use afs_rpc::{Rx, Security};
use afs_server::remote::{DatabaseServers, Registration, RemoteProtectionDb, keep_registered};
use afs_server::scrub::Replicas;
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use std::sync::Arc;

/// Routes to the database servers of a cell.
pub(super) struct RemoteDatabases<'a> {
    pub(super) system: &'a Arc<System>,
    pub(super) rx: &'a Rx,
    pub(super) options: &'a ServerOptions,
    pub(super) security: &'a CellSecurity,
}

impl RemoteDatabases<'_> {
    fn servers(&self, service: ServiceId, port: u16, security: &Security) -> DatabaseServers {
        let addresses = self.options.database_servers.iter().map(|server| Ports::at(*server, port));
        DatabaseServers::new(self.rx, service, addresses, security)
    }

    /// The protection servers.
    pub(super) fn protection(&self) -> Arc<dyn ProtectionDb> {
        let port = self.options.ports.protection();
        let of = |security: &Security| self.servers(ServiceId::PROTECTION, port, security);
        let (ours, nobody) = (of(&self.security.of_servers()), of(&Security::null()));
        Arc::new(RemoteProtectionDb::new(self.system.env(), ours, nobody))
    }

    /// Servers from which damaged data of this one may be repaired.
    pub(super) fn replicas(&self) -> Replicas {
        let (ports, security) = (self.options.ports, self.security.clone());
        let servers = self.options.location_servers().into_iter();
        let addresses = servers.map(|server| Ports::at(server, ports.location()));
        let locations =
            DatabaseServers::new(self.rx, ServiceId::LOCATION, addresses, &self.security.of_servers());
        Replicas::new(locations, self.rx.clone(), Arc::new(move || security.of_servers()), ports.volume())
    }

    /// Registers this file server with the location servers, now or as soon as one accepts it.
    pub(super) fn register(&self, uuid: Uuid) {
        let port = self.options.ports.location();
        let servers = self.servers(ServiceId::LOCATION, port, &self.security.of_servers());
        let registration = Registration { uuid, addresses: vec![self.options.listen] };
        let env = self.system.env();
        env.spawn(Box::pin(keep_registered(env.clone(), servers, registration)));
    }
}
