//! Experiments that are measured: the Andrew benchmark, open-read-close of small files, fetches of large ones; on a local
//! disk, in a mount of Andrew and in those of other file systems, as far as there are.

mod benchmark;
mod fetches;
mod latency;
mod net_probe;
mod program;
mod served;
mod warm_client;

pub use benchmark::{
    Benchmarked, Side, calls, compared, demands, other_demands, packets, phases, revised, server_work, side,
};
pub use fetches::{Fetches, bypassed, combined, fetches, hundred, throughput};
pub use latency::{Latencies, latency};
pub use net_probe::NetProbe;
pub(crate) use program::{FILES, MODULES, Program};
pub use served::Served;
pub use warm_client::warm_client;

use crate::andrew::Probe;
use crate::bulk::Place;

/// A directory in a mount of Andrew, or of another file system.
pub struct Mounted<'a> {
    /// The directory, with its caches and processes.
    pub place: &'a Place,
    /// Counters of the client and the server.
    pub probe: Option<&'a dyn Probe>,
}

/// Another file system to compare with.
pub struct OtherMount<'a> {
    /// Its name in the columns: `nfs` stands beside the paper's NFS.
    pub name: &'a str,
    /// A directory in it.
    pub mounted: Mounted<'a>,
}
