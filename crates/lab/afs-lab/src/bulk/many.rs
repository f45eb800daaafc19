//! Many files at a time: several threads store them, and read them where nothing is cached; what other processes use meanwhile, and
//! which way the bytes take.

use super::cache::{Moved, Way};
use super::pattern::{BLOCK_LEN, Pattern};
use super::place::Place;
use super::report::Operation;
use super::transfer::{Contents, fetch, store};
use crate::error::{Context, LabError};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

/// Most files.
pub const FILES_MAX: u32 = 100_000;
/// Most threads.
pub const AT_ONCE_MAX: u32 = 64;

/// A load to run. Each request is one file: created, written and closed, or opened, read and closed.
pub struct Many<'a> {
    /// A directory, in which one for the files is created and removed again.
    pub place: &'a Place,
    /// Number of the files, 1 to [`FILES_MAX`].
    pub files: u32,
    /// Bytes of each, at least 1.
    pub bytes: u64,
    /// Threads, 1 to [`AT_ONCE_MAX`].
    pub at_once: u32,
    /// Called with bytes as they are moved.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// Ends the load at the next block when it is true.
    pub stop: &'a AtomicBool,
}

/// What all requests of a kind took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ManyTaken {
    /// [`Operation::Store`] or [`Operation::ColdFetch`].
    pub operation: Operation,
    /// Requests, all of which succeeded.
    pub requests: u32,
    /// Bytes of all.
    pub bytes: u64,
    /// From the first to the end of the last.
    pub seconds: f64,
    /// Processor time of the place's processes meanwhile, all together.
    pub process_seconds: f64,
    /// What the place moved; `None` if it does not count.
    pub moved: Option<Moved>,
}

