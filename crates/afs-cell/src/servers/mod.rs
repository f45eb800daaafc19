//! The servers of a cell in this process: stores, sockets, services.

mod audit_log;
mod databases;
mod error;
mod import;
mod import_file;
mod login_stores;
#[cfg(test)]
mod owner_tests;
mod remote_databases;
mod scrub;
mod security;
mod shared_rows;
mod stores;

pub(crate) use databases::LOGIN_SECRET;
pub use error::StartError;
pub use import::{Collisions, ImportRequest, Imported, ImportedFile};
pub use scrub::{Look, PartitionScrub, ScrubTable};
pub use security::ADMIN_NAME;

use crate::configuration::identity::CellIdentity;
use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::control::{Answer, Handler, Question, Statistics};
use crate::error::CellResult;
use crate::servers::import::Importer;
use crate::servers::remote_databases::Elsewhere;
use crate::servers::security::CellSecurity;
use crate::servers::stores::Stores;
use afs_admin::journal::Holder;
use afs_admin::scheduled::Snapshotter;
use afs_admin::{Admin, CellJournal, Resumer};
use afs_auth::rxgk::CallbackOffer;
use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, EnvExt, Rx, Security, Service};
use afs_server::scrub::Scrubber;
use afs_server::{FileServer, Guard, VoteServer};
use afs_wire::ids::{CellName, Uuid};
use afs_wire::rpc::ServiceId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Running servers. Dropping them stops them.
pub struct Servers {
    system: Arc<System>,
    sockets: Vec<Udp>,
    /// On a host that serves files.
    files: Option<Arc<FileServer>>,
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
        let sockets = Sockets::bind(system, options)?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let owner = self::bind(system, here, afs_rx::Config::default())?;
        identity.write(&options.directory)?;
        let security = CellSecurity::open(system, options)?;
        let elsewhere = Elsewhere { system, rx: sockets.overseer.rx(), options, security: &security };
        let stores = system.block_on(Stores::open(&elsewhere, identity.file_server))?;
        system.block_on(stores.first_start(&elsewhere, identity.file_server))?;
        let guard = stores.guard(system, &security);
        let (scrubber, system) = (stores.scrubber(&elsewhere), system.clone());
        let mut servers = Self {
            system,
            sockets: vec![],
            files: None,
            owner,
            owner_calls: BTreeMap::new(),
            identity,
            security,
            scrubber,
            importer: stores.databases().map(|databases| databases.importer.clone()),
        };
        servers.offer_all(sockets, options, &stores, &guard)?;
        servers.owner_calls = servers.connections(options);
        Ok(servers)
    }

    fn offer_all(
        &mut self,
        sockets: Sockets,
        options: &ServerOptions,
        stores: &Stores,
        guard: &Guard,
    ) -> CellResult {
        let (system, uuid) = (self.system.clone(), self.identity.file_server);
        if let Some(sockets) = sockets.files {
            let locations = options.location_servers();
            let snapshots = admin(&system, sockets.volume.rx(), options, &self.security, &locations);
            system.env().spawn(Box::pin(Snapshotter::new(snapshots, options.listen).run()));
            let services = stores.volume_services(&system, &sockets, uuid, guard, &self.security);
            let FileSockets { file, volume } = sockets;
            self.offer(file, vec![services.file.service()])?;
            self.offer(volume, vec![services.volume.service()])?;
            self.files = Some(services.file);
        }
        if let (Some(sockets), Some(databases)) = (sockets.databases, stores.databases()) {
            let others: Vec<Ipv4Addr> =
                options.database_servers.iter().copied().filter(|server| *server != options.listen).collect();
            let vote = |socket: &Udp| {
                VoteServer::among(system.env(), socket.local_addr(), &others, databases.has_quorum())
            };
            let of_location = vec![
                databases.location_service(&system, guard),
                databases.operations_service(&system, guard),
                vote(&sockets.location),
            ];
            // Whatever a tool has left half done is finished by the servers.
            // Takes over operations on volumes whose tools are gone.
            let resumer = admin(&system, sockets.location.rx(), options, &self.security, &[options.listen]);
            system.env().spawn(Box::pin(Resumer::new(resumer).run()));
            let mut of_protection =
                vec![databases.protection_service(&self.security, guard), vote(&sockets.protection)];
            if self.security.file().login.enabled {
                of_protection.push(databases.login_service(&system, options, &self.security)?);
            }
            self.offer(sockets.location, of_location)?;
            self.offer(sockets.protection, of_protection)?;
        }
        self.offer(sockets.overseer, vec![stores.overseer_service(&system, options, guard)])
    }

    fn offer(&mut self, socket: Udp, services: Vec<Arc<dyn Service>>) -> CellResult {
        for service in services {
            socket.rx().listen_with(service, self.security.classes()).map_err(StartError::Offer)?;
        }
        self.sockets.push(socket);
        Ok(())
    }

    /// How orders from the control socket reach the services: sealed with the cell's key, so that no address and no
    /// connection number has to be believed.
    fn connections(&self, options: &ServerOptions) -> BTreeMap<u16, Connection> {
        let ports = options.ports;
        let of_files = [(ServiceId::FILE, ports.file()), (ServiceId::VOLUME, ports.volume())];
        let of_databases = [
            (ServiceId::LOCATION, ports.location()),
            (ServiceId::OPERATIONS, ports.location()),
            (ServiceId::PROTECTION, ports.protection()),
            (ServiceId::LOGIN, ports.protection()),
        ];
        let (files, databases) = (options.roles.files, options.roles.database);
        let services =
            of_files.into_iter().filter(|_| files).chain(of_databases.into_iter().filter(|_| databases));
        let connect = |(service, port): (ServiceId, u16)| {
            let peer = Ports::at(options.listen, port);
            (service.0, self.owner.rx().connection(peer, service, self.security.of_servers()))
        };
        services.map(connect).collect()
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
        let servers: Vec<_> = self.sockets.iter().map(|s| s.rx().clone()).collect();
        let (security, scrubber, importer) =
            (self.security.clone(), self.scrubber.clone(), self.importer.clone());
        Arc::new(move |question| match question {
            Question::Call { service, call } => match calls.get(&service) {
                Some(connection) => system.block_on(ask(connection, call)),
                None => Answer::Refused(format!("the cell has no service {service}")),
            },
            Question::Statistics => statistics(&servers),
            Question::Scrub => json(&scrub::told(scrubber.as_ref())),
            Question::Import(request) => match import::asked(&system, importer.as_ref(), &request) {
                Ok(done) => json(&done),
                Err(line) => Answer::Refused(line),
            },
            Question::Reload => match security.reload() {
                Ok(()) => Answer::Done(Vec::new()),
                Err(error) => Answer::Refused(error.to_string()),
            },
        })
    }

    /// Stops serving. Clients that wait are told; everything acknowledged is on disk already.
    pub fn stop(self) {
        self.sockets.into_iter().for_each(Udp::shutdown);
        self.owner.shutdown();
        if let Some(files) = self.files {
            self.system.block_on(files.settle());
        }
        self.system.shutdown(STOP_MAX);
    }
}

