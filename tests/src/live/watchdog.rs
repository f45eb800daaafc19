//! Watchdog for tests on mounts: a test that hangs on one cannot end itself, since its threads sleep in the kernel.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the whole test program if it is not dropped in time.
#[derive(Debug)]
pub struct Watchdog(#[allow(dead_code, reason = "its drop is the signal")] Sender<()>);

impl Watchdog {
    /// `rescue` kills servers and mounts, so that hanging threads get an error.
    #[must_use]
    pub fn new(name: &'static str, limit: Duration, rescue: impl FnOnce() + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            if receiver.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name} hangs: not done after {limit:?}");
                rescue();
                std::process::exit(101);
            }
        });
        Self(sender)
    }
}
