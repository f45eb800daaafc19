//! Signed addresses of chunks: the key and range that follow from a chunk's id, signed by the store's credentials.

use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

use afs_drive::{Addressed, BoxFuture, ChunkAddress, ChunkRef, MAX_CHUNK_LEN};

use crate::drive::BucketDrive;
use crate::names::PackId;
use crate::pack::{RECORD_LEN, record_end};
use crate::packs::Place;

impl Addressed for BucketDrive {
    fn is_clear(&self) -> bool {
        self.0.requests.bucket().is_clear()
    }

    fn has(&self, chunk: ChunkRef) -> bool {
        place(chunk).is_some() && matches!(self.0.packs.lock().find(chunk), Place::Store)
    }

    fn address(&self, chunk: ChunkRef, seconds: u32) -> BoxFuture<Option<ChunkAddress>> {
        let Some((key, range)) = place(chunk).filter(|_| self.has(chunk)) else {
            return Box::pin(async { None });
        };
        let at = UNIX_EPOCH + Duration::from_secs(self.0.env.wall().secs);
        let signed = self.0.requests.bucket().signed_address(&key, range.clone(), at, seconds);
        Box::pin(async move {
            match signed.await {
                Ok(address) => Some(ChunkAddress { address, range }),
                Err(error) => {
                    tracing::debug!(%error, "no address of a chunk was signed");
                    None
                }
            }
        })
    }
}

/// The object with a chunk, and its bytes there, without the record before it: not a byte of another chunk.
fn place(chunk: ChunkRef) -> Option<(String, Range<u64>)> {
    let (_, offset) = chunk.id.parts();
    let offset =
        u32::try_from(offset).ok().filter(|_| (1..=MAX_CHUNK_LEN).contains(&(chunk.len as usize)))?;
    let range = u64::from(offset) + RECORD_LEN as u64..record_end(offset, chunk.len);
    Some((PackId::of(chunk.id).key(), range))
}
