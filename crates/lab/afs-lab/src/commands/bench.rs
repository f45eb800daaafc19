//! `andrew-lab bench`: benchmarks, and their reports.

use crate::commands::progress::bar;
use crate::commands::{bench_bulk, bench_load};
use afs_cell::control::{ControlClient, Statistics};
use afs_cell::mounts;
use afs_cell::state::StateDir;
use afs_cell::tokens::properties;
use afs_lab::andrew::{
    Benchmark, Counters, LOADS_MAX, LoadReport, MakeCommand, Phase, Probe, Progress, RUNS_MAX, Report,
    SourceTree,
};
use afs_lab::{LabError, Spread};
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use andrew::running_cells;
use clap::Subcommand;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `andrew-lab bench`.
#[derive(clap::Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the five-phase Andrew benchmark
    Andrew(AndrewArgs),
    /// Measure stores and fetches of large files
    Bulk(bench_bulk::Args),
    /// Measure calls to a file server: statuses, durable creations, one large file
    Load(bench_load::Args),
}

/// Options of `andrew-lab bench andrew`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The benchmark is that of Howard et al. 1988: MakeDir, Copy, ScanDir, ReadAll, Make, on a copy of a
source tree. Times of phases are the mean over the copies of a load; the total runs from the first
copy's start to the last one's end. If the directory is a mount of Andrew, the calls of the last
run are shown too, and if the cell runs on this machine, packets and processor time of its
process. With --against the runs alternate between the two directories, and the medians are
compared.

Examples:
  andrew-lab bench andrew --src ~/src/lua --dir ~/afs --runs 5
  andrew-lab bench andrew --src ~/src/lua --dir ~/afs --against /tmp
  andrew-lab bench andrew --src ~/src/lua --dir /tmp --loads 1,2,4 --make 'make -s -j2 all'")]
pub struct AndrewArgs {
    /// Source tree to copy and build
    #[arg(long, value_name = "DIR")]
    src: PathBuf,
    /// Directory to run in; the files written there are removed afterwards
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Directory to compare with: runs alternate between the two
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Numbers of simultaneous copies, one measurement for each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(LOADS_MAX)))]
    loads: Vec<u32>,
    /// Repetitions of each load
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    runs: u32,
    /// Command for the Make phase [default: make, or cc and ar if the tree has no Makefile]
    #[arg(long, value_name = "COMMAND")]
    make: Option<String>,
    /// Wait so long in the place of compiling, and write as much: many clients fit on one machine then
    #[arg(long, value_name = "SECONDS", conflicts_with = "make", value_parser = clap::value_parser!(u64).range(0..=3600))]
    think: Option<u64>,
    /// State directory of the cell, for the server's processor time
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl Args {
    /// Runs the selected benchmark.
    ///
    /// # Errors
    /// Invalid options, status 2; a failure while it runs, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Andrew(args) => args.run(json),
            Command::Bulk(args) => args.run(json),
            Command::Load(args) => args.run(json),
        }
    }
}

impl AndrewArgs {
    fn run(self, json: bool) -> CommandResult {
        let targets = [Some(&self.dir), self.against.as_ref()].into_iter().flatten();
        let targets: Vec<Target> =
            targets.map(|dir| Target::of(dir, self.state.as_deref())).collect::<CommandResult<_>>()?;
        let source = SourceTree::list(&self.src).map_err(bad_source)?;
        let bar = bar("{msg:<28} {wide_bar} {percent:>3}% {elapsed}");
        let mut reports: Vec<Option<Report>> = targets.iter().map(|_| None).collect();
        // Alternating, so that other load on the machine affects all directories alike.
        for run in 0..self.runs {
            for (target, report) in targets.iter().zip(&mut reports) {
                let told = |progress: Progress| tell(&bar, run, progress);
                let benchmark = self.benchmark(&source, target, &told);
                bar.set_length(benchmark.steps() * u64::from(self.runs) * targets.len() as u64);
                let more = benchmark.run().map_err(CommandError::failed)?;
                match report {
                    Some(report) => report.add(more),
                    None => *report = Some(more),
                }
            }
        }
        bar.finish_and_clear();
        let mut reports = reports.into_iter().flatten();
        if let Some(report) = reports.next() {
            output::show(json, &BenchReport { report, against: reports.next() });
        }
        Ok(())
    }

    /// How a copy is compiled.
    fn make(&self, source: &SourceTree) -> MakeCommand {
        match (&self.make, self.think) {
            (Some(line), _) => MakeCommand::Shell(line.clone()),
            (None, Some(seconds)) => MakeCommand::think(source, Duration::from_secs(seconds)),
            (None, None) => MakeCommand::for_tree(source),
        }
    }

    /// One run on one directory.
    fn benchmark<'a>(
        &self,
        source: &'a SourceTree,
        target: &'a Target,
        progress: &'a (dyn Fn(Progress) + Sync),
    ) -> Benchmark<'a> {
        Benchmark {
            source,
            target: target.directory.clone(),
            loads: self.loads.clone(),
            runs: 1,
            make: self.make(source),
            probe: target.probe.as_ref().map(|p| p as &dyn Probe),
            progress,
        }
    }
}

