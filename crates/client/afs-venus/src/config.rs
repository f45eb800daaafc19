//! Configuration of Venus.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvRef, Rx, Security};
use afs_wire::ids::{CellName, Uuid, VolumeName};

use crate::api::SessionLookup;
use crate::cache::CacheStore;
use crate::objects::ObjectReader;
use crate::resolver::CellResolver;
use crate::sink::InvalidationSink;

/// Configuration of Venus, and the parts of the environment that it uses.
pub struct VenusConfig {
    /// Time, tasks, randomness.
    pub env: EnvRef,
    /// Endpoint for calls to servers and for their callbacks. Must not have a service of number 1.
    pub rx: Rx,
    /// Known cells; the first is the home cell. Not empty; at most 1024, further ones are left out.
    pub cells: Vec<CellConfig>,
    /// Finds other cells, as DNS does. `None`: there are no others.
    pub resolver: Option<Arc<dyn CellResolver>>,
    /// What the root of the mount is.
    pub root: RootKind,
    /// Permanent name of this client: one per cache manager, kept over restarts with the cache, never copied to another
    /// machine (docs/protocol/callback.md "6. What clients implement").
    pub uuid: Uuid,
    /// Store of cached data.
    pub cache: Arc<dyn CacheStore>,
    /// Receives invalidations.
    pub sink: Arc<dyn InvalidationSink>,
    /// Name under which the root of every volume contains the directory of the volume's snapshots: found by look-up,
    /// not listed. A real entry of that name hides it. `None`: no such directory.
    pub snapshots: Option<String>,
    /// Values for a path component that is or ends in `@sys`; the first that exists is used. At most 32.
    pub sysnames: Vec<String>,
    /// Limits and times.
    pub limits: Limits,
    /// Security of calls and callbacks.
    pub security: SecurityConfig,
    /// Use of the data path.
    pub data_path: DataPathConfig,
    /// Reads what file servers have in object stores there. `None`: it is read at the file servers.
    pub objects: Option<Arc<dyn ObjectReader>>,
}

/// Use of the data path: bytes of files over a byte stream, from servers that have one (`docs/protocol/data-path.md`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPathConfig {
    /// Whether it is used at all. Default: yes.
    pub enabled: bool,
    /// Whether files are read also at the drives that their file server names, past the file server. Default: yes.
    pub drives: bool,
    /// Smaller fetches and stores are made by calls. Default: 64 KiB, or what the server says if that is more. Below it a
    /// fetch takes one round trip either way, and a call renews the promise as well.
    pub minimum_size: Option<u64>,
    /// Where the drive of a file server is reached, by the server's address, and another drive, by its own. Default: where the
    /// server says.
    pub addresses: BTreeMap<IpAddr, SocketAddr>,
    /// Whether a drive that permits it is used without TLS: for trusted networks, since anybody on the way can then read and
    /// change the bytes. Default: no.
    pub allow_clear: bool,
}

impl Default for DataPathConfig {
    fn default() -> Self {
        DataPathConfig {
            enabled: true,
            drives: true,
            minimum_size: None,
            addresses: BTreeMap::new(),
            allow_clear: false,
        }
    }
}

/// Security of calls and callbacks. By default calls are anonymous and any callback is accepted: sufficient for a mount
/// without tokens.
#[derive(Default)]
pub struct SecurityConfig {
    /// Identity of one user of this machine without a token, also used by Venus itself.
    pub own: Option<OwnIdentity>,
    /// Finds sessions of processes; `None`: there are no sessions.
    pub sessions: Option<Arc<dyn SessionLookup>>,
    /// Security classes of the callback service; empty: without security. Servers that were offered no class can call
    /// only if one of class null is among them.
    pub callback_classes: Vec<Box<dyn afs_rpc::ServerSecurity>>,
}

/// Identity of one user of this machine without a token.
#[derive(Clone, Debug)]
pub struct OwnIdentity {
    /// The user.
    pub uid: u32,
    /// Security of the user's connections to servers of the first cell.
    pub security: Security,
}

