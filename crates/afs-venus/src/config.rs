//! What Venus is told at its start.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvRef, Rx, Security};
use afs_wire::ids::{CellName, Uuid, VolumeName};

use crate::api::SessionLookup;
use crate::cache::CacheStore;
use crate::sink::InvalidationSink;

/// Everything Venus stands on.
pub struct VenusConfig {
    /// Time, tasks, randomness.
    pub env: EnvRef,
    /// The endpoint for our calls, and the one servers call back on. Its services must be free of number 1.
    pub rx: Rx,
    /// The cells we know; the first is the home cell. Not empty.
    pub cells: Vec<CellConfig>,
    /// What the root of the mount shows.
    pub root: RootKind,
    /// Who we are to the servers: one per cache manager, kept over restarts with the cache, never copied to
    /// another machine (docs/protocol/callback.md "6. What clients implement").
    pub uuid: Uuid,
    /// Where data is kept.
    pub cache: Arc<dyn CacheStore>,
    /// Who is told what has become stale.
    pub sink: Arc<dyn InvalidationSink>,
    /// The name under which the root of every volume shows the volume's snapshots: found when it is asked for, not listed.
    /// A real entry of that name hides it. `None`: they are not shown.
    pub snapshots: Option<String>,
    /// Values for a path component that is or ends in `@sys`, first existing wins. At most 32 are used.
    pub sysnames: Vec<String>,
    /// Bounds and times.
    pub limits: Limits,
    /// Who we are to the servers, and how they prove who they are to us.
    pub security: SecurityConfig,
}

/// Who we are to the servers, and how they prove who they are to us. By default nobody in particular, who believes any
/// callback: what a mount without tokens needs.
#[derive(Default)]
pub struct SecurityConfig {
    /// Who one user of this machine is while he has no token, and what Venus itself calls as.
    pub own: Option<OwnIdentity>,
    /// How sessions are found; without it there are none.
    pub sessions: Option<Arc<dyn SessionLookup>>,
    /// The classes under which the callback service is offered to servers; empty is without security. To be seen by
    /// servers that were offered none, it must hold one of class null.
    pub callback_classes: Vec<Box<dyn afs_rpc::ServerSecurity>>,
}

/// Who one user of this machine is without a token.
#[derive(Clone, Debug)]
pub struct OwnIdentity {
    /// The user.
    pub uid: u32,
    /// What his connections to the servers of the first cell are made with.
    pub security: Security,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct CellConfig {
    /// Its name.
    pub name: CellName,
    /// Its location servers, at least one; tried in a random order.
    pub location_servers: Vec<SocketAddr>,
    /// The port of its file servers: the location database holds addresses without ports. 7000 by convention.
    pub file_port: u16,
}

/// What the root of the mount shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RootKind {
    /// The root of a volume of the home cell. `root.cell` is what `andrew up` mounts. A read-only copy is preferred
    /// where there is one.
    Volume(VolumeName),
    /// A synthetic directory with a mount point for every cell: `NAME` for `root.cell`, `.NAME` for its
    /// read-write volume (docs/protocol/client.md "2. Name space: /afs").
    Cells,
}

/// Bounds and times. All have sensible defaults.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Objects whose status is kept. Default 100 000, about 500 bytes each; at least 100.
    pub statuses_max: usize,
    /// Bytes of directories kept in memory. Default 64 MiB.
    pub directory_bytes_max: u64,
    /// Bytes fetched at a time from a file larger than this; smaller files are fetched whole when they are opened.
    /// Default 1 MiB; a power of two, 4 KiB to 16 MiB.
    pub chunk_bytes: u64,
    /// Chunks fetched ahead of a sequential reader. Default 8.
    pub read_ahead_chunks: u32,
    /// Largest file stored whole when the kernel wrote to it directly, so that we do not know which bytes changed.
    /// Larger ones are opened for writing without passthrough. Default 1 MiB.
    pub passthrough_rewrite_bytes_max: u64,
    /// A server that says nothing for this long is away. Default 12 s.
    pub server_dead: Duration,
    /// No operation waits longer than this for busy volumes and servers that are away. Default 60 s.
    pub operation_max: Duration,
    /// How long programs wait for a server that does not answer any more, counted from the call that found it out: an ordinary
    /// restart is no error. Afterwards calls to it fail at once until it answers a probe. Default 45 s; no longer than
    /// `operation_max`; zero for errors at once.
    pub unreachable_wait_max: Duration,
    /// First pause before a busy volume is asked again; each further one is twice as long. Default 100 ms.
    pub busy_pause: Duration,
    /// Longest such pause. Default 1 s.
    pub busy_pause_max: Duration,
    /// How long a volume is waited for which its servers call off line or unknown, though it should be there. Default
    /// 15 s; no longer than `operation_max`.
    pub offline_max: Duration,
    /// How long a server of several that have the same may leave a call unanswered before it is asked for a sign of life;
    /// eight round trips if that is longer, at most 2 s. If it gives none, the next server is called. Default 250 ms.
    pub hedge_after: Duration,
    /// A list of a volume's snapshots is asked for again after this. Default 1 s.
    pub snapshots_max_age: Duration,
    /// How long that sign of life may take; sixteen round trips if that is longer, at most 4 s. The same goes for an answer
    /// of one location server of several. Default 1 s.
    pub hedge_probe_timeout: Duration,
    /// Longest pause before a server that is away is probed again: the first is half a second, each further one twice as
    /// long. Default 5 s.
    pub probe_down: Duration,
    /// A server that answers is probed this often when we have nothing else to say to it: a server that was restarted has
    /// forgotten its promises, and can say so only when it is spoken to. Default 60 s.
    pub probe_up: Duration,
    /// Promises are dropped this long before the server forgets them. Default 20 s.
    pub promise_margin: Duration,
    /// Locations of volumes are asked for again after this. Default 2 h.
    pub location_max_age: Duration,
    /// How long the answer to a callback waits for the kernel to forget. Default 500 ms; a server waits 4 s.
    pub settle_max: Duration,
    /// Maintenance (expiry, returned promises, failed stores, locks) runs this often. Default 15 s.
    pub maintenance: Duration,
    /// Rights of somebody who has a token count for this long after a server told them: so long may somebody who has
    /// left a group go on. Default 1 s.
    pub rights_max_age: Duration,
    /// How often a store that failed for want of a server or of space is tried again by itself. Default 120.
    pub store_retries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            statuses_max: 100_000,
            directory_bytes_max: 64 << 20,
            chunk_bytes: 1 << 20,
            read_ahead_chunks: 8,
            passthrough_rewrite_bytes_max: 1 << 20,
            server_dead: Duration::from_secs(12),
            operation_max: Duration::from_secs(60),
            unreachable_wait_max: Duration::from_secs(45),
            busy_pause: Duration::from_millis(100),
            busy_pause_max: Duration::from_secs(1),
            offline_max: Duration::from_secs(15),
            hedge_after: Duration::from_millis(250),
            hedge_probe_timeout: Duration::from_secs(1),
            snapshots_max_age: Duration::from_secs(1),
            probe_down: Duration::from_secs(5),
            probe_up: Duration::from_secs(60),
            promise_margin: Duration::from_secs(20),
            location_max_age: Duration::from_secs(7200),
            settle_max: Duration::from_millis(500),
            maintenance: Duration::from_secs(15),
            rights_max_age: Duration::from_secs(1),
            store_retries: 120,
        }
    }
}
