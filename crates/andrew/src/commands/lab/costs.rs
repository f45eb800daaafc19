//! `andrew lab costs`.

use crate::commands::bench_load::{CallSecurity, Client, fid, server};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_lab::bulk::Process;
use afs_lab::load::{Costs, LoadError};
use afs_lab::replay::MeasuredCosts;
use afs_lab::runs::{Environment, load_average};
use afs_wire::ids::Fid;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `andrew lab costs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Makes many equal calls of each kind to a file server on this machine, and divides the processor time of its process by
their number. Without --security the calls are anonymous: system:anyuser needs the rights rliwd in the directory, in
which files named load-N are made and removed.

Example:
  andrew lab costs --server 127.0.0.1 --directory 536870915.1.1 --server-pid 4711 --out costs.json
  andrew lab run gibson97 --costs costs.json")]
pub struct Args {
    /// File server, with its port if that is not 7000
    #[arg(long, value_name = "IP[:PORT]", value_parser = server)]
    server: SocketAddr,
    /// Directory to work in, as `andrew fs getfid` shows it
    #[arg(long, value_name = "VOLUME.VNODE.UNIQUIFIER", value_parser = fid)]
    directory: Fid,
    /// Process id of the server
    #[arg(long, value_name = "PID")]
    server_pid: u32,
    /// Calls of each kind, at least 64; fewer of large files
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(64..=60_000))]
    calls: u32,
    /// Calls in progress at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
    /// File for the costs, which is replaced
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    security: CallSecurity,
}

impl Args {
    /// Measures the costs and writes them.
    ///
    /// # Errors
    /// No key to call with; no such process; the first call that fails; the file cannot be written.
    pub fn run(self, json: bool) -> CommandResult {
        let failed = |error: String| CommandError::failed(format!("lab: costs: {error}"));
        let process = Process::new("server".into(), self.server_pid);
        let process = process.map_err(|error| CommandError::usage(format!("lab: --server-pid: {error}")))?;
        let clock = || process.time().map_err(|error| LoadError::Clock(error.to_string()));
        let client = Client::open(self.server, &self.security)?;
        let target = client.target(self.directory);
        let measured = Costs { target: &target, clock: &clock, calls: self.calls, in_flight: self.in_flight };
        let costs = client.system.block_on(measured.measure(self.what()));
        let costs = costs.map_err(|error| failed(format!("{}: {error}", self.server)))?;
        let text = serde_json::to_string_pretty(&costs).map_err(|error| failed(error.to_string()))?;
        let shown = self.out.display().to_string();
        std::fs::write(&self.out, text).map_err(|error| failed(format!("cannot write {shown}: {error}")))?;
        output::show(json, &Written { out: shown, costs });
        Ok(())
    }

    /// What is measured, for those who use it.
    fn what(&self) -> String {
        let Environment { version, processor, cores, .. } = Environment::of(env!("CARGO_PKG_VERSION"));
        let Self { server, in_flight, calls, .. } = self;
        let load = load_average().map_or_else(String::new, |load| format!(", load average before it {load}"));
        format!(
            "calls to {server} on {cores} processors {processor}, {in_flight} at a time, up to {calls} of each kind, by \
             andrew {version}{load}"
        )
    }
}

#[derive(Serialize)]
struct Written {
    out: String,
    #[serde(flatten)]
    costs: MeasuredCosts,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (call, points) in self.costs.calls() {
            write!(f, "{call:<22}")?;
            for (bytes, microseconds) in points {
                write!(f, " {microseconds:.1}")?;
                if points.len() > 1 {
                    write!(f, " ({bytes})")?;
                }
            }
            writeln!(f, " us")?;
        }
        writeln!(f, "the costs are in {}", self.out)
    }
}
