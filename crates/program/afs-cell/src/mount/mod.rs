//! A mount in this process: a socket, a cache, a cache manager and the FUSE file system.

mod accounts;
mod cache_directory;
mod cache_lock;
mod cell_name;
mod error;
mod left_open;
pub(crate) mod local_accounts;
mod not_stored;
mod options;
mod store_reader;

pub use cache_directory::CACHE_BYTES_MIN;
pub use error::ClientError;
pub use left_open::LeftOpen;
pub use not_stored::NotStored;
pub use options::ClientOptions;
pub use store_reader::StoreOptions;

use crate::configuration::ports::Ports;
use crate::connections::Connection;
use crate::error::CellResult;
use crate::mount::accounts::CellAccounts;
use crate::reserve::Reserves;
use crate::tokens::{MountLocation, MountProperties, MountTokens, TokenServer};
use afs_auth::keys::SharedKeys;
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{CallbackOffer, RxgkServer, Variant};
use afs_fuse::{KernelSink, MountOptions, Mounted, ProcessSessions};
use afs_net::{System, Udp};
use afs_rpc::{Level, Security};
use afs_rx::{NullServer, ServerSecurity};
use afs_server::ROOT_CELL;
use afs_venus::{
    CellConfig, DiskCache, ErrorKind, Limits, OwnIdentity, RootKind, SecurityConfig, Sweeper, Venus,
    VenusConfig, VenusError,
};
use afs_wire::ids::{Uuid, VolumeName};
use afs_wire::rpc::ServiceId;
use cache_directory::{client_uuid, default_cache_bytes, is_stacked};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store_reader::StoreReader;

/// Threads that a mount has beside the pool: they take the kernel's requests and notify the kernel.
const MOUNT_THREADS: usize = 5;

/// A cache manager with its socket, not mounted yet.
pub struct Client {
    system: Arc<System>,
    udp: Udp,
    uuid: Uuid,
    /// Offer of keys by which servers that call back prove that they are those this client called.
    callback: Arc<CallbackOffer>,
    /// Present until the client is stopped.
    running: Option<(Arc<Venus>, KernelSink)>,
    mounted: Option<Mounted>,
    /// The kernel's connection to this process, or why it cannot be ended.
    connection: io::Result<Connection>,
    /// Token socket, on which the users of the mount hand in their tokens.
    tokens: Option<TokenServer>,
    cache: PathBuf,
    /// Nothing that names files is written beside the cache.
    is_encrypted: bool,
    /// Held as long as the cache is in use.
    _cache_lock: File,
    reserves: Reserves,
}

impl Client {
    /// Opens socket and cache. Does not call a server yet.
    ///
    /// # Errors
    /// The socket cannot be opened, or the cache is in use or cannot be opened.
    pub fn open(system: &Arc<System>, options: &ClientOptions) -> CellResult<Self> {
        let reserves = Reserves::before_start([options.cache.clone()]);
        let lock = cache_directory::lock(&options.cache, &options.directory)?;
        let uuid = client_uuid(system, &options.cache)
            .map_err(|error| ClientError::Cache { path: options.cache.clone(), error })?;
        let callback =
            CallbackOffer::new(uuid, &system.env()).map_err(|e| ClientError::Key(e.to_string()))?;
        let bind = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let udp = Udp::bind(system, bind, afs_rx::Config::of_client()).map_err(ClientError::Socket)?;
        let (system, callback) = (system.clone(), Arc::new(callback));
        Ok(Self {
            system,
            udp,
            uuid,
            callback,
            running: None,
            mounted: None,
            connection: Err(io::ErrorKind::NotConnected.into()),
            tokens: None,
            cache: options.cache.clone(),
            is_encrypted: options.cache_secret.is_some(),
            _cache_lock: lock,
            reserves,
        })
    }

    /// The offer of keys for callbacks.
    #[must_use]
    pub fn callback(&self) -> &Arc<CallbackOffer> {
        &self.callback
    }

    /// The kernel's connection to this process as the program of the mount.
    ///
    /// # Errors
    /// Nothing is mounted, or those of [`Connection::open`].
    pub fn connection(&self) -> Result<&Connection, &io::Error> {
        self.connection.as_ref()
    }

