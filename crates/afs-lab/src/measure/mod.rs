//! Experiments that are measured: the Andrew benchmark, open-read-close of small files, fetches of large ones; on a local
//! disk, in a mount of Andrew and in one of NFS, as far as there are.

mod benchmark;
mod fetches;
mod latency;
mod program;
mod served;
mod tcp_probe;

pub use benchmark::{
    Benchmarked, Side, calls, compared, demands, nfs_demands, packets, phases, revised, server_work, side,
};
pub use fetches::{Fetches, bypassed, combined, fetches, hundred, throughput};
pub use latency::{Latencies, latency};
pub(crate) use program::{FILES, MODULES};
pub use served::Served;
pub use tcp_probe::TcpProbe;

use crate::andrew::Probe;
use crate::bulk::Place;

/// A directory in a mount of Andrew, or of NFS.
pub struct Mounted<'a> {
    /// The directory, with its caches and processes.
    pub place: &'a Place,
    /// Counters of the client and the server.
    pub probe: Option<&'a dyn Probe>,
}
