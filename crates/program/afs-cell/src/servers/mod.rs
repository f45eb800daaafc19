//! The servers of a cell in this process: stores, sockets, services.

mod audit_log;
mod data_path;
#[cfg(test)]
mod data_path_tests;
mod databases;
mod drive_counts;
mod error;
mod held_volumes;
mod import;
mod index;
mod key_keeping;
mod login_stores;
mod owner_calls;
mod owner_records;
mod owner_requests;
#[cfg(test)]
mod owner_tests;
mod partition_admission;
mod partition_reports;
mod remote_databases;
mod roles;
mod scrub;
mod security;
mod shared_rows;
mod stores;

pub use data_path::{DataPathState, DataPathTable};
pub(crate) use databases::LOGIN_SECRET;
pub use drive_counts::DriveCounts;
pub use error::StartError;
pub use import::{Collisions, ImportRequest, Imported, ImportedFile};
pub use partition_reports::PartitionReport;
pub use scrub::{PartitionScrub, ScrubPass, ScrubTable};
pub use security::ADMIN_NAME;
pub(crate) use shared_rows::EMBEDDED;

use crate::configuration::identity::CellIdentity;
use crate::configuration::options::ServerOptions;
use crate::control::Handler;
use crate::drives::AttachedDrives;
use crate::error::CellResult;
use crate::reserve::Reserves;
use crate::servers::import::Importer;
use crate::servers::owner_calls::OwnerCalls;
use crate::servers::owner_requests::{OwnerRequests, owner_calls};
use crate::servers::partition_admission::Admission;
use crate::servers::remote_databases::RemoteDatabases;
use crate::servers::roles::{Host, Overseer, Role, SocketServices};
use crate::servers::security::CellSecurity;
use crate::servers::stores::Stores;
use afs_auth::rxgk::CallbackOffer;
use afs_kv::Kv;
use afs_net::{System, Udp};
use afs_rpc::{EnvExt, Security};
use afs_server::scrub::Scrubber;
use afs_server::{Audit, Partitions};
use afs_wire::ids::{CellName, Uuid};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Running servers. Dropping them stops them.
pub struct Servers {
    system: Arc<System>,
    roles: Vec<Box<dyn Role>>,
    /// Transport of the calls that the owner makes through the control socket.
    owner: Udp,
    owner_calls: OwnerCalls,
    identity: CellIdentity,
    security: CellSecurity,
    scrubber: Option<Scrubber>,
    /// On a host that serves the databases.
    importer: Option<Importer>,
    drives: AttachedDrives,
    /// The indexes of the stores, which take over what is in their logs when the servers stop.
    indexes: Vec<Kv>,
    partitions: Partitions,
    audit: Audit,
}

/// Longest time that disk operations in progress may take when the servers stop.
const STOP_MAX: Duration = Duration::from_secs(10);

impl Servers {
    /// Opens the stores, creates the first contents of a new cell, and begins to serve.
    ///
    /// # Errors
    /// A port is in use, the address does not belong to this host, the state directory belongs to another cell, or a
    /// store cannot be opened.
    pub fn start(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        let was_in_use = CellIdentity::read(&options.directory)?.is_some();
        let mut admission = Admission::begin(&options.directory, was_in_use)?;
        let identity = identity(system, options)?;
        // Sockets first: a port in use is the likeliest error, and nothing has been changed then.
        let sockets = Sockets::bind(system, options)?;
        let of_partitions = options.partitions.iter().map(|partition| partition.path.clone());
        let reserves = Reserves::before_start([options.directory.clone()].into_iter().chain(of_partitions));
        identity.write(&options.directory)?;
        let security = CellSecurity::open(system, options)?;
        let remote = RemoteDatabases { system, rx: sockets.overseer.rx(), options, security: &security };
        let uuid = identity.file_server;
        let stores = system.block_on(open_stores(&remote, uuid, &mut admission))?;
        let (guard, scrubber) = (stores.guard(system, &security), stores.scrubber(&remote));
        let (env, partitions) = (system.env(), stores.partitions().clone());
        let drives = AttachedDrives::open(&env, &options.directory, &partitions, options.key_age)?;
        let importer = stores.databases().map(|databases| databases.importer.clone());
        let overseen = Vec::new();
        let host =
            Host { system, options, security: &security, stores: &stores, guard: &guard, uuid, overseen };
        let Sockets { roles, overseer, owner } = sockets;
        let roles = start_roles(roles, overseer, host)?;
        let owner_calls = owner_calls(&roles, &owner, options, &security, system.env());
        let (system, indexes, audit) = (system.clone(), stores.indexes(), guard.audit().clone());
        reserves.keep(stores.left_alone());
        admission.end();
        Ok(Self {
            system,
            roles,
            owner,
            owner_calls,
            identity,
            security,
            scrubber,
            importer,
            drives,
            indexes,
            partitions,
            audit,
        })
    }

