//! Trait of the roles of a host: the sockets of each, its start, its services, its stop.

mod databases;
mod files;
mod overseer;

pub(super) use overseer::Overseer;

use crate::configuration::options::{RoleName, ServerOptions};
use crate::configuration::ports::Ports;
use crate::error::CellResult;
use crate::servers::security::CellSecurity;
use crate::servers::stores::Stores;
use crate::servers::{DataPathState, StartError};
use afs_admin::journal::Holder;
use afs_admin::{Admin, CellJournal};
use afs_net::{System, Udp};
use afs_rpc::{Rx, Service};
use afs_server::{FileServer, Guard, Role as BosRole};
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A role of a host. Its sockets are bound when it is created.
pub(super) trait Role: Send {
    /// Creates the services over the stores of the host, and starts the background work of the role.
    ///
    /// # Errors
    /// Data that a service needs is missing or damaged.
    fn start(&mut self, host: &Host<'_>) -> CellResult;

    /// Begins background work that calls services of this host, when all are offered.
    fn begin(&self, _host: &Host<'_>) {}

    /// The sockets of the role, each with the services offered at it; without services before the start.
    fn offers(&self) -> Vec<SocketServices<'_>>;

    /// Services that the owner of the cell may call through the control socket, with their ports.
    fn for_owner(&self, ports: Ports) -> Vec<(ServiceId, u16)>;

    /// Entries of the role in the output of `bos`.
    fn overseen(&self) -> &'static [BosRole];

    /// Whether it serves the data path.
    fn data_path(&self) -> DataPathState {
        DataPathState::Off
    }

    /// Its file server, if it has started one.
    fn file_server(&self) -> Option<&Arc<FileServer>> {
        None
    }

    /// Stops receiving, and waits for requests in progress.
    fn stop(self: Box<Self>, system: &System);
}

/// A socket, with the services offered at it.
pub(super) struct SocketServices<'a> {
    pub(super) socket: &'a Udp,
    pub(super) services: &'a [Arc<dyn Service>],
}

/// State that the roles of a host share.
pub(super) struct Host<'a> {
    pub(super) system: &'a Arc<System>,
    pub(super) options: &'a ServerOptions,
    pub(super) security: &'a CellSecurity,
    pub(super) stores: &'a Stores,
    pub(super) guard: &'a Guard,
    /// UUID of the file server.
    pub(super) uuid: Uuid,
    /// Entries of all roles in the output of `bos`.
    pub(super) overseen: Vec<BosRole>,
}

/// Binds the sockets of all roles but the overseer.
///
/// # Errors
/// As [`bind_at`].
pub(super) fn bind(system: &Arc<System>, options: &ServerOptions) -> CellResult<Vec<Box<dyn Role>>> {
    let mut roles: Vec<Box<dyn Role>> = Vec::new();
    if options.roles.has(RoleName::Files) {
        roles.push(Box::new(files::FileServices::bind(system, options)?));
    }
    if options.roles.has(RoleName::Database) {
        roles.push(Box::new(databases::DatabaseServices::bind(system, options)?));
    }
    Ok(roles)
}

/// Binds the socket of a server at a port of the host.
fn bind_server(system: &Arc<System>, options: &ServerOptions, port: u16) -> CellResult<Udp> {
    let mut config = afs_rx::Config::default();
    // Packets of clients that call before the stores are open are dropped, and retransmitted by the clients.
    config.silent_until_offering = true;
    bind_at(system, Ports::at(options.listen, port), config)
}

/// Binds a socket at an address.
///
/// # Errors
/// The port is in use, the address does not belong to this host, or the system refuses.
pub(super) fn bind_at(system: &Arc<System>, address: SocketAddr, config: afs_rx::Config) -> CellResult<Udp> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::PortTaken(address),
        io::ErrorKind::AddrNotAvailable => StartError::NotOfThisHost(address),
        _ => StartError::Listen { address, error },
    };
    Ok(Udp::bind(system, address, config).map_err(refused)?)
}

impl Host<'_> {
    /// Operations on volumes in the name of the servers themselves, with these location servers.
    fn admin(&self, rx: &Rx, servers: &[Ipv4Addr]) -> Admin {
        let cell = afs_admin::Cell::new(servers, self.options.ports.base());
        let (env, security) = (self.system.env(), self.security.of_servers());
        let journal = Arc::new(CellJournal::new(env.clone(), rx, &security, &cell));
        let host = self.options.listen.to_string();
        let holder = Holder { who: "servers".to_owned(), host, pid: std::process::id() };
        Admin::new(env, rx.clone(), security, cell, journal, holder)
    }
}
