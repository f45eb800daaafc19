//! Meter of the processor time of client and server.

use afs_lab::bulk::Process;
use serde::Serialize;

/// Seconds of processor time, user and system.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub(super) struct Processor {
    /// Of the server's process; `None` if unknown.
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
        Self {
            server: server.and_then(of_process),
            client: of_process(std::process::id()).unwrap_or_default(),
        }
    }

    pub(super) fn add(&mut self, more: Self) {
        self.server = more.server.map(|seconds| seconds + self.server.unwrap_or(0.0));
        self.client += more.client;
    }
}

/// Processor time of a process; `None` if it has ended.
fn of_process(pid: u32) -> Option<f64> {
    Process::new(String::new(), pid).and_then(|process| process.time()).ok().map(|time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_this_process_is_measured_and_another_has_none() {
        assert_eq!(of_process(u32::MAX), None);
        let meter = Meter::start(Some(std::process::id()));
        let start = Processor::now(None).client;
        while Processor::now(None).client - start < 0.05 {}
        let used = meter.read();
        assert!(used.client >= 0.05 && used.server.is_some_and(|seconds| seconds > 0.0), "{used:?}");
    }
}
