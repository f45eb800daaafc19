//! Bounded waiting for a condition that is not signalled, with a description of it.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Calls `probe` until it returns a value.
///
/// # Panics
/// If it has returned none after `limit`.
pub fn until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(Instant::now() < end, "waited {limit:?} in vain for: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Calls `probe` until it returns `wanted`: a client without flush stores some time after `close`, in parts, and the
/// kernel of an old client keeps attributes for a second. How long that takes depends on the machine, so the limit
/// applies to the time without any change.
///
/// # Panics
/// If the value has not changed for a minute, or is not `wanted` after three.
pub fn until_equal<T: PartialEq + Debug>(what: &str, wanted: &T, mut probe: impl FnMut() -> T) {
    let began = Instant::now();
    let (mut last, mut changed) = (None, began);
    loop {
        let seen = probe();
        if seen == *wanted {
            return;
        }
        if last.as_ref() != Some(&seen) {
            changed = Instant::now();
        }
        let (quiet, waited) = (changed.elapsed(), began.elapsed());
        assert!(
            quiet < QUIET_MAX && waited < WAIT_MAX,
            "{what}: {seen:.200?} where {wanted:.200?} was expected, for {quiet:.0?} of {waited:.0?}"
        );
        last = Some(seen);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Longest time without a change: more than a busy machine needs to store a large file and sync it to its disk.
const QUIET_MAX: Duration = Duration::from_secs(60);
/// Longest time in total.
const WAIT_MAX: Duration = Duration::from_secs(180);
