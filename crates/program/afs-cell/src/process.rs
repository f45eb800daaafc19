//! Handle of another process of this machine (a pidfd), which never refers to a later process with the same number.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A process that existed when this was made.
pub struct Process(OwnedFd);

impl Process {
    /// The process with this number; `None` if there is none.
    pub fn open(pid: u32) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Ok(Some(Self(fd))),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends SIGTERM. A process that has ended is no error.
    pub fn terminate(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.0, Signal::TERM) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for its end, at most `limit`; false if it still runs then.
    pub fn ended_within(&self, limit: Duration) -> io::Result<bool> {
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        let mut waiting = [PollFd::new(&self.0, PollFlags::IN)];
        Ok(poll(&mut waiting, Some(&limit))? > 0)
    }
}

/// Memory that this process has in use, in bytes: `VmRSS` in proc_pid_status(5). 0 if it is not told.
#[must_use]
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    line.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0).saturating_mul(1024)
}

/// Whether a process is stopped, by a signal or a debugger (`State` in proc_pid_stat(5)). False if there is none.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it may have any character, the parentheses among them.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_asked_to_end_and_waited_for() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        assert!(!is_stopped(child.id()) && !is_stopped(0) && resident_bytes() > 1 << 20);
        assert!(!process.ended_within(Duration::ZERO).unwrap());
        process.terminate().unwrap();
        assert!(process.ended_within(Duration::from_secs(60)).unwrap());
        child.wait().unwrap();
        process.terminate().unwrap();
        assert!(Process::open(0).unwrap().is_none());
    }
}