/// A cell.
#[derive(Clone, Debug)]
pub struct CellConfig {
    /// Its name.
    pub name: CellName,
    /// Addresses of its location servers, at least one; tried in random order.
    pub location_servers: Vec<SocketAddr>,
    /// Port of its file servers, which the location database does not record. 7000 by convention.
    pub file_port: u16,
    /// Whether the directory of all cells lists it before it was entered. Programs that list a directory look at all that it lists, and
    /// wait for the servers of each such cell.
    pub is_listed: bool,
}

/// What the root of the mount is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RootKind {
    /// The root of a volume of the home cell, such as `root.cell` for `andrew up`. A read-only replica is preferred if
    /// there is one.
    Volume(VolumeName),
    /// A synthetic directory with a mount point for every cell: `NAME` for `root.cell`, `.NAME` for its read-write
    /// volume (docs/protocol/client.md "2. Name space: /afs"). Cells that are known are found in it; it lists those that
    /// [`CellConfig::is_listed`] says and those that were entered.
    Cells,
}

/// Limits and times, all with defaults.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Objects in the status cache. Default 100 000, about 500 bytes each; at least 100.
    pub statuses_max: usize,
    /// Bytes of directory contents kept in memory. Default 64 MiB.
    pub directory_bytes_max: u64,
    /// Chunk size: a larger file is fetched in chunks of this many bytes, a smaller one as a whole at open. Default 1
    /// MiB; a power of two, 4 KiB to 16 MiB.
    pub chunk_bytes: u64,
    /// Chunks fetched ahead of a sequential reader. Default 8.
    pub read_ahead_chunks: u32,
    /// Calls at a time by which they are fetched for one reader, the one that the reader waits for included. Default 3: an OpenAFS
    /// server serves all of its clients with nine threads unless it is told otherwise (docs/protocol/fileserver.md, T25), and an Rx
    /// connection has four channels, of which one is left for small calls. The data path has no such bound.
    pub calls_per_reader: u32,
    /// The same where the server is so far that a call of 32 packets in each round trip, as many as an OpenAFS server sends, carries less
    /// than its share of 100 Mbit/s: as many calls as that takes by the measured round trip, from `calls_per_reader` up to 10 ms to this
    /// number beyond 18 ms. Default 6: a third of the threads are left for others.
    pub calls_per_far_reader: u32,
    /// Largest file that is stored as a whole after passthrough writes, of which the changed ranges are unknown. Larger
    /// files are opened for writing without passthrough. Default 1 MiB.
    pub passthrough_rewrite_bytes_max: u64,
    /// Dead time: a server that is silent for this long is unreachable. Default 12 s.
    pub server_dead: Duration,
    /// Longest time that an operation waits for busy volumes and unreachable servers, unless it waits for ever for
    /// those. Default 60 s.
    pub operation_max: Duration,
    /// Longest time that programs wait for an unreachable file server or location server, from the beginning of the first call
    /// to which it did not reply: an ordinary restart is not an error. Afterwards calls to it fail at once until it
    /// replies to a probe. Default 15 s; zero: errors at once; [`Limits::FOR_EVER`]: they wait until it replies or they are killed, and
    /// for busy volumes too. Of a server that has never replied to this client nobody waits for more than one call.
    pub server_wait: Duration,
    /// First pause before a busy volume is called again; each further one is twice as long. Default 100 ms.
    pub busy_pause: Duration,
    /// Longest such pause. Default 1 s.
    pub busy_pause_max: Duration,
    /// Longest time to wait for a volume whose servers report it as off line or unknown although the location service
    /// lists it. Default 15 s; at most `operation_max`.
    pub offline_max: Duration,
    /// Time without a reply after which a server that has alternatives is probed; eight round trips if that is longer,
    /// at most 2 s. If it does not reply to the probe, the next server is called. Default 250 ms.
    pub hedge_after: Duration,
    /// Longest time that a list of a volume's snapshots is reused. Default 1 s.
    pub snapshots_max_age: Duration,
    /// Time limit of that probe; sixteen round trips if that is longer, at most 4 s. Also the time limit of one
    /// location server that has alternatives. Default 1 s.
    pub hedge_probe_timeout: Duration,
    /// Longest pause between probes of an unreachable server: the first is a quarter of a second, each further one
    /// twice as long. A probe without a reply is joined by another one at the same interval. Default 1 s.
    pub probe_down: Duration,
    /// Interval of probes of a reachable but idle server: a restarted server has lost its promises and can report that
    /// only when it is called. Default 60 s.
    pub probe_up: Duration,
    /// Promises are dropped this long before they end at the server. Default 20 s.
    pub promise_margin: Duration,
    /// Longest time that locations of volumes are reused. Default 2 h.
    pub location_max_age: Duration,
    /// Longest time that the volume of a name is reused which no server has recalled: so long a mount point may lead to a volume
    /// that has another name by now. Default 10 min.
    pub name_max_age: Duration,
    /// Longest time that the reply to a callback waits for the kernel to invalidate. Default 500 ms; a server waits 4
    /// s.
    pub settle_max: Duration,
    /// Interval of maintenance (expiry, promises given back, failed stores, locks). Default 15 s.
    pub maintenance: Duration,
    /// Longest time that rights of a user with a token are relied on after a server reported them that does not promise
    /// them: so long may a user who has left a group still use its rights. Default 1 s.
    pub rights_max_age: Duration,
    /// How often a store that failed because a server was unreachable or full is retried. Default 120.
    pub store_retries: u32,
    /// Files that bypass the disk cache.
    pub bypass: BypassLimits,
    /// Whether leases of directories are taken, under which changes of names and small files are sent up to a second after they were made
    /// (`docs/semantics.md` "Mounts with leases"). Default: no.
    pub leases: bool,
}

