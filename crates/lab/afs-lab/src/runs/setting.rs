//! What a run has at its disposal.

use super::environment::Environment;
use crate::measure::{Mounted, OtherMount};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Directories, data and switches of a run.
pub struct Setting<'a> {
    /// Machine and programs.
    pub environment: Environment,
    /// Few and short repetitions.
    pub quick: bool,
    /// The present time in RFC 3339.
    pub date: &'a dyn Fn() -> String,
    /// Ends the run when it is true.
    pub stop: &'a AtomicBool,
    /// A directory on a local disk; what is written there is removed.
    pub local: &'a Path,
    /// A directory in a mount of Andrew, likewise.
    pub mount: Option<Mounted<'a>>,
    /// The program, for what starts servers or a peer.
    pub program: Option<&'a Path>,
    /// A peer on another machine, for streams by the layers of the network (`andrew-lab peer`); without one they are of this machine.
    pub peer: Option<SocketAddr>,
    /// Whether the servers run on another machine than this one, or outside of it where it is emulated.
    pub servers_are_apart: bool,
    /// Other file systems to compare with, likewise.
    pub others: Vec<OtherMount<'a>>,
}
