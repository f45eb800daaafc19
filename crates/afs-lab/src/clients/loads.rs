//! Runs of the benchmark by many processes at once.

use super::cap::Cap;
use crate::andrew::{Counters, Probe};
use crate::closed::Demands;
use crate::error::{Context, LabError};
use crate::measure::Program;
use crate::spread::Spread;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Seconds that a client waits in the place of compiling.
const THINK: &str = "4";
/// Part of the server's processor that one client uses (Table VII).
const PAPER: f64 = 0.081;
/// Loads of the paper.
const LOADS: [u32; 7] = [1, 2, 5, 8, 10, 15, 20];

/// Processes that are to run, and what they run on.
pub struct Clients<'a> {
    /// The program.
    pub program: &'a Path,
    /// A directory for the source.
    pub local: &'a Path,
    /// A directory in the mount.
    pub directory: &'a Path,
    /// Tells the server's processor time.
    pub probe: &'a dyn Probe,
    /// The server's process, if it may be bounded: nothing of the client may be in it.
    pub server: Option<u32>,
    /// Few loads, once each.
    pub quick: bool,
    /// Ends the runs when it is true.
    pub stop: &'a AtomicBool,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Loads, seconds of a run, and the part of the time that the server's part of a processor worked.
    pub loads: Vec<(u32, Spread, f64)>,
    /// What a run needs alone, of that part.
    pub demands: Demands,
    /// The server's part of a processor; without a bound a whole one.
    pub part: f64,
}

/// One run of a load.
struct Run {
    /// Mean of the clients.
    elapsed: f64,
    /// From the first start to the last end.
    whole: Duration,
    processor: f64,
}

impl Clients<'_> {
    /// Runs all loads. `None` if the server does not tell its processor time.
    ///
    /// # Errors
    /// A client fails, or `stop` became true.
    pub fn run(&self) -> Result<Option<Ran>, LabError> {
        let program = Program::write_in(self.local)?;
        let source = program.root();
        self.load(source, 1)?;
        let alone = self.load(source, 1)?;
        if alone.processor <= 0.0 {
            return Ok(None);
        }
        let part = (alone.processor / (PAPER * alone.elapsed)).min(1.0);
        let cap = self.server.and_then(|server| Cap::on(server, part).ok());
        let part = if cap.is_some() { part } else { 1.0 };
        let demands = Demands { elapsed: alone.elapsed, processor: alone.processor / part, disk: 0.0 };
        let (loads, runs) = if self.quick { (&LOADS[..3], 1) } else { (&LOADS[..], 3) };
        let measured = loads.iter().map(|load| self.repeated(source, *load, runs, part));
        let loads = measured.collect::<Result<_, _>>()?;
        drop(cap);
        Ok(Some(Ran { loads, demands, part }))
    }

    fn repeated(
        &self,
        source: &Path,
        load: u32,
        runs: u32,
        part: f64,
    ) -> Result<(u32, Spread, f64), LabError> {
        let runs: Vec<Run> = (0..runs).map(|_| self.load(source, load)).collect::<Result<_, _>>()?;
        let elapsed = Spread::of_values(runs.iter().map(|run| run.elapsed)).ok_or(LabError::Lost)?;
        let used = runs.iter().map(|run| run.processor / part / run.whole.as_secs_f64());
        let used = Spread::of_values(used).ok_or(LabError::Lost)?;
        Ok((load, elapsed, used.median))
    }

    fn load(&self, source: &Path, load: u32) -> Result<Run, LabError> {
        if self.stop.load(Ordering::Acquire) {
            return Err(LabError::Stopped);
        }
        let (before, began) = (self.processor(), Instant::now());
        let clients: Vec<Child> = (0..load).map(|_| self.client(source)).collect::<Result<_, _>>()?;
        let mut seconds = Vec::new();
        for client in clients {
            seconds.push(finished(client, self.program)?);
        }
        let whole = began.elapsed();
        let processor = self.processor() - before;
        Ok(Run { elapsed: seconds.iter().sum::<f64>() / f64::from(load), whole, processor })
    }

    fn client(&self, source: &Path) -> Result<Child, LabError> {
        let mut command = Command::new(self.program);
        command.args(["--json", "bench", "andrew", "--runs", "1", "--think", THINK, "--src"]).arg(source);
        command.arg("--dir").arg(self.directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().during("run", self.program)
    }

    fn processor(&self) -> f64 {
        let told: Option<Counters> = self.probe.read();
        told.map_or(0.0, |told| told.server_cpu_us as f64 / 1e6)
    }
}

/// Seconds of a client's run, from its report.
fn finished(client: Child, program: &Path) -> Result<f64, LabError> {
    let output = client.wait_with_output().during("wait for", program)?;
    let command = format!("{} bench andrew", program.display());
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stderr = stderr.lines().last().unwrap_or("it wrote no reason").to_owned();
        return Err(LabError::Command { command, status: output.status.to_string(), stderr });
    }
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let total = &said["loads"][0]["runs"][0]["total"];
    let seconds = total["secs"].as_f64().zip(total["nanos"].as_f64());
    seconds.map(|(secs, nanos)| secs + nanos / 1e9).ok_or(LabError::Answer { command })
}
