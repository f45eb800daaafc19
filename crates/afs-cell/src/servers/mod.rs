//! The servers of a cell in this process: stores, sockets, services.

mod audit_log;
mod databases;
mod error;
mod import;
mod import_error;
mod import_file;
mod login_stores;
#[cfg(test)]
mod owner_tests;
mod remote_databases;
mod roles;
mod scrub;
mod security;
mod shared_rows;
mod stores;

pub(crate) use databases::LOGIN_SECRET;
pub use error::StartError;
pub use import::{Collisions, ImportRequest, Imported, ImportedFile};
pub use scrub::{PartitionScrub, ScrubPass, ScrubTable};
pub use security::ADMIN_NAME;

use crate::configuration::identity::CellIdentity;
use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::control::{ControlReply, ControlRequest, Handler, Statistics};
use crate::error::CellResult;
use crate::servers::import::Importer;
use crate::servers::remote_databases::RemoteDatabases;
use crate::servers::roles::{Host, Offer, Overseer, Role};
use crate::servers::security::CellSecurity;
use crate::servers::stores::Stores;
use afs_auth::rxgk::CallbackOffer;
use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, EnvExt, Security};
use afs_server::scrub::Scrubber;
use afs_wire::ids::{CellName, Uuid};
use afs_wire::rpc::ServiceId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Running servers. Dropping them stops them.
pub struct Servers {
    system: Arc<System>,
    roles: Vec<Box<dyn Role>>,
    /// Transport of the calls that the control socket orders.
    owner: Udp,
    owner_calls: BTreeMap<u16, Connection>,
    identity: CellIdentity,
    security: CellSecurity,
    scrubber: Option<Scrubber>,
    /// On a host that serves the databases.
    importer: Option<Importer>,
}

/// How long disk work under way may take when the servers stop.
const STOP_MAX: Duration = Duration::from_secs(10);

impl Servers {
    /// Opens the stores, makes what a new cell needs, and begins to serve.
    ///
    /// # Errors
    /// A port that is taken, an address that is not this host's, a directory of another cell, or a store
    /// that cannot be opened.
    pub fn start(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        let identity = identity(system, options)?;
        // Sockets first: a port that is taken is the likeliest trouble, and nothing has been touched then.
        let mut roles = roles::bind(system, options)?;
        let overseer = Overseer::bind(system, options)?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let owner = roles::bind_at(system, here, afs_rx::Config::default())?;
        identity.write(&options.directory)?;
        let security = CellSecurity::open(system, options)?;
        let remote = RemoteDatabases { system, rx: overseer.rx(), options, security: &security };
        let uuid = identity.file_server;
        let stores = system.block_on(Stores::open(&remote, uuid))?;
        system.block_on(stores.first_start(&remote, uuid))?;
        let (guard, scrubber) = (stores.guard(system, &security), stores.scrubber(&remote));
        // Databases before files, as `bos` lists them.
        let overseen = roles.iter().rev().flat_map(|role| role.overseen()).copied().collect();
        roles.push(Box::new(overseer));
        let host =
            Host { system, options, security: &security, stores: &stores, guard: &guard, uuid, overseen };
        for role in &mut roles {
            role.start(&host)?;
            offer(&**role, &security)?;
        }
        let owner_calls = owner_calls(&roles, &owner, options, &security);
        let importer = stores.databases().map(|databases| databases.importer.clone());
        let system = system.clone();
        Ok(Self { system, roles, owner, owner_calls, identity, security, scrubber, importer })
    }

    /// What the one who runs the cell calls it with, as its first user.
    #[must_use]
    pub fn owner_security(&self, callback: Arc<CallbackOffer>) -> Security {
        self.security.owner(callback)
    }

    /// The cell.
    #[must_use]
    pub fn cell(&self) -> &CellName {
        &self.identity.cell
    }

