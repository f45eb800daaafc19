//! Meter of the processor time of client and server.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Seconds of processor time, user and system.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub(super) struct Processor {
    /// Of the server's process, in units of a hundredth of a second; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<f64>,
    /// Of this process.
    pub(super) client: f64,
}

/// Reads the processor times at the start and at the end.
pub(super) struct Meter {
    server: Option<u32>,
    before: Processor,
}

impl Meter {
    pub(super) fn start(server: Option<u32>) -> Self {
        Self { server, before: Processor::now(server) }
    }

    /// Processor time used since the start.
    pub(super) fn read(&self) -> Processor {
        let now = Processor::now(self.server);
        let server = now.server.zip(self.before.server).map(|(now, before)| now - before);
        Processor { server, client: now.client - self.before.client }
    }
}

impl Processor {
    fn now(server: Option<u32>) -> Self {
        let own = clock_gettime(ClockId::ProcessCPUTime);
        Self { server: server.and_then(of_process), client: own.tv_sec as f64 + own.tv_nsec as f64 / 1e9 }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.server = more.server.map(|seconds| seconds + self.server.unwrap_or(0.0));
        self.client += more.client;
    }
}

/// Processor time of a process; `None` if it has ended, or the kernel hides it.
fn of_process(pid: u32) -> Option<f64> {
    seconds(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses the fields utime and stime of proc(5); the name before them may contain blanks and brackets.
fn seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> =
        rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// Clock ticks a second in `/proc`, which do not depend on the kernel's own clock rate.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read_whatever_the_program_is_called() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 100 1 1";
        assert_eq!(seconds(line), Some(3.0));
        assert_eq!(seconds("7 (a) S 1"), None);
        assert_eq!(of_process(u32::MAX), None);
    }

    #[test]
    fn the_processor_time_of_this_process_is_measured() {
        let meter = Meter::start(Some(std::process::id()));
        let start = Processor::now(None).client;
        while Processor::now(None).client - start < 0.05 {}
        let used = meter.read();
        assert!(used.client >= 0.05 && used.server.is_some_and(|seconds| seconds > 0.0), "{used:?}");
    }
}
