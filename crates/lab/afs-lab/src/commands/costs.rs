//! `andrew-lab costs`.

use super::run::Mount;
use crate::commands::bench_bulk::Stop;
use crate::commands::bench_load::{CallSecurity, Client, fid, server};
use afs_lab::bulk::Process;
use afs_lab::error::LabError;
use afs_lab::load::{Costs, LoadError};
use afs_lab::measure::warm_client;
use afs_lab::measured_costs::MeasuredCosts;
use afs_lab::runs::{Environment, load_average};
use afs_wire::ids::Fid;
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Options of `andrew-lab costs`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Makes many equal calls of each kind to a file server on this machine, and divides the processor time of its process by
their number: the calls of Tables 3 and 4, those for capabilities, reads and stores by the server's data path, and, where the
volume's bytes are on drives that clients may use, GetLayout and capabilities given again (of 1, 8, 16 and 32 files), and the calls for a
store there: GetRoom and Commit. What a server does not have is left out. Without --security the calls are anonymous: system:anyuser needs the rights rliwd in the directory, in
which files named load-N are made and removed. A first signal ends it: FILE then has what was measured before, and status 1 tells of it.

With --mount, 171 files are read there past the cache in each minute, as many as are opened in a busy client-minute of the AFS
trace, and the calls for capabilities and layouts are counted, for the replay of NASD with groups.

Example:
  andrew-lab costs --server 127.0.0.1 --directory 536870915.1.1 --server-pid 4711 --out costs.json
  andrew-lab costs --server 127.0.0.1 --directory 536870915.1.1 --server-pid 4711 --only layouts,rooms --mount ~/afs \\
      --onto costs.json --out costs.json
  scripts/lab-report andrew-lab --costs costs.json")]
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
    /// What to measure
    #[arg(
        long,
        value_name = "PART",
        value_delimiter = ',',
        default_value = "calls,capabilities,path,layouts,rooms"
    )]
    only: Vec<Part>,
    /// Directory in a mount of Andrew, in which the calls of a client that goes on using its files are counted
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// Minutes for which they are counted
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// Costs to which these are added
    #[arg(long, value_name = "FILE")]
    onto: Option<PathBuf>,
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

/// The parts of the costs.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// The calls of Tables 3 and 4
    Calls,
    /// Calls for capabilities
    Capabilities,
    /// Reads and stores by the server's data path
    Path,
    /// Calls for layouts
    Layouts,
    /// Calls for rooms at drives, and commits of what is staged there
    Rooms,
}

impl Args {
    /// Measures the costs and writes them.
    ///
    /// # Errors
    /// No key to call with; no such process; a directory in no mount; the first call that fails; a file cannot be read or
    /// written; a signal.
    pub fn run(self, json: bool) -> CommandResult {
        let onto = self.onto.as_deref().map(MeasuredCosts::read).transpose();
        let onto = onto.map_err(|error| CommandError::usage(format!("--onto: {error}")))?;
        let mount = self.mount.as_deref().map(Mount::of).transpose()?;
        // Before any thread is started.
        let stop = Stop::on_signals("files named load-N, or a directory named andrew-lab-warm-N,")?;
        let failed = |error: String| CommandError::failed(format!("costs: {error}"));
        let process = Process::new("server".into(), self.server_pid);
        let process = process.map_err(|error| CommandError::usage(format!("--server-pid: {error}")))?;
        let clock = || process.time().map_err(|error| LoadError::Clock(error.to_string()));
        let client = Client::open(self.server, &self.security)?;
        let target = client.target(self.directory);
        let (calls, in_flight, server) = (self.calls, self.in_flight, self.server);
        let measured = Costs { target: &target, server, clock: &clock, calls, in_flight, stop: stop.flag() };
        let mut costs = onto.unwrap_or_else(|| MeasuredCosts::new(String::new()));
        costs.what =
            [std::mem::take(&mut costs.what), self.what()].join("; ").trim_start_matches("; ").to_owned();
        let parts = client.system.block_on(self.measure(&measured, &mut costs));
        let mut is_whole = parts.map_err(|error| failed(format!("{}: {error}", self.server)))?;
        if let Some(mount) = mount.as_ref().filter(|_| is_whole) {
            match warm_client(&mount.mounted(None), self.minutes, stop.flag()) {
                Err(LabError::Stopped) => is_whole = false,
                counted => costs.warm_client = Some(counted.map_err(|error| failed(error.to_string()))?),
            }
        }
        if !is_whole {
            costs.what.push_str("; interrupted");
        }
        let text = serde_json::to_string_pretty(&costs).map_err(|error| failed(error.to_string()))?;
        let shown = self.out.display().to_string();
        std::fs::write(&self.out, text).map_err(|error| failed(format!("cannot write {shown}: {error}")))?;
        output::show(json, &Written { out: shown, costs });
        is_whole.then_some(()).ok_or_else(|| failed("interrupted".to_owned()))
    }

    /// Whether all was measured: a signal ends it between two calls.
    async fn measure(&self, costs: &Costs<'_>, all: &mut MeasuredCosts) -> Result<bool, LoadError> {
        for part in &self.only {
            let measured = match part {
                Part::Calls => costs.add_calls(all).await,
                Part::Capabilities => costs.add_capabilities(all).await,
                Part::Path => costs.add_path(all).await,
                Part::Layouts => costs.add_layouts(all).await,
                Part::Rooms => costs.add_rooms(all).await,
            };
            match measured {
                Err(LoadError::Stopped) => return costs.remove_left().await.map(|()| false),
                measured => measured?,
            }
        }
        Ok(true)
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
        if let Some(warm) = &self.costs.warm_client {
            writeln!(f, "a client that opens {} files a minute makes in it:", warm.opens_per_minute)?;
            for (call, count) in &warm.calls_per_minute {
                writeln!(f, "{call:<22} {count:.2} calls")?;
            }
        }
        writeln!(f, "the costs are in {}", self.out)
    }
}
