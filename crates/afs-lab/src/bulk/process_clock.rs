//! Processor time of another process, by its CPU clock (clock_getcpuclockid(3)), which counts in nanoseconds; that of
//! `/proc/PID/stat` counts in hundredths of a second, too coarse for a file of a few megabytes.
#![allow(unsafe_code)]

use std::io;
use std::time::Duration;

/// Clock of a process: user and system time of all its threads, also those that have ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessClock(libc::clockid_t);

impl ProcessClock {
    /// The clock of a process.
    ///
    /// # Errors
    /// There is no such process.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let mut clock = 0;
        let number = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
        // SAFETY: the pointer is to a live clock id.
        match unsafe { libc::clock_getcpuclockid(number, &raw mut clock) } {
            0 => Ok(Self(clock)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Processor time so far.
    ///
    /// # Errors
    /// The process has ended.
    pub(super) fn read(self) -> io::Result<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a live `timespec`.
        if unsafe { libc::clock_gettime(self.0, &raw mut time) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn time_of_a_process_grows_and_an_ended_one_has_none() {
        let own = ProcessClock::of(std::process::id()).unwrap();
        let before = own.read().unwrap();
        while own.read().unwrap() <= before {}
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(ProcessClock::of(pid).and_then(ProcessClock::read).is_err());
        assert!(ProcessClock::of(u32::MAX).is_err());
    }
}
