//! Reads of a chunk from its drive, or, where that fails or is not there, from a copy.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_drive::{BoxFuture, Drive, DriveError, DriveId};
use afs_env::EnvExt;
use bytes::Bytes;

use crate::copies;
use crate::error::VolumeError;
use crate::located::LocatedChunk;
use crate::store::Store;

impl Store {
    /// Starts to read a part of a chunk. If its drive fails, or is not there, a copy is read.
    ///
    /// # Errors
    /// `UnknownDrive`; the future has the error of the chunk's own drive if no copy can be read.
    pub(crate) fn read(
        self: &Arc<Self>,
        at: LocatedChunk,
        range: Range<u32>,
    ) -> Result<BoxFuture<Result<Bytes, DriveError>>, VolumeError> {
        if !self.has_copies.load(Ordering::Relaxed) {
            return self.drives.read(at, range);
        }
        let first = match self.is_away(at.drive) {
            true => None,
            false => self.drives.read(at, range.clone()).ok(),
        };
        let store = self.clone();
        Ok(Box::pin(async move { store.read_any(at, range, first).await }))
    }

    async fn read_any(
        self: Arc<Self>,
        at: LocatedChunk,
        range: Range<u32>,
        first: Option<BoxFuture<Result<Bytes, DriveError>>>,
    ) -> Result<Bytes, DriveError> {
        let failed = match first {
            Some(read) => match read.await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => Some(error),
            },
            None => None,
        };
        failed.iter().for_each(|error| self.note_failure(at.drive, error));
        for copy in self.copies_of(at).await {
            let Ok(read) = self.drives.read(copy, range.clone()) else { continue };
            match read.await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => self.note_failure(copy.drive, &error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => self.read_away(at, range).await,
        }
    }

    /// The last resort: a drive that was away a moment ago.
    async fn read_away(&self, at: LocatedChunk, range: Range<u32>) -> Result<Bytes, DriveError> {
        let unknown = |error: VolumeError| DriveError::Io(Arc::new(std::io::Error::other(error.to_string())));
        let read = self.drives.read(at, range).map_err(unknown)?.await;
        self.drives.away.lock().remove(&at.drive);
        read.inspect_err(|error| self.note_failure(at.drive, error))
    }

    async fn copies_of(self: &Arc<Self>, at: LocatedChunk) -> Vec<LocatedChunk> {
        let kv = self.kv.clone();
        let copies = self.env.run_blocking(move || copies::of(&kv.snapshot(), at)).await;
        match copies {
            Ok(Ok(copies)) => copies,
            Ok(Err(error)) => {
                tracing::error!(%error, "the copies of a chunk cannot be told");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Whether a drive did not answer a moment ago, so that copies are read first.
    pub(crate) fn is_away(&self, drive: DriveId) -> bool {
        let since = self.drives.away.lock().get(&drive).copied();
        since.is_some_and(|since| self.env.now().saturating_since(since) < AWAY)
    }

    /// Records that a drive is away.
    pub(crate) fn note_failure(&self, drive: DriveId, error: &DriveError) {
        if matches!(error, DriveError::Away { .. }) {
            self.drives.away.lock().insert(drive, self.env.now());
        }
    }

    /// Has a drive used at once when it is there again, and what it missed made good.
    pub(crate) fn use_when_back(self: &Arc<Self>, id: DriveId, drive: &dyn Drive) {
        let store = Arc::downgrade(self);
        drive.on_return(Arc::new(move || {
            let Some(store) = store.upgrade() else { return };
            if store.drives.away.lock().remove(&id).is_some() {
                store.wake_rebuild();
            }
            store.retry_discards();
        }));
    }
}

/// How long a drive that did not answer is left alone, unless it is known before that it is back: longer than an attempt takes.
const AWAY: std::time::Duration = std::time::Duration::from_secs(60);
