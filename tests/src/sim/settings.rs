//! Settings of a simulated cell: security of its users, and bounds of its server.

use std::path::PathBuf;
use std::time::Duration;

use afs_datapath::session::DriveLimits;
use afs_rpc::{Level, Limits};
use afs_server::FileServerLimits;
use afs_venus::DataPathConfig;
use afs_wire::ids::Rights;

/// Settings fixed before a cell starts.
#[derive(Clone)]
pub struct CellSettings {
    /// Cache of the server's indexes, in bytes. Default 1 MiB.
    pub index_cache: usize,
    /// Security levels of the users, in turn; `None`: unauthenticated.
    pub proofs: Vec<Option<Level>>,
    /// Rights of `system:anyuser` in the volume. Authenticated users have all rights.
    pub anyuser: Rights,
    /// Configuration of Rx at the server.
    pub rx: afs_rx::Config,
    /// Bounds of the calls that the server serves and queues.
    pub calls: Limits,
    /// Bounds of the file service.
    pub files: FileServerLimits,
    /// Size of each client's cache, in bytes. Default 16 MiB.
    pub cache: u64,
    /// Bounds of the clients.
    pub venus: afs_venus::Limits,
    /// Clients that take no leases, if the others do. Default: none.
    pub without_leases: Vec<usize>,
    /// Folder in which each client has a cache on disk. Default: none, caches are in memory.
    pub disk_caches: Option<PathBuf>,
    /// Whether bytes of files travel by the data path. Default: no.
    pub data_path: bool,
}

impl Default for CellSettings {
    /// A cell without security in which all users have all rights.
    fn default() -> Self {
        // On a lossy network a server must not declare a client unreachable, which then could read old data.
        let mut files = FileServerLimits::default();
        files.timeouts.break_reply = Duration::from_secs(30);
        Self {
            index_cache: 1 << 20,
            proofs: vec![None],
            anyuser: Rights::ALL,
            rx: afs_rx::Config::default(),
            calls: Limits::default(),
            files,
            cache: 16 << 20,
            venus: afs_venus::Limits::default(),
            without_leases: Vec::new(),
            disk_caches: None,
            data_path: false,
        }
    }
}

impl CellSettings {
    /// A cell with authenticated users. Anonymous users see its names, and its files unless `secret`.
    ///
    /// The bounds of the server are about a hundredth of the defaults, in similar proportions, so that an adversary
    /// with a hundred packets a second reaches them within a run.
    #[must_use]
    pub fn guarded(proofs: Vec<Option<Level>>, secret: bool) -> Self {
        let mut rx = afs_rx::Config::default();
        rx.incoming_calls_max = 512;
        rx.server_connections_max = 600;
        rx.idle_peers_max = 256;
        rx.receive_buffer_total = 16 << 20;
        let calls = Limits {
            calls: 128,
            calls_per_host: 16,
            waiting: 128,
            waiting_per_host: 32,
            ..Limits::default()
        };
        let drive = DriveLimits {
            connections: 64,
            connections_per_address: 16,
            requests: 64,
            requests_per_address: 16,
            ..DriveLimits::default()
        };
        let files = FileServerLimits { hosts: 1024, promises: 2048, drive, ..FileServerLimits::default() };
        let anyuser = if secret { Rights::LOOKUP } else { Rights(Rights::LOOKUP.0 | Rights::READ.0) };
        Self { proofs, anyuser, rx, calls, files, ..Self::default() }
    }

    /// Whether the client with that number takes leases.
    #[must_use]
    pub fn takes_leases(&self, number: usize) -> bool {
        self.venus.leases && !self.without_leases.contains(&number)
    }

    /// How clients use the data path: for most contents of files, which are smaller than those for which it is meant.
    pub(super) fn data_path_of_clients(&self) -> DataPathConfig {
        DataPathConfig {
            enabled: self.data_path,
            minimum_size: Some(256),
            allow_clear: true,
            ..DataPathConfig::default()
        }
    }
}
