//! A small operation, repeated by a second thread while the first one stores or fetches.

use crate::error::{Context, LabError};
use crate::load::{Repeated, Times};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// A small operation of another program or client.
pub trait SmallOperation: Sync {
    /// Repeats it, one after the other, until `enough` is true of the number made.
    ///
    /// # Errors
    /// The first failure.
    fn repeat(&self, enough: &(dyn Fn(u32) -> bool + Sync)) -> Result<Repeated, LabError>;
}

/// The status of a file or directory, by lstat(2). A file system may answer it from a cache.
#[derive(Clone, Debug)]
pub struct StatOf(pub PathBuf);

impl SmallOperation for StatOf {
    fn repeat(&self, enough: &(dyn Fn(u32) -> bool + Sync)) -> Result<Repeated, LabError> {
        let (mut times, mut calls) = (Times::new()?, 0);
        while !enough(calls) {
            let begun = Instant::now();
            fs::symlink_metadata(&self.0).during("get the status of", &self.0)?;
            times.add(begun.elapsed());
            calls += 1;
        }
        Ok(Repeated { calls, latency: times.latency() })
    }
}

/// Ends the repetition when it is dropped, also by a panic of the work.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Does `work` in this thread, and meanwhile repeats the small operation in another one.
pub(super) fn beside<T>(
    other: Option<&dyn SmallOperation>,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, Option<Repeated>), LabError> {
    let Some(other) = other else { return Ok((work()?, None)) };
    let is_done = AtomicBool::new(false);
    afs_net::threads::room("lab", 1).map_err(LabError::Threads)?;
    thread::scope(|scope| {
        let asking = scope.spawn(|| other.repeat(&|_| is_done.load(Ordering::Acquire)));
        let done = Done(&is_done);
        let outcome = work();
        drop(done);
        let repeated = asking.join().unwrap_or(Err(LabError::Lost));
        Ok((outcome?, Some(repeated?)))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn it_is_repeated_until_it_is_enough() {
        let here = StatOf(".".into());
        assert_eq!(here.repeat(&|calls| calls == 7).unwrap().calls, 7);
        let missing = StatOf("no/such".into()).repeat(&|calls| calls == 1).unwrap_err();
        assert_eq!(missing.to_string(), "get the status of no/such: No such file or directory (os error 2)");
    }

    #[test]
    fn it_ends_with_the_work_and_both_may_fail() {
        let (here, missing) = (StatOf(".".into()), StatOf("no/such".into()));
        let (seven, repeated) = beside(Some(&here), || Ok(7)).unwrap();
        assert!(seven == 7 && repeated.is_some());
        assert!(beside::<()>(Some(&here), || Err(LabError::Lost)).is_err());
        let waits_for_the_other = || {
            let seen = StatOf(".".into());
            seen.repeat(&|calls| calls == 100)
        };
        let _ = beside(Some(&missing), waits_for_the_other);
        assert_eq!(beside(None, || Ok(7)).unwrap().0, 7);
    }
}
