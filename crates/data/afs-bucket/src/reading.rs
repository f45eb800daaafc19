//! Reading of chunks: one ranged request for each, verified with the checksum of its reference.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use afs_drive::{ChunkRef, DriveError, MAX_CHUNK_LEN};
use afs_env::sync::oneshot;
use bytes::Bytes;

use crate::drive::Inner;
use crate::names::PackId;
use crate::pack::{record_end, records};
use crate::packs::Place;
use crate::requests::Failed;

/// Chunks being fetched, with the reads that wait for the one that fetches.
pub(crate) type Fetching = BTreeMap<ChunkRef, Vec<oneshot::Sender<Result<Bytes, DriveError>>>>;

/// A chunk shorter than this is fetched with its successors, which were written with it and are likely to be read with it.
const SMALL: u32 = 64 << 10;
/// Bytes that are fetched for a small chunk: about as long on their way as a request takes without any.
const WITH_SUCCESSORS: u64 = 256 << 10;
/// Wrong bytes are fetched once more: they may have been damaged on their way.
const FETCHES: usize = 2;

impl Inner {
    pub(crate) async fn read(&self, chunk: ChunkRef, range: Range<u32>) -> Result<Bytes, DriveError> {
        if range.start > range.end || range.end > chunk.len {
            return Err(DriveError::Length { len: range.end.into() });
        }
        let part = range.start as usize..range.end as usize;
        let place = self.packs.lock().find(chunk);
        match place {
            Place::Dead => return Err(DriveError::Damaged { chunk: chunk.id }),
            Place::Memory(data) => return Ok(data.slice(part)),
            Place::Store => {}
        }
        if let Some(data) = self.cache.lock().get(chunk) {
            return Ok(data.slice(part));
        }
        let data = self.fetch_once(chunk).await?;
        if part.len() < data.len() {
            self.cache.lock().insert(chunk, data.clone());
        }
        Ok(data.slice(part))
    }

    /// Fetches a chunk, or waits for the read that does.
    async fn fetch_once(&self, chunk: ChunkRef) -> Result<Bytes, DriveError> {
        let other = {
            let mut fetching = self.fetching.lock();
            let waiting = fetching.get_mut(&chunk).map(|waiting| {
                let (sender, receiver) = oneshot::channel();
                waiting.push(sender);
                receiver
            });
            if waiting.is_none() {
                fetching.insert(chunk, Vec::new());
            }
            waiting
        };
        if let Some(other) = other {
            return other.await.unwrap_or(Err(DriveError::Closed));
        }
        let result = self.fetch(chunk).await;
        let waiting = self.fetching.lock().remove(&chunk).unwrap_or_default();
        for waiter in waiting {
            _ = waiter.send(result.clone());
        }
        result
    }

    async fn fetch(&self, chunk: ChunkRef) -> Result<Bytes, DriveError> {
        let damaged = DriveError::Damaged { chunk: chunk.id };
        let (pack, (_, offset)) = (PackId::of(chunk.id), chunk.id.parts());
        let Some(offset) = u32::try_from(offset).ok().filter(|_| chunk.len as usize <= MAX_CHUNK_LEN) else {
            return Err(damaged);
        };
        let least = record_end(offset, chunk.len) - u64::from(offset);
        let wanted = if chunk.len < SMALL { WITH_SUCCESSORS } else { least };
        let range = u64::from(offset)..u64::from(offset) + wanted;
        for _ in 0..FETCHES {
            let part = self.requests.get_least(&pack.key(), range.clone(), least).await;
            let part = part.map_err(|failed| unreadable(chunk, failed))?;
            if let Some(data) = self.take(chunk, records(pack, offset, &part)) {
                return Ok(data);
            }
        }
        Err(damaged)
    }

    /// The bytes of a chunk, if it is the first of those found; its successors go to the cache.
    fn take(&self, chunk: ChunkRef, found: Vec<(ChunkRef, Bytes)>) -> Option<Bytes> {
        let mut found = found.into_iter();
        let (_, data) = found.next().filter(|(first, _)| *first == chunk)?;
        if chunk.len >= SMALL {
            return Some(data);
        }
        // Copied, so that a small chunk does not keep all that was fetched with it.
        let mut cache = self.cache.lock();
        for (successor, data) in found {
            cache.insert(successor, Bytes::copy_from_slice(&data));
        }
        Some(Bytes::copy_from_slice(&data))
    }
}

/// A store that is away says nothing of the chunk.
fn unreadable(chunk: ChunkRef, failed: Failed) -> DriveError {
    let away = failed.away();
    away.unwrap_or_else(|| DriveError::Unreadable {
        chunk: chunk.id,
        error: Arc::new(io::Error::from(failed)),
    })
}
