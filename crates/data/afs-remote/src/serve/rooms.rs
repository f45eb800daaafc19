//! Requests of clients that stage chunks, and the file server's claims.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_datapath::capability::{ClaimId, StagingTag, StoreNumber};
use afs_datapath::frame::{ChunkReply, Content};
use afs_datapath::session::{Failure, Room, Taken};
use afs_drive::{ChunkRef, Drive, SegmentDrive, SegmentStore};

use super::requests::{chunks_of, gather, gather_from};
use super::stores::Inner;

/// A store of the drive, with its number.
pub(super) type Numbered<'a, S> = (StoreNumber, &'a SegmentDrive<S>);

impl<S: SegmentStore> Inner<S> {
    /// Takes the bytes of a chunk into a room; of one that was commanded, those alone.
    pub(super) async fn stage(
        self: &Arc<Self>,
        (store, drive): Numbered<'_, S>,
        (room, peer): (&Room, std::net::IpAddr),
        (length, commanded): (u32, Option<Content>),
        mut bytes: Taken,
    ) -> Result<ChunkReply, Failure> {
        let reserved = self.staging.reserve(store, room, length, self.usage(drive))?;
        let _arriving = self.staging.arrive(peer).await?;
        let data = gather_from(&mut bytes, length as usize).await?;
        if commanded.is_some_and(|content| content != Content::of(&data)) {
            return Err(Failure::Damaged);
        }
        let chunk = self.put((store, drive), data, bytes).await?;
        let kept = reserved.keep(chunk, self.env.now());
        if kept.is_first {
            self.watch();
        }
        if kept.must_flush {
            self.sync(store, drive, chunk.id).await?;
        }
        Ok(ChunkReply::Written { chunk, usage: self.usage(drive) })
    }

    /// Frees what a client gives up.
    pub(super) async fn forget(
        &self,
        (store, drive): Numbered<'_, S>,
        room: &Room,
    ) -> Result<ChunkReply, Failure> {
        let chunks = self.staging.take_room(store, room.tag);
        drive.discard(chunks).await.map_err(|error| self.failure(store, &error))?;
        Ok(ChunkReply::Done)
    }

    /// Makes staged chunks durable, and gives them to the file server.
    pub(super) async fn claim(
        &self,
        (store, drive): Numbered<'_, S>,
        (claim, tag): (ClaimId, StagingTag),
        bytes: Taken,
    ) -> Result<ChunkReply, Failure> {
        let chunks = chunks_of(&gather(bytes, 0).await?);
        if self.staging.is_claimed(store, claim, tag, &chunks)? {
            return Ok(ChunkReply::Done);
        }
        let oldest = chunks.iter().map(|chunk| chunk.id).min().ok_or(Failure::Invalid)?;
        self.sync(store, drive, oldest).await?;
        self.staging.claim(store, claim, tag, &chunks)?;
        self.counts.written.fetch_add(chunks.len() as u64, Ordering::Relaxed);
        Ok(ChunkReply::Done)
    }

    /// Discards what nobody claims, until nothing is staged.
    fn watch(self: &Arc<Self>) {
        let (env, drive) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            while let Some(drive) = drive.upgrade() {
                let (overdue, next) = drive.staging.take_overdue(env.now());
                for (store, chunks) in overdue {
                    drive.discard_overdue(store, chunks).await;
                }
                drop(drive);
                match next {
                    Some(next) => env.sleep_until(next).await,
                    None => return,
                }
            }
        }));
    }

    async fn discard_overdue(&self, store: StoreNumber, chunks: Vec<ChunkRef>) {
        tracing::info!(store = store.0, chunks = chunks.len(), "chunks were staged and never claimed");
        let Ok(drive) = self.store(store).await else { return };
        if let Err(error) = drive.discard(chunks).await {
            tracing::error!(store = store.0, %error, "staged chunks cannot be freed; the next sweep frees them");
        }
    }
}
