//! The servers of a cell in this process: stores, sockets, services.

use crate::cell::identity::CellIdentity;
use crate::cell::ports::Ports;
use crate::control::{Answer, Handler, Question, Statistics};
use crate::error::{CommandError, CommandResult};
use afs_db::{EmbeddedLocationDb, LocationDb};
use afs_drive::FileDrive;
use afs_kv::{FileMedium, Kv};
use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, EnvExt, Security, Service};
use afs_server::{
    BuiltInNames, CellSpec, FileServer, FileServerConfig, FileServerLimits, Guard, LocationServer,
    Partitions, VolumeServer, VolumeStates, VoteServer, bootstrap,
};
use afs_volume::VolumeStore;
use afs_wire::ids::{CellName, PartitionId, Rights, UnixSeconds, Uuid};
use afs_wire::rpc::ServiceId;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How the servers of a cell are to run.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// An existing directory that belongs to this process; it keeps everything.
    pub directory: PathBuf,
    /// The cell's name. A directory that belongs to another cell is refused.
    pub cell: CellName,
    /// The address clients reach the servers at. Not 0.0.0.0: it goes into the location database.
    pub listen: Ipv4Addr,
    /// The ports.
    pub ports: Ports,
    /// What `system:anyuser` may do in the top directories of a new cell.
    pub anyuser: Rights,
}

/// Running servers. Dropping them stops them.
pub struct Servers {
    system: Arc<System>,
    sockets: Vec<Udp>,
    /// A client of our own whom the servers take for the cell's owner.
    owner: Udp,
    owner_calls: BTreeMap<u16, Connection>,
    identity: CellIdentity,
}

/// The partition a cell of one server has.
const PARTITION: PartitionId = PartitionId(0);
/// How long disk work under way may take when the servers stop.
const STOP_MAX: Duration = Duration::from_secs(10);

impl Servers {
    /// Opens the stores, makes what a new cell needs, and begins to serve.
    ///
    /// # Errors
    /// A port that is taken, an address that is not this host's, a directory of another cell, or a store
    /// that cannot be opened.
    pub fn start(system: &Arc<System>, options: &ServerOptions) -> CommandResult<Self> {
        let identity = identity(system, options)?;
        // Sockets first: a port that is taken is the likeliest trouble, and nothing has been touched then.
        let bind = |port| bind(system, Ports::at(options.listen, port));
        let ports = options.ports;
        let (file, location, volume) = (bind(ports.file())?, bind(ports.location())?, bind(ports.volume())?);
        let owner = self::bind(system, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        identity.write(&options.directory)?;
        let stores = system.block_on(Stores::open(system, &options.directory))?;
        system.block_on(stores.first_start(options, identity.file_server))?;
        let mut servers =
            Self { system: system.clone(), sockets: vec![], owner, owner_calls: BTreeMap::new(), identity };
        let guard = Guard::new(Arc::new(BuiltInNames::default()));
        let (file_service, volume_service) =
            stores.volume_services(system, file.rx(), servers.identity.file_server, &guard);
        let vote = VoteServer::service(system.env(), Ports::at(options.listen, ports.location()));
        servers.offer(file, [file_service])?;
        servers.offer(location, [LocationServer::service(system.env(), stores.db.clone(), guard), vote])?;
        servers.offer(volume, [volume_service])?;
        servers.owner_calls = servers.connections(options);
        Ok(servers)
    }

    fn offer<const N: usize>(&mut self, socket: Udp, services: [Arc<dyn Service>; N]) -> CommandResult {
        let failed = |e: &dyn Display| CommandError::failed(format!("cannot offer a service: {e}"));
        socket.rx().trust(self.owner.local_addr()).map_err(|e| failed(&e))?;
        for service in services {
            socket.rx().listen(service).map_err(|e| failed(&e))?;
        }
        self.sockets.push(socket);
        Ok(())
    }

    fn connections(&self, options: &ServerOptions) -> BTreeMap<u16, Connection> {
        let ports = options.ports;
        let services = [
            (ServiceId::FILE, ports.file()),
            (ServiceId::LOCATION, ports.location()),
            (ServiceId::VOLUME, ports.volume()),
        ];
        let connect = |(service, port): (ServiceId, u16)| {
            let peer = Ports::at(options.listen, port);
            (service.0, self.owner.rx().connection(peer, service, Security::null()))
        };
        services.into_iter().map(connect).collect()
    }

    /// Takes calls from this loopback address for the cell's owner's.
    ///
    /// # Errors
    /// The address is not loopback.
    pub fn trust(&self, peer: SocketAddr) -> CommandResult {
        let trust = |socket: &Udp| socket.rx().trust(peer).map_err(CommandError::failed);
        self.sockets.iter().try_for_each(trust)
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
        Arc::new(move |question| match question {
            Question::Call { service, call } => match calls.get(&service) {
                Some(connection) => system.block_on(ask(connection, call)),
                None => Answer::Refused(format!("the cell has no service {service}")),
            },
            Question::Statistics => statistics(&servers),
            Question::Reload => Answer::Refused("not yet".into()),
        })
    }

    /// Stops serving. Clients that wait are told; everything acknowledged is on disk already.
    pub fn stop(self) {
        self.sockets.into_iter().for_each(Udp::shutdown);
        self.owner.shutdown();
        self.system.shutdown(STOP_MAX);
    }
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
    match serde_json::to_vec(&counted) {
        Ok(json) => Answer::Done(json),
        Err(error) => Answer::Refused(error.to_string()),
    }
}

/// Who the server is: as written down, or made up now and not yet written down.
fn identity(system: &Arc<System>, options: &ServerOptions) -> CommandResult<CellIdentity> {
    if let Some(identity) = CellIdentity::read(&options.directory)? {
        if identity.cell != options.cell {
            return Err(CommandError::usage(format!(
                "{} keeps the cell {}; give --cell {}, or another directory with --state",
                options.directory.display(),
                identity.cell,
                identity.cell
            )));
        }
        return Ok(identity);
    }
    Ok(CellIdentity { cell: options.cell.clone(), file_server: Uuid(system.random_bytes()) })
}

fn bind(system: &Arc<System>, address: SocketAddr) -> CommandResult<Udp> {
    Udp::bind(system, address, afs_rx::Config::default()).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => CommandError::usage(format!(
            "port {} of {} is taken; stop what uses it, or give other ports with --base-port",
            address.port(),
            address.ip()
        )),
        io::ErrorKind::AddrNotAvailable => CommandError::usage(format!(
            "{} is not an address of this host; give one with --listen (`ip -4 addr` shows them)",
            address.ip()
        )),
        _ => CommandError::failed(format!("cannot listen at {address}: {error}")),
    })
}

