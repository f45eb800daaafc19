//! Clock of `Env::now`: `CLOCK_BOOTTIME`, which includes the time in suspend.
//!
//! Promises, tokens and locks expire at the servers while a client sleeps, so a clock that stops in suspend
//! (`CLOCK_MONOTONIC`) would make them look valid. Timers of the pool do run on the monotonic clock; [`wait_until`]
//! compares them with this one.

use std::time::{Duration, Instant as Monotonic};

use afs_rpc::Instant;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;

/// The clock's value at the start, so that earlier times can be represented.
const START: Instant = Instant::from_nanos(1_000_000_000);
/// Longest delay after a resume of a timer whose deadline passed in suspend.
pub(crate) const CHECK_MAX: Duration = Duration::from_secs(30);

/// Time since its creation, suspend included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BootClock {
    start: Duration,
}

impl BootClock {
    pub(crate) fn new() -> Self {
        Self { start: since_boot() }
    }

    pub(crate) fn now(self) -> Instant {
        START + since_boot().saturating_sub(self.start)
    }
}

/// Time since the machine started, suspend included.
fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Completes when `now` is `deadline` or later, at most `check` after a resume from a suspend that passed it.
pub(crate) async fn wait_until(
    handle: Handle,
    now: impl Fn() -> Instant,
    deadline: Instant,
    check: Duration,
) {
    loop {
        // Read before the monotonic clock, so that its timer cannot be early.
        let left = deadline.saturating_since(now());
        if left.is_zero() {
            return;
        }
        let timer = {
            let _pool = handle.enter();
            tokio::time::sleep_until((Monotonic::now() + left.min(check)).into())
        };
        timer.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::runtime::Builder;

    fn uptime() -> f64 {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    #[test]
    fn the_clock_is_that_of_the_uptime() {
        let before = uptime();
        let now = since_boot().as_secs_f64();
        // The kernel truncates the uptime to hundredths.
        assert!(before - 0.011 <= now && now <= uptime() + 0.011, "{before} {now}");
    }

    /// In a time namespace only the clock that includes suspend has an offset, so this tells it from the monotonic
    /// one.
    #[test]
    fn the_clock_counts_the_time_in_suspend() {
        let own = std::env::current_exe().unwrap();
        let output = Command::new("unshare")
            .args(["--time", "--boottime", "864000", "--fork", "--"])
            .arg(own)
            .args(["--exact", "boot_clock::tests::the_clock_is_that_of_the_uptime"])
            .output();
        let may = rustix::process::geteuid().is_root() && std::env::var_os("CI").is_some();
        match output {
            Ok(output) if output.status.success() => {}
            Ok(output) if !may && String::from_utf8_lossy(&output.stderr).contains("unshare:") => {}
            Err(_) if !may => {}
            failed => panic!("{failed:?}"),
        }
    }

    #[test]
    fn a_timer_is_judged_by_the_clock_that_jumped() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let clock = Arc::new(AtomicU64::new(1));
        let read = clock.clone();
        let now = move || Instant::from_nanos(read.load(Ordering::Relaxed) * 1_000_000_000);
        let hour = Instant::from_nanos(3600 * 1_000_000_000);
        let waiting = wait_until(runtime.handle().clone(), now, hour, Duration::from_millis(1));
        let waiting = runtime.spawn(waiting);
        clock.store(7200, Ordering::Relaxed);
        runtime.block_on(waiting).unwrap();
    }

    #[test]
    fn a_timer_is_never_early() {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let clock = BootClock::new();
        let deadline = clock.now() + Duration::from_millis(7);
        runtime.block_on(wait_until(
            runtime.handle().clone(),
            move || clock.now(),
            deadline,
            Duration::from_millis(2),
        ));
        assert!(clock.now() >= deadline);
    }
}