/// Operations on volumes as the servers themselves, asking these location servers.
fn admin(
    system: &Arc<System>,
    rx: &Rx,
    options: &ServerOptions,
    security: &CellSecurity,
    servers: &[Ipv4Addr],
) -> Admin {
    let cell = afs_admin::Cell::new(servers, options.ports.base());
    let (env, security) = (system.env(), security.of_servers());
    let journal = Arc::new(CellJournal::new(env.clone(), rx, &security, &cell));
    let holder =
        Holder { who: "servers".to_owned(), host: options.listen.to_string(), pid: std::process::id() };
    Admin::new(env, rx.clone(), security, cell, journal, holder)
}

/// Makes one call as the owner.
async fn ask(connection: &Connection, call: Vec<u8>) -> Answer {
    let answer = async {
        let mut call = connection.begin(call.into(), true).await?;
        call.read_to_end(connection.rx().limits().reply).await
    };
    match answer.await {
        Ok(reply) => Answer::Done(reply.to_vec()),
        Err(CallError::Abort(code)) => Answer::Aborted(code.0),
        Err(error) => Answer::Refused(error.to_string()),
    }
}

fn statistics(servers: &[afs_rpc::Rx]) -> Answer {
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

fn json(answer: &impl Serialize) -> Answer {
    match serde_json::to_vec(answer) {
        Ok(json) => Answer::Done(json),
        Err(error) => Answer::Refused(error.to_string()),
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

/// The sockets of a host's roles.
struct Sockets {
    files: Option<FileSockets>,
    databases: Option<DatabaseSockets>,
    overseer: Udp,
}

/// Where the file service and the volume service listen.
pub(super) struct FileSockets {
    pub(super) file: Udp,
    pub(super) volume: Udp,
}

struct DatabaseSockets {
    location: Udp,
    protection: Udp,
}

impl Sockets {
    fn bind(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        // Clients that call before the stores are open send again.
        let mut config = afs_rx::Config::default();
        config.silent_until_offering = true;
        let bind = |port| bind(system, Ports::at(options.listen, port), config.clone());
        let ports = options.ports;
        let files = || -> CellResult<_> {
            Ok(FileSockets { file: bind(ports.file())?, volume: bind(ports.volume())? })
        };
        let databases = || -> CellResult<_> {
            let (location, protection) = (bind(ports.location())?, bind(ports.protection())?);
            Ok(DatabaseSockets { location, protection })
        };
        Ok(Self {
            files: options.roles.files.then(files).transpose()?,
            databases: options.roles.database.then(databases).transpose()?,
            overseer: bind(ports.overseer())?,
        })
    }
}

fn bind(system: &Arc<System>, address: SocketAddr, config: afs_rx::Config) -> CellResult<Udp> {
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::PortTaken(address),
        io::ErrorKind::AddrNotAvailable => StartError::NotOfThisHost(address),
        _ => StartError::Listen { address, error },
    };
    Ok(Udp::bind(system, address, config).map_err(refused)?)
}
