//! Sink of a fetch that writes to a cache file.

use std::ops::Range;
use std::sync::Arc;

use afs_rpc::Stall;
use bytes::Bytes;

use crate::cache::{CacheIo, CacheWorker, Ranges, kind_of_failure};
use crate::data::FileData;
use crate::error::{ErrorKind, VenusError};
use crate::transfer::Sink;
use crate::transfer::hole_detector::{FileUpdate, HoleDetector};
use parking_lot::Mutex;

/// Result of a fetch.
pub(crate) struct Received {
    /// Number of bytes received, from the start of the range.
    pub length: u64,
    /// Those that were zeros and take no space.
    pub holes: Ranges,
}

/// Why the cache did not take what came, if that ended the last attempt of a fetch.
#[derive(Default)]
pub(crate) struct SinkReport(Arc<Mutex<Option<ErrorKind>>>);

impl SinkReport {
    pub fn failure(&self) -> Option<ErrorKind> {
        self.0.lock().take()
    }
}

/// Sink for one range of a file. The caller records the bytes as cached when all of them have arrived.
pub(crate) struct CacheSink<'a> {
    worker: &'a CacheWorker,
    data: &'a Arc<FileData>,
    range: Range<u64>,
    detector: HoleDetector,
    received: Received,
    report: &'a SinkReport,
}

impl<'a> CacheSink<'a> {
    pub fn new(
        worker: &'a CacheWorker,
        data: &'a Arc<FileData>,
        range: Range<u64>,
        report: &'a SinkReport,
    ) -> Self {
        let (detector, received) =
            (HoleDetector::at(range.start), Received { length: 0, holes: Ranges::new() });
        *report.0.lock() = None;
        CacheSink { worker, data, range, detector, received, report }
    }

    pub fn received(self) -> Received {
        self.received
    }

    fn apply(&mut self, updates: Vec<FileUpdate>) -> CacheIo<()> {
        if updates.is_empty() {
            return CacheIo::done(Ok(()));
        }
        for update in &updates {
            if let FileUpdate::Hole(hole) = update {
                self.received.holes.insert(hole.clone());
            }
        }
        self.data.forget_mark();
        let (data, failure) = (self.data.clone(), self.report.0.clone());
        self.worker.run(Stall::Any, move || {
            let done = updates.into_iter().try_for_each(|update| match update {
                FileUpdate::Write(at, bytes) => data.file.write_at(at, &bytes),
                // An earlier version may have left data there.
                FileUpdate::Hole(hole) => data.file.zero(hole.start, hole.end - hole.start),
            });
            *failure.lock() = done.as_ref().err().map(kind_of_failure);
            done
        })
    }
}

impl Sink for CacheSink<'_> {
    fn begin(&mut self, _: u64) {
        *self = CacheSink::new(self.worker, self.data, self.range.clone(), self.report);
    }

    fn put(&mut self, parts: Vec<Bytes>) -> CacheIo<()> {
        self.received.length += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if self.received.length > self.range.end - self.range.start {
            return CacheIo::done(Err(VenusError::new(ErrorKind::Protocol, "FetchData")));
        }
        let updates = self.detector.take(parts);
        self.apply(updates)
    }

    fn end(&mut self) -> CacheIo<()> {
        let last = self.detector.end().into_iter().collect();
        self.apply(last)
    }
}
