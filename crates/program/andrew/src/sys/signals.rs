//! Signals received by a thread that waits for them instead of by a handler.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The signals that end a program.
pub const STOP: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Some signals, blocked in every thread started after [`Signals::block`].
#[derive(Clone)]
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks `signals` in this thread; threads that it starts inherit that. Call before any other thread is started,
    /// since a signal ends the process through a thread that does not block it.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the whole set it is given; sigaddset only takes sets that
        // are initialised, and refuses signals that do not exist.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), *signal);
            }
            set.assume_init()
        };
        // SAFETY: `set` is initialised, and a null old set is allowed.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) } {
            0 => Ok(Self(set)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Starts a command with these signals unblocked, as they were in this process.
    pub(crate) fn unblocked_in(&self, command: &mut Command) {
        let set = self.0;
        let unblock = move || {
            // SAFETY: `set` is initialised, and a null old set is allowed; the call is one of those that may be made
            // between fork and exec.
            match unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) } {
                0 => Ok(()),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        };
        // SAFETY: the closure makes one system call, takes no lock and allocates nothing.
        unsafe { command.pre_exec(unblock) };
    }

    /// Waits until one of them arrives; returns its number.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: both pointers are to live, initialised values.
        match unsafe { libc::sigwait(&self.0, &mut signal) } {
            0 => Ok(signal),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}
