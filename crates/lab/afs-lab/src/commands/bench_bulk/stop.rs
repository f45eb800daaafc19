//! Flag that a signal raises, so that a measurement ends at its next block or call and removes what it wrote.

use afs_net::threads;
use andrew::error::{CommandError, CommandResult};
use andrew::sys::signals::{STOP, Signals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether SIGINT, SIGTERM or SIGHUP has arrived.
pub(crate) struct Stop(Arc<AtomicBool>);

/// What the measurements of files leave when they end at once.
pub(crate) const BULK_DIRECTORIES: &str = "directories named andrew-bulk-N";

impl Stop {
    /// Receives the signals from now on. To be called before any other thread is started. The second signal ends the
    /// process at once; `left` is what it says then to be left behind.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn on_signals(left: &'static str) -> CommandResult<Self> {
        let signals = Signals::block(&STOP).map_err(CommandError::failed)?;
        let flag = Arc::new(AtomicBool::new(false));
        let raised = flag.clone();
        let wait = move || {
            while signals.wait().is_ok() {
                if raised.swap(true, Ordering::AcqRel) {
                    eprintln!("andrew-lab: ended at once; {left} are left");
                    std::process::exit(i32::from(CommandError::FAILURE));
                }
            }
        };
        threads::start("signals", wait).map_err(CommandError::failed)?;
        Ok(Self(flag))
    }

    pub(crate) fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}
