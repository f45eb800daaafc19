//! Copies of chunks on other drives: their rows, and reads that take the next copy where a drive fails.
//!
//! A copy belongs to a chunk, not to a reference: references name one chunk, and a row of `volume.copies` tells where its bytes are
//! besides. So clones share copies, and nothing of a file changes when a copy is made or lost.

use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_drive::{BoxFuture, ChunkId, ChunkRef, Drive, DriveError, DriveId};
use afs_env::EnvExt;
use afs_kv::{Row, Txn};
use bytes::Bytes;

use crate::chunks;
use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::error::VolumeError;
use crate::key::{self, COPIES, DRIVE_CHUNKS};
use crate::located::LocatedChunk;
use crate::rows::{Rows, index_damaged};
use crate::store::Store;
use crate::sweep;

/// Most places of a chunk's bytes: the chunk that references name, and two copies of it.
pub const COPIES_MAX: usize = 3;
/// Marks of the own row of a copy, after length and sum: in use, or to be discarded.
const COPY: u8 = 2;
const FREED_COPY: u8 = 3;
/// Length of that row: the chunk it is a copy of follows the mark.
const OWN_ROW_LEN: usize = 37;
/// Copies that one transaction releases.
const RELEASED_MAX: usize = 256;

/// The copies of a chunk.
pub(crate) fn of(rows: &impl Rows, at: LocatedChunk) -> Result<Vec<LocatedChunk>, VolumeError> {
    match rows.get_row(COPIES, &key::drive_chunk(at.drive, at.chunk.id))? {
        Some(row) => decode(at, row).map_err(|_| index_damaged("a row of copies cannot be decoded")),
        None => Ok(Vec::new()),
    }
}

/// Replaces the list of a chunk's copies. Those that are no longer in it are not freed.
pub(crate) fn put(txn: &mut Txn<'_>, at: LocatedChunk, copies: &[LocatedChunk]) -> Result<(), VolumeError> {
    let key = key::drive_chunk(at.drive, at.chunk.id);
    if copies.is_empty() {
        txn.delete(COPIES, &key);
        return Ok(());
    }
    let mut row = Vec::with_capacity(20 * copies.len());
    for copy in copies {
        let own = key::drive_chunk(copy.drive, copy.chunk.id);
        row.extend_from_slice(&own);
        txn.put(DRIVE_CHUNKS, &own, own_row(at, COPY));
    }
    txn.put(COPIES, &key, row);
    Ok(())
}

/// Removes and returns the list of a chunk's copies, which stay on their drives.
pub(crate) fn take(txn: &mut Txn<'_>, at: LocatedChunk) -> Result<Vec<LocatedChunk>, VolumeError> {
    let copies = of(txn, at)?;
    if !copies.is_empty() {
        txn.delete(COPIES, &key::drive_chunk(at.drive, at.chunk.id));
    }
    Ok(copies)
}

/// Gives the copies of a chunk to the one that takes its place. A copy on the drive of that one is freed.
pub(crate) fn hand_over(txn: &mut Txn<'_>, old: LocatedChunk, new: LocatedChunk) -> Result<(), VolumeError> {
    let (kept, useless): (Vec<_>, _) = take(txn, old)?.into_iter().partition(|copy| copy.drive != new.drive);
    useless.into_iter().for_each(|copy| release(txn, copy, new));
    put(txn, new, &kept)
}

/// Queues a copy for discard.
pub(crate) fn release(txn: &mut Txn<'_>, copy: LocatedChunk, of: LocatedChunk) {
    let key = key::drive_chunk(copy.drive, copy.chunk.id);
    txn.put(DRIVE_CHUNKS, &key, own_row(of, FREED_COPY));
    chunks::free(txn, copy);
}

/// Releases copies on a drive, some of them, from behind a key of the table of chunks on. Returns the key to continue behind.
pub(crate) fn release_on(
    txn: &mut Txn<'_>,
    drive: DriveId,
    after: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, VolumeError> {
    let [first, last] = [ChunkId::MIN, ChunkId::MAX].map(|id| key::drive_chunk(drive, id));
    let first = after.as_deref().map_or(Bound::Included(&first[..]), Bound::Excluded);
    let rows = txn.range(DRIVE_CHUNKS, (first, Bound::Included(&last[..])), false).take(RELEASED_MAX);
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    for (key, row) in &rows {
        if row.len() == OWN_ROW_LEN && row.get(16) == Some(&COPY) {
            release_one(txn, drive, (key.clone(), row.clone()))?;
        }
    }
    Ok(rows.last().filter(|_| rows.len() == RELEASED_MAX).map(|(key, _)| key.to_vec()))
}

fn release_one(txn: &mut Txn<'_>, drive: DriveId, row: Row) -> Result<(), VolumeError> {
    let bad = || index_damaged("the row of a copy cannot be decoded");
    let of_key: [u8; 20] = row.1.get(17..).and_then(|key| key.try_into().ok()).ok_or_else(bad)?;
    let copy = LocatedChunk { drive, chunk: sweep::chunk_of_row(row)? };
    let (of_drive, id) = of_key.split_first_chunk::<4>().ok_or_else(bad)?;
    let id = id.try_into().map(ChunkId::from_bytes).map_err(|_| bad())?;
    let chunk =
        LocatedChunk { drive: DriveId(u32::from_be_bytes(*of_drive)), chunk: ChunkRef { id, ..copy.chunk } };
    let others: Vec<_> = of(txn, chunk)?.into_iter().filter(|other| *other != copy).collect();
    put(txn, chunk, &others)?;
    release(txn, copy, chunk);
    Ok(())
}

fn own_row(of: LocatedChunk, mark: u8) -> Vec<u8> {
    let mut row = Vec::with_capacity(OWN_ROW_LEN);
    row.put_u64(0);
    row.put_u32(of.chunk.len);
    row.put_u32(of.chunk.crc);
    row.put_u8(mark);
    row.extend_from_slice(&key::drive_chunk(of.drive, of.chunk.id));
    row
}

fn decode(at: LocatedChunk, row: Bytes) -> Decoded<Vec<LocatedChunk>> {
    let mut fields = Fields::new(row);
    let mut copies = Vec::new();
    while !fields.is_empty() {
        if copies.len() + 1 == COPIES_MAX {
            return Err(BadRecord);
        }
        let drive = DriveId(fields.u32()?);
        let id: [u8; 16] = fields.bytes(16)?.as_ref().try_into().map_err(|_| BadRecord)?;
        let chunk = ChunkRef { id: ChunkId::from_bytes(id), ..at.chunk };
        copies.push(LocatedChunk { drive, chunk });
    }
    Ok(copies)
}

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
        let copies = self.env.run_blocking(move || of(&kv.snapshot(), at)).await;
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
