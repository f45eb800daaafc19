//! Processor time of another process, by its CPU clock (clock_getcpuclockid(3)), which counts in nanoseconds; that of
//! `/proc/PID/stat` counts in hundredths of a second, too coarse for a file of a few megabytes, and is read only of
//! processes that another kernel runs.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Clock of a process: user and system time of all its threads, also those that have ended.
#[derive(Clone, Debug)]
pub(super) enum ProcessClock {
    /// Of this kernel.
    Clock(libc::clockid_t),
    /// Its file `stat` in the procfs of another kernel.
    Stat(PathBuf),
}

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
            0 => Ok(Self::Clock(clock)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// The clock of a process that another kernel runs, whose procfs is mounted there.
    ///
    /// # Errors
    /// There is no such process.
    pub(super) fn in_procfs(procfs: &Path, pid: u32) -> io::Result<Self> {
        let clock = Self::Stat(procfs.join(pid.to_string()).join("stat"));
        clock.read().map(|_| clock)
    }

    /// Processor time so far.
    ///
    /// # Errors
    /// The process has ended.
    pub(super) fn read(&self) -> io::Result<Duration> {
        match self {
            Self::Clock(clock) => time_of(*clock),
            Self::Stat(file) => ticks(&fs::read_to_string(file)?)
                .ok_or_else(|| io::Error::other("no processor time in its stat")),
        }
    }
}

fn time_of(clock: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live `timespec`.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32))
}

/// Clock ticks a second in procfs, which do not depend on the kernel's own clock rate.
const TICKS_PER_SECOND: u64 = 100;

/// The fields utime and stime of proc(5); the name before them may contain blanks and brackets.
fn ticks(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let ticks = fields.next()??.checked_add(fields.next()??)?;
    Some(Duration::from_millis(ticks.checked_mul(1000 / TICKS_PER_SECOND)?))
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
        assert!(ProcessClock::of(pid).and_then(|clock| clock.read()).is_err());
        assert!(ProcessClock::of(u32::MAX).is_err());
    }

    #[test]
    fn time_of_a_process_of_another_kernel_is_in_its_procfs() {
        let procfs = tempfile::tempdir().unwrap();
        fs::create_dir(procfs.path().join("7")).unwrap();
        let write = |line| fs::write(procfs.path().join("7/stat"), line).unwrap();
        let read = || ProcessClock::in_procfs(procfs.path(), 7).and_then(|clock| clock.read()).ok();
        write("7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 100 1 1");
        assert_eq!(read(), Some(Duration::from_secs(3)));
        for broken in ["7 (a) S 1", "", "7 (a) S 1 7 7 0 -1 4 1 0 0 0 18446744073709551615 1 0"] {
            write(broken);
            assert_eq!(read(), None, "{broken}");
        }
        assert!(ProcessClock::in_procfs(procfs.path(), 8).is_err());
        assert!(ProcessClock::in_procfs(Path::new("/proc"), std::process::id()).is_ok());
    }
}
