//! The write-ahead log: two blobs used in turn, each overwritten from its start.
//!
//! While one blob is being written, the other holds the batches that the running checkpoint is moving into
//! the base. Overwriting in place keeps the file's blocks, so that a sync need not write the file system's own records.

use std::io;
use std::sync::Arc;

use crate::error::KvError;
use crate::medium::{Blob, Medium};

/// Invariant: everything in the blob that is not active has a sequence number that the base or the
/// frozen memory table holds; the active blob is valid up to `offset`.
pub(crate) struct Log {
    blobs: [Arc<dyn Blob>; 2],
    allocated: [u64; 2],
    active: usize,
    offset: u64,
    limit: u64,
}

/// Why a record is not in the log.
pub(crate) enum AppendError {
    /// It was not written; the log goes on as if it had never been tried.
    Refused(KvError),
    /// It may or may not be durable.
    Unknown(io::Error),
}

impl Log {
    pub(crate) fn open(medium: &dyn Medium, limit: u64) -> io::Result<Self> {
        let blobs = [medium.open("log.0")?, medium.open("log.1")?];
        let allocated = [blobs[0].len()?, blobs[1].len()?];
        Ok(Self { blobs, allocated, active: 0, offset: 0, limit })
    }

    pub(crate) fn blobs(&self) -> &[Arc<dyn Blob>; 2] {
        &self.blobs
    }

    pub(crate) fn is_full(&self) -> bool {
        self.offset >= self.limit
    }

    /// Says that both blobs hold batches still needed.
    pub(crate) fn mark_full(&mut self) {
        self.offset = self.offset.max(self.limit);
    }

    /// Goes on in the other blob.
    pub(crate) fn rotate(&mut self) {
        self.active = 1 - self.active;
        self.offset = 0;
    }

    /// Writes a record and returns when it is durable.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<(), AppendError> {
        let end = self.offset + record.len() as u64;
        self.allocate(end).map_err(|error| AppendError::Refused(error.into()))?;
        let blob = &self.blobs[self.active];
        blob.write_at(self.offset, record).map_err(|error| AppendError::Refused(error.into()))?;
        blob.sync().map_err(AppendError::Unknown)?;
        self.offset = end;
        Ok(())
    }

    /// Grows the blob in steps, so that most syncs find its length and blocks settled.
    fn allocate(&mut self, end: u64) -> io::Result<()> {
        let blob = &self.blobs[self.active];
        let allocated = &mut self.allocated[self.active];
        while *allocated < end {
            let step = STEP - *allocated % STEP;
            blob.write_at(*allocated, &ZEROS[..step as usize])?;
            *allocated += step;
        }
        Ok(())
    }
}

const STEP: u64 = 256 << 10;
static ZEROS: [u8; STEP as usize] = [0; STEP as usize];