    /// What answers the owner's questions on the control socket.
    #[must_use]
    pub fn handler(&self) -> Handler {
        let (system, calls) = (self.system.clone(), self.owner_calls.clone());
        let offers = self.roles.iter().flat_map(|role| role.offers());
        let servers: Vec<_> = offers.map(|offer| offer.socket.rx().clone()).collect();
        let (security, scrubber, importer) =
            (self.security.clone(), self.scrubber.clone(), self.importer.clone());
        Arc::new(move |question| match question {
            ControlRequest::Call { service, call } => match calls.get(&service) {
                Some(connection) => system.block_on(ask(connection, call)),
                None => ControlReply::Refused(format!("the cell has no service {service}")),
            },
            ControlRequest::Statistics => statistics(&servers),
            ControlRequest::Scrub => json(&scrub::reports(scrubber.as_ref())),
            ControlRequest::Import(request) => {
                match import::import_json(&system, importer.as_ref(), &request) {
                    Ok(done) => json(&done),
                    Err(error) => ControlReply::Refused(error.to_string()),
                }
            }
            ControlRequest::Reload => match security.reload() {
                Ok(()) => ControlReply::Done(Vec::new()),
                Err(error) => ControlReply::Refused(error.to_string()),
            },
        })
    }

    /// Stops serving. Clients that wait are told; everything acknowledged is on disk already.
    pub fn stop(self) {
        self.owner.shutdown();
        // The files last: when no more requests come, they wait for what is under way.
        self.roles.into_iter().rev().for_each(|role| role.stop(&self.system));
        self.system.shutdown(STOP_MAX);
    }
}

/// Offers the services of a role at its sockets.
fn offer(role: &dyn Role, security: &CellSecurity) -> CellResult {
    for Offer { socket, services } in role.offers() {
        for service in services {
            socket.rx().listen_with(service.clone(), security.classes()).map_err(StartError::Offer)?;
        }
    }
    Ok(())
}

/// How orders from the control socket reach the services: sealed with the cell's key, so that no address and no
/// connection number has to be believed.
fn owner_calls(
    roles: &[Box<dyn Role>],
    owner: &Udp,
    options: &ServerOptions,
    security: &CellSecurity,
) -> BTreeMap<u16, Connection> {
    let connect = |(service, port): (ServiceId, u16)| {
        let peer = Ports::at(options.listen, port);
        (service.0, owner.rx().connection(peer, service, security.of_servers()))
    };
    roles.iter().flat_map(|role| role.for_owner(options.ports)).map(connect).collect()
}

/// Makes one call as the owner.
async fn ask(connection: &Connection, call: Vec<u8>) -> ControlReply {
    let answer = async {
        let mut call = connection.begin(call.into(), true).await?;
        call.read_to_end(connection.rx().limits().reply).await
    };
    match answer.await {
        Ok(reply) => ControlReply::Done(reply.to_vec()),
        Err(CallError::Abort(code)) => ControlReply::Aborted(code.0),
        Err(error) => ControlReply::Refused(error.to_string()),
    }
}

fn statistics(servers: &[afs_rpc::Rx]) -> ControlReply {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_us = cpu.tv_sec.unsigned_abs() * 1_000_000 + cpu.tv_nsec.unsigned_abs() / 1000;
    let packets = |rx: &afs_rpc::Rx| {
        let stats = rx.stats();
        (stats.packets_sent.iter().sum::<u64>(), stats.packets_read.iter().sum::<u64>())
    };
    let (sent, received): (Vec<u64>, Vec<u64>) = servers.iter().map(packets).unzip();
    let counted =
        Statistics { packets_sent: sent.iter().sum(), packets_received: received.iter().sum(), cpu_us };
    json(&counted)
}

fn json(answer: &impl Serialize) -> ControlReply {
    match serde_json::to_vec(answer) {
        Ok(json) => ControlReply::Done(json),
        Err(error) => ControlReply::Refused(error.to_string()),
    }
}

/// Who the server is: as written down, or made up now and not yet written down.
fn identity(system: &Arc<System>, options: &ServerOptions) -> CellResult<CellIdentity> {
    if let Some(identity) = CellIdentity::read(&options.directory)? {
        if identity.cell != options.cell {
            let (directory, cell) = (options.directory.clone(), identity.cell);
            return Err(StartError::OtherCell { directory, cell }.into());
        }
        return Ok(identity);
    }
    Ok(CellIdentity { cell: options.cell.clone(), file_server: Uuid(system.random_bytes()) })
}