/// The stores of one server.
struct Stores {
    db: Arc<dyn LocationDb>,
    partitions: Partitions,
}

impl Stores {
    async fn open(system: &Arc<System>, directory: &Path) -> CommandResult<Self> {
        let partition = directory.join("vicepa");
        std::fs::create_dir_all(&partition).map_err(|e| cannot_open(&partition, e))?;
        let db = index(system, &directory.join("db"), afs_db::TABLES)?;
        let rows = index(system, &partition.join("index"), afs_volume::TABLES)?;
        let drive_at = partition.join("drive");
        let drive =
            FileDrive::open_directory(&drive_at, runner(system)).map_err(|e| cannot_open(&drive_at, e))?;
        let env = system.env();
        let clock = env.clone();
        let config = afs_volume::Config::new(move || UnixSeconds(clock.wall().secs_u32()));
        let volumes = VolumeStore::open(rows, Arc::new(drive), config).await;
        let volumes = volumes.map_err(|e| cannot_open(&partition, e))?;
        env.spawn(Box::pin(volumes.clone().run_background()));
        let sweeping = volumes.clone();
        env.spawn(Box::pin(async move {
            if let Err(error) = sweeping.sweep().await {
                tracing::warn!("what an earlier crash left on the drive could not be freed: {error}");
            }
        }));
        Ok(Self {
            db: Arc::new(EmbeddedLocationDb::new(db)),
            partitions: Partitions::new([(PARTITION, volumes)]),
        })
    }

    /// The file service and the volume service, which work on the same volumes and tell the same clients.
    fn volume_services(
        &self,
        system: &Arc<System>,
        rx: &afs_rpc::Rx,
        uuid: Uuid,
        guard: &Guard,
    ) -> (Arc<dyn Service>, Arc<dyn Service>) {
        let states = Arc::new(VolumeStates::default());
        let file = FileServer::new(FileServerConfig {
            env: system.env(),
            rx: rx.clone(),
            uuid,
            partitions: self.partitions.clone(),
            guard: guard.clone(),
            states: states.clone(),
            limits: FileServerLimits::default(),
        });
        let clients = file.clients().clone();
        let volume = VolumeServer::new(system.env(), self.partitions.clone(), states, clients, guard.clone());
        (file.service(), volume.service())
    }

    /// Registers the server, and makes what a new cell begins with.
    async fn first_start(&self, options: &ServerOptions, uuid: Uuid) -> CommandResult {
        let cell = CellSpec {
            cell: options.cell.clone(),
            server: uuid,
            addresses: vec![options.listen],
            partition: PARTITION,
            anyuser: options.anyuser,
            quota: 0,
        };
        let made = bootstrap(&*self.db, &self.partitions, &cell).await;
        made.map(drop).map_err(|e| CommandError::failed(format!("cannot make the cell: {e}")))
    }
}

/// Blocking work of the stores goes to the system's pool.
fn runner(system: &Arc<System>) -> Arc<impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static> {
    let env = system.env();
    Arc::new(move |job: Box<dyn FnOnce() + Send>| env.blocking(job))
}

fn index(system: &Arc<System>, directory: &Path, tables: &[&'static str]) -> CommandResult<Kv> {
    let medium = FileMedium::open(directory).map_err(|e| cannot_open(directory, e))?;
    Kv::open(Arc::new(medium), tables, runner(system), afs_kv::Config::default())
        .map_err(|e| cannot_open(directory, e))
}

fn cannot_open(what: &Path, error: impl Display) -> CommandError {
    CommandError::failed(format!("cannot open {}: {error}", what.display()))
}
