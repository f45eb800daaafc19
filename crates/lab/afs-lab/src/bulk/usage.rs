//! Stopwatch: elapsed time, and user and system time of the calling thread or of this process by getrusage(2).
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Time that something took, and processor time of the thread that did it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) elapsed: Duration,
    pub(super) user: Duration,
    pub(super) system: Duration,
}

/// Started and read by the same thread.
pub(super) struct Stopwatch {
    began: Instant,
    user: Duration,
    system: Duration,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        let (user, system) = thread_times();
        Self { began: Instant::now(), user, system }
    }

    pub(super) fn read(&self) -> Taken {
        let elapsed = self.began.elapsed();
        let (user, system) = thread_times();
        let user = user.saturating_sub(self.user);
        Taken { elapsed, user, system: system.saturating_sub(self.system) }
    }
}

/// User and system time of the calling thread so far.
fn thread_times() -> (Duration, Duration) {
    times(libc::RUSAGE_THREAD)
}

/// User and system time of this process so far.
pub(crate) fn process_times() -> (Duration, Duration) {
    times(libc::RUSAGE_SELF)
}

fn times(of: libc::c_int) -> (Duration, Duration) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`, which the call fills; all zeros are a valid value of it if it fails.
    let usage = unsafe {
        libc::getrusage(of, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec.cast_unsigned(), time.tv_usec.cast_unsigned() as u32 * 1000)
    };
    (time(usage.ru_utime), time(usage.ru_stime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_thread_uses_is_seen() {
        let stopwatch = Stopwatch::start();
        let used = || {
            let Taken { user, system, .. } = stopwatch.read();
            user + system
        };
        while used() < Duration::from_millis(20) {}
        assert!(stopwatch.read().elapsed >= Duration::from_millis(10));
    }
}
