//! Source of a store that reads a cache file.

use std::ops::Range;
use std::sync::Arc;

use afs_rpc::Stall;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::cache::{CacheIo, CacheWorker};
use crate::data::{FileData, Piece, SUMMED_MAX, Sums};
use crate::error::{Result, VenusError};
use crate::transfer::{Source, Stopped};

/// Why the bytes of a piece could not be sent.
pub(crate) enum SourceFailure {
    /// The file was truncated: the bytes do not exist any more.
    Cut,
    Cache(VenusError),
}

/// Results of the attempts of one store.
#[derive(Default)]
pub(crate) struct SourceReport {
    /// Checksums of what was sent, if there are passthrough writers.
    sums: Mutex<Sums>,
    failure: Mutex<Option<SourceFailure>>,
}

impl SourceReport {
    /// Checksums of what was sent.
    pub fn sums(&self) -> Sums {
        self.sums.lock().clone()
    }

    /// Why the last attempt ended, if the cause was local.
    pub fn failure(&self) -> Option<SourceFailure> {
        self.failure.lock().take()
    }
}

/// Source for one attempt of a store.
pub(crate) struct CacheSource<'a> {
    worker: &'a CacheWorker,
    data: &'a Arc<FileData>,
    /// Number of changes of the length when the ranges were chosen.
    cuts: u64,
    report: &'a SourceReport,
    /// Start and value of the current checksum.
    summed: (u64, u32),
}

impl<'a> CacheSource<'a> {
    pub fn new(
        worker: &'a CacheWorker,
        data: &'a Arc<FileData>,
        cuts: u64,
        report: &'a SourceReport,
    ) -> Self {
        CacheSource { worker, data, cuts, report, summed: (0, 0) }
    }

    fn stop(&self, failure: SourceFailure) -> Stopped {
        *self.report.failure.lock() = Some(failure);
        Stopped
    }

    /// Adds bytes to the checksum of a piece.
    fn sum(&mut self, piece: &Range<u64>, at: u64, bytes: &[u8]) {
        if at == piece.start {
            self.summed = (at, 0);
        }
        let (from, sum) = self.summed;
        let (end, sum) = (at + bytes.len() as u64, crc32c::crc32c_append(sum, bytes));
        self.summed.1 = sum;
        if end == piece.end || end - from >= SUMMED_MAX {
            self.summed = (end, 0);
            if self.data.content().uses.passthrough() > 0 {
                self.report.sums.lock().insert(from..end, sum);
            }
        }
    }
}

impl Source for CacheSource<'_> {
    fn read(&mut self, piece: &Piece, at: u64, len: usize) -> CacheIo<Bytes> {
        let ready = self.data.ready.lock().clone();
        if let Some(bytes) = ready.filter(|bytes| piece.range == (0..bytes.len() as u64)) {
            let part = bytes.get(at as usize..at as usize + len).map(|part| bytes.slice_ref(part));
            return CacheIo::done(Ok(part.unwrap_or_default()));
        }
        match self.data.file.read_now(at, len) {
            Some(bytes) => CacheIo::done(Ok(bytes)),
            None => {
                let file = self.data.file.clone();
                self.worker.run(Stall::Any, move || file.read_at(at, len))
            }
        }
    }

    fn check(
        &mut self,
        piece: &Piece,
        at: u64,
        len: usize,
        read: Result<Bytes>,
    ) -> std::result::Result<Bytes, Stopped> {
        let bytes = read.map_err(|error| self.stop(SourceFailure::Cache(error)))?;
        if bytes.len() != len || self.data.change_lock.cuts() != self.cuts {
            return Err(self.stop(SourceFailure::Cut));
        }
        self.sum(&piece.range, at, &bytes);
        Ok(bytes)
    }
}
