//! Waiting for something that has no other sign: bounded, and it says what was waited for.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Asks `probe` again and again until it gives a value.
///
/// # Panics
/// If it has given none after `limit`.
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

/// Asks `probe` until it answers `wanted`: a client without flush stores some time after `close`, and the kernel of
/// an old client keeps attributes for a second.
///
/// # Panics
/// If it has not after 20 s.
pub fn until_equal<T: PartialEq + Debug>(what: &str, wanted: &T, mut probe: impl FnMut() -> T) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = probe();
        if seen == *wanted {
            return;
        }
        assert!(Instant::now() < end, "{what}: {seen:.200?} where {wanted:.200?} was expected");
        std::thread::sleep(Duration::from_millis(20));
    }
}