    /// Starts the cache manager and mounts. `own` is the identity of the user who mounts, as long as that user has no
    /// token.
    ///
    /// # Errors
    /// No server replies, the cell has no root volume, or the directory cannot be mounted on.
    pub fn mount(
        &mut self,
        options: &ClientOptions,
        own: Option<Security>,
        ended: impl FnOnce() + Send + 'static,
    ) -> CellResult {
        if !options.with_servers {
            self.require_cell(options)?;
        }
        let sink = KernelSink::new();
        let own_names = own.clone().unwrap_or_else(Security::null);
        let config = self.config(options, own, sink.clone())?;
        let venus = self.system.block_on(Venus::start(config)).map_err(|e| no_cell(options, e))?;
        self.running = Some((venus.clone(), sink.clone()));
        let mut mount = MountOptions::new(options.cell.to_string());
        let properties = MountProperties::new(&self.system, &venus, &mount.inodes);
        self.tokens = Some(self.token_server(options, properties)?);
        mount.allow_other = options.allow_other;
        mount.accounts = Some(self.accounts(options, &venus, own_names));
        mount.cache_is_stacked = is_stacked(&options.cache);
        // One that had the mount and not all of its threads would leave a directory without replies.
        afs_net::threads::room("fuse", MOUNT_THREADS).map_err(ClientError::Threads)?;
        let mounted = afs_fuse::mount(venus, sink, &options.directory, &mount, self.system.env(), ended);
        self.mounted = Some(mounted.map_err(ClientError::Mount)?);
        let all = crate::mounts::list().unwrap_or_default();
        let own = all.into_iter().rev().find(|mount| mount.directory == options.directory);
        self.connection = Connection::open(&own.map(|own| own.device).unwrap_or_default());
        self.reserves.keep(&[]);
        Ok(())
    }

    /// Opens the token socket of the mount.
    fn token_server(&self, options: &ClientOptions, properties: MountProperties) -> CellResult<TokenServer> {
        let mount = MountLocation {
            directory: options.directory.clone(),
            device: String::new(),
            pid: std::process::id(),
            serves: options.with_servers,
        };
        let (rx, everybody) = (self.udp.rx(), options.allow_other);
        MountTokens::open(rx, &self.callback, properties, mount, everybody, self.uuid)
    }

    /// Accounts as which the users of the cell are shown; calls to its protection servers use `security`.
    fn accounts(&self, options: &ClientOptions, venus: &Arc<Venus>, security: Security) -> Arc<CellAccounts> {
        let connect = |server: &Ipv4Addr| {
            let peer = Ports::at(*server, options.ports.protection());
            self.udp.rx().connection(peer, ServiceId::PROTECTION, security.clone())
        };
        let servers = options.servers.iter().map(connect).collect();
        let (venus, cell) = (venus.clone(), options.cell.clone());
        Arc::new(CellAccounts::new(self.system.env(), venus, cell, servers, options.owner))
    }

    /// Checks the name of the servers' cell, if they reply it. Under another name, paths in the cell would lead elsewhere,
    /// and its tokens would not be used.
    fn require_cell(&self, options: &ClientOptions) -> CellResult {
        let name = cell_name::of(&self.system, &self.udp, &options.servers, options.ports.base());
        match name {
            Some(name) if !name.eq_ignore_ascii_case(options.cell.as_str()) => {
                Err(ClientError::OtherCell { cell: options.cell.clone(), name }.into())
            }
            _ => Ok(()),
        }
    }

    fn config(
        &self,
        options: &ClientOptions,
        own: Option<Security>,
        sink: KernelSink,
    ) -> CellResult<VenusConfig> {
        let cannot = |error| ClientError::of_cache(&options.cache, error);
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let bytes = options.cache_bytes.unwrap_or_else(|| default_cache_bytes(&options.cache));
        let files = options.cache.join("files");
        let opened = DiskCache::open_unswept(&files, bytes, boot.trim(), options.cache_secret.as_ref());
        let (cache, sweeper) = opened.map_err(cannot)?;
        cache.keep_open_at_most(descriptors() / 4);
        self.system.env().blocking(Box::new(move || sweep(sweeper)));
        let servers = options.servers.iter().map(|s| Ports::at(*s, options.ports.location()));
        let home = CellConfig {
            name: options.cell.clone(),
            location_servers: servers.collect(),
            file_port: options.ports.file(),
            is_listed: true,
        };
        let root = VolumeName::new(ROOT_CELL).map_err(ClientError::Name)?;
        let objects = StoreReader::new(&options.stores).map_err(ClientError::Stores)?;
        Ok(VenusConfig {
            env: self.system.env(),
            rx: self.udp.rx().clone(),
            cells: [home].into_iter().chain(options.other_cells.configs(&options.cell)).collect(),
            resolver: options.other_cells.resolver(&self.system.env()),
            root: if options.other_cells.shows_all { RootKind::Cells } else { RootKind::Volume(root) },
            uuid: self.uuid,
            cache: Arc::new(cache),
            sink: Arc::new(sink),
            snapshots: options.snapshots.clone(),
            sysnames: sysnames(),
            limits: Limits {
                bypass: options.bypass.clone(),
                leases: options.lease,
                server_wait: options.server_wait,
                ..Limits::default()
            },
            security: self.security(own)?,
            data_path: options.data_path.clone(),
            objects: Some(Arc::new(objects)),
        })
    }

