//! How a simulated cell is set up: who its users are, and the bounds of its server.

use std::time::Duration;

use afs_rpc::{Level, Limits};
use afs_server::FileServerLimits;
use afs_wire::ids::Rights;

/// What is fixed before a cell begins.
#[derive(Clone)]
pub struct CellSettings {
    /// Bytes of the server's indexes that are kept in memory. Default 1 MiB.
    pub index_cache: usize,
    /// How the users prove who they are, in turn; `None` is not at all.
    pub proofs: Vec<Option<Level>>,
    /// What everybody may do in the volume. Users who prove who they are may do everything.
    pub anyuser: Rights,
    /// Rx at the server.
    pub rx: afs_rx::Config,
    /// Calls that the server serves and has waiting.
    pub calls: Limits,
    /// Bounds of the file service.
    pub files: FileServerLimits,
    /// Bytes of each client's cache. Default 16 MiB.
    pub cache: u64,
    /// Bounds of the clients.
    pub venus: afs_venus::Limits,
}

impl Default for CellSettings {
    /// A cell without security in which everybody may do everything.
    fn default() -> Self {
        // A network that loses datagrams must not make the server think a client away: it would let others read old data.
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
        }
    }
}

impl CellSettings {
    /// A cell whose users prove who they are. Strangers see its names; they see no file if `secret`.
    ///
    /// The bounds of the server are a hundredth of the defaults or so, in about the same proportions, so that an adversary
    /// of a hundred packets a second reaches them within a run.
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
        let files = FileServerLimits { hosts: 1024, promises: 2048, ..FileServerLimits::default() };
        let anyuser = if secret { Rights::LOOKUP } else { Rights(Rights::LOOKUP.0 | Rights::READ.0) };
        Self { proofs, anyuser, rx, calls, files, ..Self::default() }
    }
}
