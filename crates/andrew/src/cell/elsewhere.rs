//! The databases of a cell whose servers are on other hosts.

use crate::cell::options::ServerOptions;
use crate::cell::ports::Ports;
use crate::cell::security::CellSecurity;
use afs_db::ProtectionDb;
use afs_net::System;
use afs_rpc::{Rx, Security};
use afs_server::remote::{DatabaseServers, Registration, RemoteProtectionDb, keep_registered};
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use std::sync::Arc;

/// How to reach the database servers of a cell.
pub(super) struct Elsewhere<'a> {
    pub(super) system: &'a Arc<System>,
    pub(super) rx: &'a Rx,
    pub(super) options: &'a ServerOptions,
    pub(super) security: &'a CellSecurity,
}

impl Elsewhere<'_> {
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

    /// Tells the location servers of this file server, now or as soon as one takes it.
    pub(super) fn register(&self, uuid: Uuid) {
        let port = self.options.ports.location();
        let servers = self.servers(ServiceId::LOCATION, port, &self.security.of_servers());
        let registration = Registration { uuid, addresses: vec![self.options.listen] };
        let env = self.system.env();
        env.spawn(Box::pin(keep_registered(env.clone(), servers, registration)));
    }
}
