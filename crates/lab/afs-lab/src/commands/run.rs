//! `andrew-lab run`.

use super::choice::chosen;
use super::failed_folder;
use super::others::{Named, Others};
use crate::commands::bench::MountProbe;
use crate::commands::bench_bulk::{BULK_DIRECTORIES, Stop, places};
use crate::commands::progress::{TIME_LEFT, bar};
use afs_lab::andrew::Probe;
use afs_lab::bulk::{Place, Process};
use afs_lab::catalogue::Experiment;
use afs_lab::measure::{Mounted, Served};
use afs_lab::runs::{self, Environment, Outcome, ResultFolder, RunResult, Setting, Step};
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use indicatif::ProgressBar;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Options of `andrew-lab run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Each result is a file ID.json in the output directory, with the machine and the programs that it was obtained on. If
interrupted, run the same command again to resume: what has a result of the same program and length is left out. What
cannot run here says what it lacks, and the others continue.

Examples:
  andrew-lab run all --quick
  andrew up --detach && andrew-lab run all --mount ~/afs
  andrew-lab run howard88 --mount ~/afs --beside nfs=/mnt/nfs --beside-server nfs=1234 --beside disk=/var/tmp
  andrew-lab run citi01-3.table3 --out results")]
pub struct Args {
    /// Tables, figures or papers, such as howard88.table6 or citi01-3; or all
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Few and short repetitions
    #[arg(long)]
    quick: bool,
    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "andrew-lab")]
    out: PathBuf,
    /// Directory on a local disk to measure in; what is written there is removed [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,
    /// Directory in a mount of Andrew to measure in, likewise
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// Directory in another file system to compare with, likewise; several are possible
    ///
    /// NAME is that of its columns; nfs must be a mount of NFS, and stands beside the paper's.
    #[arg(long, value_name = "NAME=DIR")]
    beside: Vec<Named<PathBuf>>,
    /// Process of the server of such a file system, if it runs on this machine: its time at load 1 gives that of other loads
    #[arg(long, value_name = "NAME=PID", requires = "beside")]
    beside_server: Vec<Named<u32>>,
    /// Process of Andrew's server, if the mount's cell does not tell its time itself
    #[arg(long, value_name = "PID", requires = "mount")]
    server: Option<u32>,
    /// procfs of the machine that runs the processes of --server and --beside-server, mounted here: they run outside of this one
    #[arg(long, value_name = "DIR")]
    proc: Option<PathBuf>,
    /// The other end of a link, where `andrew-lab peer` listens, for streams by the layers of the network [default: a
    /// process on this machine]
    #[arg(long, value_name = "IP:PORT")]
    peer: Option<SocketAddr>,
    /// Run also what has a result
    #[arg(long)]
    again: bool,
}

impl Args {
    /// Runs the experiments and prints what came of each.
    ///
    /// # Errors
    /// An id that does not exist, status 2; an experiment that failed, or a signal, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        let chosen = chosen(&self.ids)?;
        // Before any thread is started.
        let stop = Stop::on_signals(BULK_DIRECTORIES)?;
        let folder = ResultFolder::create(&self.out).map_err(failed_folder)?;
        let local = self.local.clone().unwrap_or_else(std::env::temp_dir);
        // Said now, not by each experiment at its end.
        if !local.is_dir() {
            let shown = local.display();
            return Err(CommandError::usage(format!(
                "{shown} is not a directory; give an existing one with --local"
            )));
        }
        let mount = self.mount.as_deref().map(Mount::of).transpose()?;
        let process = |pid: Option<u32>| pid.map(|pid| self.process(pid)).transpose();
        let server = process(self.server)?;
        let served = mount.as_ref().zip(server.as_ref());
        let served = served.map(|(mount, server)| Served { probe: &mount.probe, server });
        let others = Others::of(&self.beside, &self.beside_server, &|pid| self.process(pid))?;
        let probes = others.probes();
        let program = std::env::current_exe().ok();
        let setting = Setting {
            environment: others.added_to(Environment::of(env!("CARGO_PKG_VERSION"))),
            quick: self.quick,
            date: &|| jiff::Timestamp::now().to_string(),
            stop: stop.flag(),
            local: &local,
            mount: mount.as_ref().map(|mount| mount.mounted(served.as_ref())),
            program: program.as_deref(),
            peer: self.peer,
            servers_are_apart: self.proc.is_some(),
            others: others.mounted(&probes),
        };
        let bar = Bar::of(&chosen, self.quick);
        let mut summary = Summary { out: self.out.display().to_string(), results: Vec::new() };
        let failures = runs::run(&setting, &chosen, &folder, self.again, &mut |step| {
            bar.tell(&step);
            summary.add(&step);
        });
        bar.0.finish_and_clear();
        let failures = failures.map_err(failed_folder)?;
        output::show(json, &summary);
        if summary.results.len() < chosen.len() {
            return Err(CommandError::failed("interrupted; run the same command again to resume"));
        }
        match failures {
            0 => Ok(()),
            count => Err(CommandError::failed(format!("{count} experiments ended with an error"))),
        }
    }

    /// The process of a server.
    fn process(&self, pid: u32) -> CommandResult<Process> {
        let name = "server".to_owned();
        let process = match &self.proc {
            Some(procfs) => Process::in_procfs(name, pid, procfs),
            None => Process::new(name, pid),
        };
        process.map_err(|error| CommandError::usage(format!("{error}")))
    }
}

/// A directory in a mount, with what the mount tells of itself.
pub(super) struct Mount {
    place: Place,
    probe: MountProbe,
}

impl Mount {
    /// # Errors
    /// It is no directory, or in no mount of Andrew's.
    pub(super) fn of(directory: &Path) -> CommandResult<Self> {
        let place = places::writer(directory, &[])?;
        let Some(probe) = MountProbe::of(directory, None)? else {
            let shown = directory.display();
            let message = format!("{shown} is in no mount of Andrew; `andrew status` shows those there are");
            return Err(CommandError::usage(message));
        };
        Ok(Self { place, probe })
    }

    pub(super) fn mounted<'a>(&'a self, served: Option<&'a Served<'a>>) -> Mounted<'a> {
        let probe = served.map_or(&self.probe as &dyn Probe, |served| served);
        Mounted { place: &self.place, probe: Some(probe) }
    }
}

/// Progress and time left on standard error, if that is a terminal; the unit is a second of the catalogue's estimate.
struct Bar(ProgressBar, bool);

impl Bar {
    fn of(chosen: &[&'static Experiment], quick: bool) -> Self {
        let bar = bar(TIME_LEFT);
        bar.set_length(chosen.iter().map(|one| one.method.weight_seconds(quick)).sum());
        Self(bar, quick)
    }

    fn tell(&self, step: &Step<'_>) {
        match step {
            Step::Begins(one) => self.0.set_message(one.id),
            Step::Ended(one, _) | Step::WasDone(one) => self.0.inc(one.method.weight_seconds(self.1)),
        }
    }
}

#[derive(Serialize)]
struct Summary {
    out: String,
    results: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    id: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

impl Summary {
    fn add(&mut self, step: &Step<'_>) {
        self.results.extend(match step {
            Step::Begins(_) => None,
            Step::WasDone(one) => Some(Line { id: one.id, state: "was_done", reason: None, seconds: None }),
            Step::Ended(one, result) => Some(line(one.id, result)),
        });
    }
}

fn line(id: &'static str, result: &RunResult) -> Line {
    let (state, reason) = match &result.outcome {
        Outcome::Ran { .. } => ("ran", None),
        Outcome::Refused { lacks } => ("refused", Some(lacks.clone())),
        Outcome::Failed { error } => ("failed", Some(error.clone())),
    };
    Line { id, state, reason, seconds: (state == "ran").then_some(result.seconds) }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Line { id, state, reason, seconds } in &self.results {
            let told = match *state {
                "was_done" => "had a result",
                other => other,
            };
            write!(f, "{id:<30} {told}")?;
            match (seconds, reason) {
                (Some(seconds), _) => writeln!(f, ", {seconds:.1} s")?,
                (None, Some(reason)) if *state == "refused" => writeln!(f, ": it lacks {reason}")?,
                (None, Some(reason)) => writeln!(f, ": {reason}")?,
                (None, None) => writeln!(f)?,
            }
        }
        writeln!(f, "results are in {0}; `scripts/lab-report {0}` makes a page of them", self.out)
    }
}