/// Which files bypass the disk cache without a request or a name that says so, and the memory for their bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BypassLimits {
    /// Files of at least this many bytes bypass the cache. Default: none.
    pub length_min: Option<u64>,
    /// A reader that reads a file from one end to the other bypasses the cache if the file is longer than this share of
    /// the cache, in percent. `None`, the default: never. The mounts of `andrew` say 25.
    pub stream_percent: Option<u8>,
    /// Bytes in memory for one open file: what it reads, and what is fetched ahead. Default 8 MiB; at least 32 KiB.
    pub window_bytes: u64,
    /// Bytes in memory for all open files together. Default 64 MiB; at least `window_bytes`.
    pub bytes_max: u64,
}

impl Default for BypassLimits {
    fn default() -> Self {
        BypassLimits { length_min: None, stream_percent: None, window_bytes: 8 << 20, bytes_max: 64 << 20 }
    }
}

impl Limits {
    /// [`Limits::server_wait`] of programs that wait for a server as long as it takes.
    pub const FOR_EVER: Duration = Duration::MAX;

    /// Whether programs wait for servers as long as it takes.
    pub(crate) fn waits_for_ever(&self) -> bool {
        self.server_wait == Self::FOR_EVER
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            statuses_max: 100_000,
            directory_bytes_max: 64 << 20,
            chunk_bytes: 1 << 20,
            read_ahead_chunks: 8,
            calls_per_reader: 3,
            calls_per_far_reader: 6,
            passthrough_rewrite_bytes_max: 1 << 20,
            server_dead: Duration::from_secs(12),
            operation_max: Duration::from_secs(60),
            server_wait: Duration::from_secs(15),
            busy_pause: Duration::from_millis(100),
            busy_pause_max: Duration::from_secs(1),
            offline_max: Duration::from_secs(15),
            hedge_after: Duration::from_millis(250),
            hedge_probe_timeout: Duration::from_secs(1),
            snapshots_max_age: Duration::from_secs(1),
            probe_down: Duration::from_secs(1),
            probe_up: Duration::from_secs(60),
            promise_margin: Duration::from_secs(20),
            location_max_age: Duration::from_secs(7200),
            name_max_age: Duration::from_secs(600),
            settle_max: Duration::from_millis(500),
            maintenance: Duration::from_secs(15),
            rights_max_age: Duration::from_secs(1),
            store_retries: 120,
            bypass: BypassLimits::default(),
            leases: false,
        }
    }
}
