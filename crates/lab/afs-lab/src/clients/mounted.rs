//! Clients in a mount of Andrew.

use super::loads::{Loads, Ran, System};
use crate::andrew::{Counters, Probe};
use crate::error::LabError;
use crate::measure::Program;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Loads of Table VII.
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

impl Clients<'_> {
    /// Runs all loads. `None` if the server does not tell its processor time.
    ///
    /// # Errors
    /// A client fails, or `stop` became true.
    pub fn run(&self) -> Result<Option<Ran>, LabError> {
        let source = Program::write_in(self.local)?;
        let Self { program, server, quick, stop, .. } = *self;
        Loads { program, loads: &LOADS, server, part: None, quick, stop }
            .run(&Mounted { clients: self, source: &source })
    }
}

struct Mounted<'a> {
    clients: &'a Clients<'a>,
    source: &'a Program,
}

impl System for Mounted<'_> {
    fn client(&self, _: u32, think: Duration) -> Command {
        let mut command = Command::new(self.clients.program);
        command.args(["--json", "bench", "andrew", "--runs", "1", "--think", &think.as_secs().to_string()]);
        command.arg("--src").arg(self.source.root()).arg("--dir").arg(self.clients.directory);
        command
    }

    fn seconds(&self, said: &Value) -> Option<f64> {
        let total = &said["loads"][0]["runs"][0]["total"];
        total["secs"].as_f64().zip(total["nanos"].as_f64()).map(|(secs, nanos)| secs + nanos / 1e9)
    }

    fn processor(&self, _: u32) -> Result<f64, LabError> {
        let told: Option<Counters> = self.clients.probe.read();
        Ok(told.map_or(0.0, |told| told.server_cpu_us as f64 / 1e6))
    }
}