/// A directory to run in, and the mount that it belongs to.
struct Target {
    directory: PathBuf,
    probe: Option<MountProbe>,
}

impl Target {
    fn of(directory: &Path, state: Option<&Path>) -> CommandResult<Self> {
        if !directory.is_dir() {
            let shown = directory.display();
            return Err(CommandError::usage(format!(
                "{shown} is not a directory; give an existing one with --dir"
            )));
        }
        Ok(Self { directory: directory.to_owned(), probe: MountProbe::of(directory, state)? })
    }
}

/// Error for an unusable source tree: bad input.
fn bad_source(error: LabError) -> CommandError {
    let hint = if matches!(error, LabError::Io { .. }) { "; give the source tree of a program" } else { "" };
    CommandError::usage(format!("--src: {error}{hint}"))
}

fn tell(bar: &ProgressBar, run: u32, progress: Progress) {
    bar.inc(progress.steps);
    if progress.steps == 0 && progress.copy == 0 {
        bar.set_message(format!("load {} run {} {}", progress.load, run + 1, progress.phase));
    }
}

/// Probe of a mount of Andrew's: calls and packets from the mount, processor time from the cell.
pub(crate) struct MountProbe {
    directory: PathBuf,
    state: StateDir,
}

/// The counters of the property `afs.counters` that the report needs.
#[derive(Deserialize)]
struct MountCounters {
    /// Calls made, by name.
    #[serde(default)]
    calls: BTreeMap<String, u64>,
}

impl MountProbe {
    /// A probe for a directory in a mount of Andrew's; `None` elsewhere.
    pub(crate) fn of(directory: &Path, state: Option<&Path>) -> CommandResult<Option<Self>> {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        if mounts::containing(&real)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { directory: real, state: running_cells::of_cell(state, None)? }))
    }

    /// Statistics of the cell that runs here; zeros if it runs elsewhere.
    fn server(&self) -> Statistics {
        let statistics = ControlClient::of(&self.state).ok().and_then(|mut c| c.statistics().ok());
        statistics.unwrap_or_default()
    }
}

impl Probe for MountProbe {
    fn read(&self) -> Option<Counters> {
        let text = properties::get(&self.directory, "afs.counters").ok()?;
        let mount: MountCounters = serde_json::from_slice(&text).ok()?;
        let server = self.server();
        Some(Counters {
            calls: mount.calls.values().sum(),
            calls_by_operation: mount.calls,
            // Packets that the servers received were sent by their clients.
            packets_sent: server.packets_received,
            packets_received: server.packets_sent,
            server_cpu_us: server.cpu_us,
        })
    }
}

#[derive(Serialize)]
struct BenchReport {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Report>,
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.report.source;
        writeln!(
            f,
            "source: {} directories, {} files, {} links, {} bytes; make: {}",
            source.directories, source.files, source.links, source.bytes, self.report.make
        )?;
        let columns =
            if self.against.is_some() { "; the same of --against; ratio of the medians" } else { "" };
        writeln!(f, "seconds: median (smallest-largest){columns}")?;
        let others = self.against.iter().flat_map(|against| &against.loads).map(Some);
        for (load, other) in self.report.loads.iter().zip(others.chain(std::iter::repeat(None))) {
            show_load(f, load, other)?;
        }
        Ok(())
    }
}

fn show_load(f: &mut fmt::Formatter<'_>, load: &LoadReport, other: Option<&LoadReport>) -> fmt::Result {
    writeln!(f, "\nload {}, runs {}", load.load, load.runs.len())?;
    for phase in Phase::ALL.into_iter().map(Some).chain([None]) {
        let spread = |load: &LoadReport| phase.map_or_else(|| load.total(), |p| load.phase(p));
        let name = phase.map_or("Total".to_owned(), |p| p.to_string());
        let Some(mine) = spread(load) else { continue };
        write!(f, "  {name:<8} {}", show_spread(mine))?;
        if let Some(theirs) = other.and_then(spread) {
            write!(
                f,
                " {} {:>7.2}",
                show_spread(theirs),
                mine.median / theirs.median.max(f64::MIN_POSITIVE)
            )?;
        }
        writeln!(f)?;
    }
    let Some(c) = load.counters() else { return Ok(()) };
    let (calls, sent, received) = (c.calls, c.packets_sent, c.packets_received);
    writeln!(f, "  last run: {calls} calls, {sent} packets sent, {received} received")?;
    if c.server_cpu_us > 0 {
        let seconds = c.server_cpu_us as f64 / 1e6;
        writeln!(f, "  last run: {seconds:.4} s of processor time in the server's process")?;
    }
    Ok(())
}

fn show_spread(spread: Spread) -> String {
    let range = format!("({:.4}-{:.4})", spread.min, spread.max);
    format!("{:>9.4} {range:<18}", spread.median)
}