    /// Security of the connections of the user who runs the cell: as its first user.
    #[must_use]
    pub fn owner_security(&self, callback: Arc<CallbackOffer>) -> Security {
        self.security.owner(callback)
    }

    /// The cell.
    #[must_use]
    pub fn cell(&self) -> &CellName {
        &self.identity.cell
    }

    /// The partitions that do not serve, and why.
    #[must_use]
    pub fn partitions_off_line(&self) -> Vec<PartitionReport> {
        let all = partition_reports::reports(&self.partitions).into_iter();
        all.filter(|report| report.state != partition_reports::ONLINE).collect()
    }

    /// Whether any partition serves.
    #[must_use]
    pub fn has_partition(&self) -> bool {
        self.partitions.iter().next().is_some()
    }

    /// Whether the data path is served.
    #[must_use]
    pub fn data_path(&self) -> DataPathState {
        let of_roles = self.roles.iter().map(|role| role.data_path());
        of_roles.into_iter().find(|state| *state != DataPathState::Off).unwrap_or_default()
    }

    /// Handler of the control socket.
    #[must_use]
    pub fn handler(&self) -> Handler {
        let offers = self.roles.iter().flat_map(|role| role.offers());
        let requests = OwnerRequests {
            system: self.system.clone(),
            calls: self.owner_calls.clone(),
            audit: self.audit.clone(),
            transports: offers.map(|offer| offer.socket.rx().clone()).collect(),
            scrubber: self.scrubber.clone(),
            importer: self.importer.clone(),
            drives: self.drives.clone(),
            partitions: self.partitions.clone(),
            file_server: self.roles.iter().find_map(|role| role.file_server()).map(Arc::downgrade),
        };
        Arc::new(move |uid, request| requests.serve(uid, request))
    }

    /// Stops serving. Clients that wait get an error; everything acknowledged is already on disk.
    pub fn stop(self) {
        self.owner.shutdown();
        // The file role stops last: once no more requests arrive, it waits for those in progress.
        self.roles.into_iter().rev().for_each(|role| role.stop(&self.system));
        write_rest(&self.system, &self.audit);
        for index in &self.indexes {
            if let Err(error) = index.checkpoint() {
                tracing::warn!(%error, "an index could not take over what is in its log; the next start does it");
            }
        }
        self.system.shutdown(STOP_MAX);
    }
}

/// Writes what the audit log still has in memory, the counts of refusals among it.
fn write_rest(system: &Arc<System>, audit: &Audit) {
    let env = system.env();
    if system.block_on(env.timeout(STOP_MAX, audit.flush())).is_err() {
        tracing::warn!("the last records of the audit log could not be written");
    }
}

/// The sockets of a host, bound before anything else is done.
struct Sockets {
    roles: Vec<Box<dyn Role>>,
    overseer: Overseer,
    owner: Udp,
}

impl Sockets {
    fn bind(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        let roles = roles::bind(system, options)?;
        let overseer = Overseer::bind(system, options)?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let owner = roles::bind_at(system, here, afs_rx::Config::default())?;
        Ok(Self { roles, overseer, owner })
    }
}

/// Opens the stores of the host; creates the first contents of a new cell.
async fn open_stores(
    remote: &RemoteDatabases<'_>,
    uuid: Uuid,
    admission: &mut Admission,
) -> CellResult<Stores> {
    let stores = Stores::open(remote, uuid, admission).await?;
    stores.first_start(remote, uuid).await?;
    Ok(stores)
}

/// Starts the roles and then the overseer, and offers their services.
fn start_roles(
    mut roles: Vec<Box<dyn Role>>,
    overseer: Overseer,
    mut host: Host<'_>,
) -> CellResult<Vec<Box<dyn Role>>> {
    // Databases before files, as `bos` lists them.
    host.overseen = roles.iter().rev().flat_map(|role| role.overseen()).copied().collect();
    roles.push(Box::new(overseer));
    for role in &mut roles {
        role.start(&host)?;
        offer(&**role, host.security)?;
    }
    roles.iter().for_each(|role| role.begin(&host));
    Ok(roles)
}

/// Offers the services of a role at its sockets.
fn offer(role: &dyn Role, security: &CellSecurity) -> CellResult {
    for SocketServices { socket, services } in role.offers() {
        for service in services {
            socket.rx().listen_with(service.clone(), security.classes()).map_err(StartError::Offer)?;
        }
    }
    Ok(())
}

/// Identity of the server: from its file, or a new one that is not written yet.
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