    fn security(&self, own: Option<Security>) -> CellResult<SecurityConfig> {
        let sessions = ProcessSessions::start().map_err(ClientError::Threads)?;
        let uid = rustix::process::getuid().as_raw();
        Ok(SecurityConfig {
            own: own.map(|security| OwnIdentity { uid, security }),
            sessions: Some(Arc::new(sessions)),
            callback_classes: callback_classes(&self.system, self.callback.keys()),
        })
    }

    /// Absolute paths of the files of the mount that are open for writing; at most 1000.
    #[must_use]
    pub fn open_for_writing(&self) -> Vec<PathBuf> {
        let (Some((venus, _)), Some(mounted)) = (&self.running, &self.mounted) else { return Vec::new() };
        let paths = venus.open_for_writing();
        paths.iter().map(|path| mounted.directory().join(OsStr::from_bytes(path))).collect()
    }

    /// Where the stop names files; nowhere for an encrypted cache.
    fn told_in(&self) -> Option<&Path> {
        (!self.is_encrypted).then_some(&*self.cache)
    }

    /// Unmounts, stores dirty data, and closes socket and cache. Files still open for writing, and data that no server took, are
    /// named in the log, and in the cache's `left-open.json` for the command that requested the stop.
    ///
    /// # Errors
    /// Data that could not be stored.
    pub fn stop(mut self) -> CellResult {
        drop(self.tokens.take());
        let mut left = LeftOpen { files: self.open_for_writing(), not_stored: Vec::new() };
        left.tell(self.told_in());
        let directory =
            self.mounted.as_ref().map(|mounted| mounted.directory().to_owned()).unwrap_or_default();
        let unmounted = self.mounted.take().map_or(Ok(true), Mounted::unmount);
        let stored = match self.running.take() {
            Some((venus, _)) => {
                let stored = self.system.block_on(venus.shut_down());
                let not_stored = not_stored::all(&venus, &directory).into_values().collect();
                left.tell_not_stored(not_stored, self.told_in());
                stored
            }
            None => Ok(()),
        };
        if !matches!(unmounted, Ok(true)) {
            tracing::warn!(
                "the mount was still in use when it was stopped: files open in it, or another mount namespace holds it"
            );
            // Where it cannot be, it ends with the process.
            self.connection.iter().for_each(Connection::abort);
        }
        self.udp.shutdown();
        stored.map_err(ClientError::NotStored)?;
        unmounted.map_err(ClientError::Unmount)?;
        Ok(())
    }
}

/// The error of a failed start of Venus, in terms of the options.
fn no_cell(options: &ClientOptions, error: VenusError) -> ClientError {
    let cell = options.cell.clone();
    if error.kind != ErrorKind::ServerUnreachable {
        return ClientError::Unreachable { cell, error };
    }
    ClientError::NoServer { cell, servers: options.servers.clone(), port: options.ports.location() }
}

/// Servers of other implementations call back without authentication; Andrew's prove that they are those this client
/// called.
fn callback_classes(system: &Arc<System>, keys: SharedKeys) -> Vec<Box<dyn ServerSecurity>> {
    let names = Arc::new(LocalNames::default());
    let rxgk = RxgkServer::new(Variant::OpenAfs, keys, names, system.env(), Level::Clear);
    vec![Box::new(NullServer), Box::new(rxgk)]
}

/// How many descriptors this process may have. Most are needed for the files that programs have open.
fn descriptors() -> usize {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX))
}

/// Removes what earlier runs left in the cache. What cannot be removed takes room, and harms nothing else.
fn sweep(sweeper: Sweeper) {
    match sweeper.sweep() {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "files that earlier runs left in the cache were removed"),
        Err(error) => tracing::warn!(%error, "files that earlier runs left in the cache cannot be removed"),
    }
}

/// The value of `@sys` on this kind of machine (docs/protocol/client.md "2. Name space: /afs").
fn sysnames() -> Vec<String> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    vec![format!("{machine}_linux26")]
}
