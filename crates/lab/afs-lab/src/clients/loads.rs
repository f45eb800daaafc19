//! Runs of the benchmark by many processes at once, on a system whose server may have a part of a processor.

use super::cap::Cap;
use crate::demands::Demands;
use crate::error::{Context, LabError};
use crate::spread::Spread;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Seconds that a client waits in the place of compiling.
const THINK: u64 = 4;
/// The same in a quick run.
const QUICK_THINK: u64 = 1;
/// Part of the server's processor that one client uses (Table VII).
const PAPER: f64 = 0.081;

/// What clients run on.
pub(super) trait System {
    /// A client that runs the benchmark once. Each has another number.
    fn client(&self, number: u32, think: Duration) -> Command;
    /// Seconds of its run, from what it told.
    fn seconds(&self, said: &Value) -> Option<f64>;
    /// Processor seconds of the server so far, when so many clients have ended since this was asked last.
    fn processor(&self, ended: u32) -> Result<f64, LabError>;
}

/// Loads that are to be run.
pub(super) struct Loads<'a> {
    pub(super) program: &'a Path,
    pub(super) loads: &'a [u32],
    /// The server's process, if it may be bounded.
    pub(super) server: Option<u32>,
    /// The part of a processor that it gets; without one so much that a client uses as much of it as in the paper.
    pub(super) part: Option<f64>,
    /// The first three loads, once each.
    pub(super) quick: bool,
    pub(super) stop: &'a AtomicBool,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The loads.
    pub loads: Vec<AtLoad>,
    /// What a run needs alone, of the server's part of a processor.
    pub demands: Demands,
    /// The server's part of a processor; without a bound a whole one.
    pub part: f64,
    /// Waiting in the place of compiling.
    pub think: Duration,
}

/// A load.
#[derive(Clone, Debug)]
pub struct AtLoad {
    /// Clients at once.
    pub load: u32,
    /// Seconds of a run.
    pub elapsed: Spread,
    /// Part of the time that the server's part of a processor worked.
    pub processor: f64,
    /// What the clients told.
    pub(super) said: Vec<Value>,
}

impl Ran {
    /// What was measured at a load.
    #[must_use]
    pub fn at(&self, load: f64) -> Option<&AtLoad> {
        self.loads.iter().find(|one| f64::from(one.load) == load)
    }
}

/// One run of a load.
struct Run {
    /// Mean of the clients.
    elapsed: f64,
    /// From the first start to the last end.
    whole: Duration,
    processor: f64,
    said: Vec<Value>,
}

impl Loads<'_> {
    /// Waiting in the place of compiling.
    pub(super) fn think(&self) -> Duration {
        Duration::from_secs(if self.quick { QUICK_THINK } else { THINK })
    }

    /// Runs all loads. `None` if the server does not tell its processor time.
    pub(super) fn run(&self, system: &dyn System) -> Result<Option<Ran>, LabError> {
        let mut number = 0;
        let mut load = |load| self.load(system, load, &mut number);
        load(1)?;
        let alone = load(1)?;
        if alone.processor <= 0.0 {
            return Ok(None);
        }
        let part = self.part.unwrap_or((alone.processor / (PAPER * alone.elapsed)).min(1.0));
        let cap = self.server.and_then(|server| Cap::on(server, part).ok());
        let part = if cap.is_some() { part } else { 1.0 };
        let demands = Demands { elapsed: alone.elapsed, processor: alone.processor / part };
        let (loads, runs) = if self.quick { (&self.loads[..3], 1) } else { (self.loads, 3) };
        let mut measured = Vec::new();
        for clients in loads {
            let runs = (0..runs).map(|_| load(*clients)).collect::<Result<Vec<Run>, _>>()?;
            measured.push(at_load(*clients, runs, part)?);
        }
        drop(cap);
        Ok(Some(Ran { loads: measured, demands, part, think: self.think() }))
    }

    fn load(&self, system: &dyn System, load: u32, number: &mut u32) -> Result<Run, LabError> {
        if self.stop.load(Ordering::Acquire) {
            return Err(LabError::Stopped);
        }
        let (before, began) = (system.processor(0)?, Instant::now());
        let first = *number;
        *number += load;
        let clients = (first..*number).map(|client| self.start(system.client(client, self.think())));
        let clients: Vec<Child> = clients.collect::<Result<_, _>>()?;
        let (mut seconds, mut said) = (0.0, Vec::new());
        for client in clients {
            let told = finished(client, self.program)?;
            let command = || self.program.display().to_string();
            seconds += system.seconds(&told).ok_or_else(|| LabError::Answer { command: command() })?;
            said.push(told);
        }
        let whole = began.elapsed();
        let processor = system.processor(load)? - before;
        Ok(Run { elapsed: seconds / f64::from(load), whole, processor, said })
    }

    fn start(&self, mut command: Command) -> Result<Child, LabError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().during("run", self.program)
    }
}

fn at_load(load: u32, runs: Vec<Run>, part: f64) -> Result<AtLoad, LabError> {
    let elapsed = Spread::of_values(runs.iter().map(|run| run.elapsed)).ok_or(LabError::Lost)?;
    let used = runs.iter().map(|run| run.processor / part / run.whole.as_secs_f64());
    let processor = Spread::of_values(used).ok_or(LabError::Lost)?.median;
    Ok(AtLoad { load, elapsed, processor, said: runs.into_iter().flat_map(|run| run.said).collect() })
}

/// What a client told when it ended.
fn finished(client: Child, program: &Path) -> Result<Value, LabError> {
    let output = client.wait_with_output().during("wait for", program)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = stderr.lines().last().unwrap_or("it wrote no reason").to_owned();
        let command = format!("{}, a client of the benchmark,", program.display());
        return Err(LabError::Command { command, status: output.status.to_string(), stderr });
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
}