impl Many<'_> {
    /// Stores all files, then reads all of them, past a disk cache.
    ///
    /// # Errors
    /// The first system call that failed, contents that differ, files that are read from a cache, or [`Many::stop`]. What was written is removed
    /// in every case.
    pub fn run(&self) -> Result<[ManyTaken; 2], LabError> {
        for (what, got, max) in [
            ("the number of files", self.files, FILES_MAX),
            ("the number of threads", self.at_once, AT_ONCE_MAX),
        ] {
            if !(1..=max).contains(&got) {
                return Err(LabError::OutOfRange { what, got, min: 1, max });
            }
        }
        let home = self.place.directory.join(format!("andrew-bulk-{}", std::process::id()));
        fs::create_dir(&home).during("make the directory", &home)?;
        let taken = self.measure(&home);
        let removed = fs::remove_dir_all(&home).during("remove", &home);
        let taken = taken?;
        removed.map(|()| taken)
    }

    fn measure(&self, home: &Path) -> Result<[ManyTaken; 2], LabError> {
        let pattern = Pattern::new();
        let path = |number: u32| home.join(format!("file-{number}"));
        let contents =
            |number: u32| Contents { pattern: &pattern, number: u64::from(number), bytes: self.bytes };
        let stored = self.taken(Operation::Store, |number, _| {
            store(&path(number), contents(number), &|bytes| self.tick(bytes)).map(drop)
        })?;
        let ways = self.place.cache.ways();
        let way = if ways.contains(&Way::Bypassed) { Way::Bypassed } else { Way::Cached };
        for number in 0..self.files {
            self.place.cache.make_cold(&path(number), way)?;
        }
        let fetched = self.taken(Operation::ColdFetch, |number, buffer| {
            fetch(&path(number), contents(number), buffer, &|bytes| self.tick(bytes)).map(drop)
        })?;
        if fetched.moved.is_some_and(|moved| moved.fetched_bytes < fetched.bytes) {
            return Err(LabError::NotCold { path: home.to_owned() });
        }
        Ok([stored, fetched])
    }

    fn taken(
        &self,
        operation: Operation,
        request: impl Fn(u32, &mut [u8]) -> Result<(), LabError> + Sync,
    ) -> Result<ManyTaken, LabError> {
        let times = || Ok::<f64, LabError>(self.place.times()?.iter().map(|time| time.as_secs_f64()).sum());
        let (moved, before, began) = (self.place.cache.moved(), times()?, Instant::now());
        self.all(&request)?;
        let seconds = began.elapsed().as_secs_f64();
        let process_seconds = times()? - before;
        let moved = self.place.cache.moved().zip(moved).map(|(after, before)| after.since(before));
        let bytes = u64::from(self.files) * self.bytes;
        Ok(ManyTaken { operation, requests: self.files, bytes, seconds, process_seconds, moved })
    }

    /// Each thread takes the next file until there is none; after an error no thread begins another.
    fn all(
        &self,
        request: &(impl Fn(u32, &mut [u8]) -> Result<(), LabError> + Sync),
    ) -> Result<(), LabError> {
        let next = AtomicU32::new(0);
        let work = || {
            let mut buffer = vec![0; BLOCK_LEN];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.files {
                    return Ok(());
                }
                if let Err(error) = request(number, &mut buffer) {
                    next.store(self.files, Ordering::Relaxed);
                    return Err(error);
                }
            }
        };
        afs_net::threads::room("lab", self.at_once as usize).map_err(LabError::Threads)?;
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.at_once).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().map(|one| one.join().unwrap_or(Err(LabError::Lost)));
            done.collect::<Vec<Result<(), LabError>>>().into_iter().collect()
        })
    }

    fn tick(&self, bytes: u64) -> Result<(), LabError> {
        (self.progress)(bytes);
        if self.stop.load(Ordering::Acquire) { Err(LabError::Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::super::cache::{Cold, KernelCache};
    use super::*;
    use crate::bulk::Cache;
    use std::sync::atomic::AtomicU64;

    fn place(directory: &Path, cache: Box<dyn Cache>) -> Place {
        let own = crate::bulk::Process::new("server".into(), std::process::id()).unwrap();
        Place { directory: directory.to_owned(), cache, processes: vec![own] }
    }

    fn run(
        place: &Place,
        files: u32,
        progress: &(dyn Fn(u64) + Sync),
        stop: bool,
    ) -> Result<[ManyTaken; 2], LabError> {
        Many { place, files, bytes: 3 << 10, at_once: 3, progress, stop: &AtomicBool::new(stop) }.run()
    }

    #[test]
    fn every_file_is_stored_and_read_and_none_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (here, moved) =
            (place(folder.path(), Box::new(KernelCache { is_other_client: false })), AtomicU64::new(0));
        let progress = |bytes| {
            moved.fetch_add(bytes, Ordering::Relaxed);
        };
        let [stored, fetched] = run(&here, 10, &progress, false).unwrap();
        assert_eq!((stored.operation, fetched.operation), (Operation::Store, Operation::ColdFetch));
        assert_eq!((stored.requests, stored.bytes, fetched.bytes), (10, 30 << 10, 30 << 10));
        assert_eq!(moved.load(Ordering::Relaxed), 60 << 10);
        assert!(stored.process_seconds > 0.0 && stored.moved.is_none());
        assert!(matches!(run(&here, 10, &progress, true), Err(LabError::Stopped)));
        assert!(matches!(run(&here, 0, &progress, false), Err(LabError::OutOfRange { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// A cache that has everything: nothing is fetched.
    struct Full;

    impl Cache for Full {
        fn ways(&self) -> &[Way] {
            &[Way::Cached]
        }

        fn make_cold(&self, _: &Path, _: Way) -> Result<Cold, LabError> {
            Ok(Cold::Flushed)
        }

        fn moved(&self) -> Option<Moved> {
            Some(Moved::default())
        }
    }

    #[test]
    fn what_was_read_from_a_cache_is_no_measurement() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = run(&place(folder.path(), Box::new(Full)), 2, &|_| (), false);
        assert!(matches!(outcome, Err(LabError::NotCold { .. })), "{outcome:?}");
    }
}
