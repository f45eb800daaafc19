//! Whether a process that waits for an answer has a signal to attend to.
//!
//! The kernel would tell by an INTERRUPT request, which the binding does not pass on. Without this, a process
//! that waits for a lock could not even be killed.

use std::fs;

/// Whether a signal is pending that the process (by its number in our own namespace) neither blocks nor
/// ignores. No for a process that cannot be seen.
pub(crate) fn pending(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| awaited(&status))
}

fn awaited(status: &str) -> bool {
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
    };
    (mask("SigPnd") | mask("ShdPnd")) & !mask("SigBlk") & !mask("SigIgn") != 0
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
}
