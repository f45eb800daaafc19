//! A client of the prototype as a process: it runs the benchmark's script once.

use super::remote::Remote;
use super::script::{Script, make_source};
use super::venus::Venus;
use crate::andrew::Phase;
use crate::error::LabError;
use crate::measure::Program;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a client did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientRun {
    /// From the beginning of the first phase to the end of the last, in seconds.
    pub seconds: f64,
    /// Seconds of the phases.
    pub phases: Vec<(String, f64)>,
    /// TestAuth calls that it made.
    pub checks: u64,
    /// Seconds that it waited for them.
    pub checks_seconds: f64,
}

/// Where a client works.
pub struct ClientPlace<'a> {
    /// The server.
    pub server: SocketAddr,
    /// A directory for copies, which nothing else uses.
    pub cache: &'a Path,
}

impl ClientPlace<'_> {
    fn venus(&self) -> Result<Venus<Remote>, LabError> {
        Venus::of(Remote::to(vec![self.server]), self.cache).map_err(LabError::prototype)
    }

    /// Stores the source of the benchmark at the server. What the client knows of it is forgotten.
    ///
    /// # Errors
    /// A call fails, or files of this client cannot be written.
    pub(crate) fn make_source(&self, program: &Program) -> Result<(), LabError> {
        let mut venus = self.venus()?;
        venus.make_dir("usr")?;
        make_source(&mut venus, program)
    }

    /// Runs the script into a target that does not exist, with waiting in the place of compiling.
    ///
    /// # Errors
    /// As [`ClientPlace::make_source`]'s.
    pub fn run(&self, target: &str, think: Duration) -> Result<ClientRun, LabError> {
        let mut venus = self.venus()?;
        let (target, mut phases, began) = (format!("usr/{target}"), Vec::new(), Instant::now());
        for phase in Phase::ALL {
            let phase_began = Instant::now();
            Script { venus: &mut venus, target: &target, think }.phase(phase)?;
            phases.push((phase.to_string(), phase_began.elapsed().as_secs_f64()));
        }
        let checks = venus.checks;
        Ok(ClientRun {
            seconds: began.elapsed().as_secs_f64(),
            phases,
            checks: checks.calls,
            checks_seconds: checks.time.as_secs_f64(),
        })
    }
}
