//! Signals that are pending for a process which waits for a reply.
//!
//! The kernel announces them by an INTERRUPT request, which the binding does not pass on. Without this check a process
//! that waits for a lock could not even be killed.

use std::fs;

/// Whether a signal is pending that the process (by its number in this process's namespace) neither blocks nor ignores.
/// False for a process that is not visible.
pub(crate) fn pending(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| awaited(&status))
}

/// Whether a pending signal will kill the process: one that it does not catch either. A signal that it catches does not
/// interrupt operations on files.
pub(crate) fn kills(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| ends(&status))
}

fn awaited(status: &str) -> bool {
    signals(status) != 0
}

fn ends(status: &str) -> bool {
    signals(status) & !mask(status, "SigCgt") != 0
}

/// Signals that are pending and neither blocked nor ignored.
fn signals(status: &str) -> u64 {
    let mask = |name| mask(status, name);
    (mask("SigPnd") | mask("ShdPnd")) & !mask("SigBlk") & !mask("SigIgn")
}

fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: &str =
        "Name:\tcat\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\nSigBlk:\t0\nSigIgn:\t0\n";

    #[test]
    fn only_signals_that_count() {
        assert!(awaited(KILLED));
        assert!(!awaited(&KILLED.replace("SigBlk:\t0", "SigBlk:\t0000000000000100")));
        assert!(!awaited(&KILLED.replace("SigIgn:\t0", "SigIgn:\t0000000000000100")));
        assert!(!awaited(&KILLED.replace("100", "000")));
        assert!(!awaited(""));
        assert!(!pending(0));
        assert!(!pending(std::process::id()));
    }

    #[test]
    fn a_signal_that_is_caught_kills_nobody() {
        assert!(ends(KILLED));
        assert!(ends(&format!("{KILLED}SigCgt:\t0000000000000200\n")));
        assert!(!ends(&format!("{KILLED}SigCgt:\t0000000000000100\n")));
        assert!(!ends(&KILLED.replace("100", "000")) && !kills(std::process::id()));
    }
}
