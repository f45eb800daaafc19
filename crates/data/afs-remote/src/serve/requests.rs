//! Requests of a file server for the chunks of its stores, and of clients that it sends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_datapath::capability::{KeyEpoch, Secret, StoreNumber, TicketId};
use afs_datapath::frame::{ChunkReply, ChunkRequest, DriveStatus};
use afs_datapath::session::{ChunkCall, Chunks, Failure, Objects, Opened, ReadRequest, StoreRequest, Taken};
use afs_drive::{ChunkId, ChunkRef, Drive, DriveError, SegmentDrive, SegmentStore};
use afs_env::sync::OwnedSemaphorePermit;
use afs_env::{BoxFuture, EnvExt};
use bytes::{Bytes, BytesMut};

use super::replies;
use super::rooms::Numbered;
use super::stores::{ChunkStores, Inner};

/// The drive has no files.
impl<S: SegmentStore> Objects for ChunkStores<S> {
    fn read(&self, _: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn store(&self, _: StoreRequest, _: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }

    fn chunks(&self) -> Option<&dyn Chunks> {
        Some(self)
    }
}

impl<S: SegmentStore> Chunks for ChunkStores<S> {
    fn perform(&self, call: ChunkCall, bytes: Taken) -> BoxFuture<'static, Result<ChunkReply, Failure>> {
        let stores = self.0.clone();
        Box::pin(async move { stores.perform(call, bytes).await })
    }

    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>> {
        let stores = self.0.clone();
        Box::pin(async move { stores.open(call).await })
    }

    fn adopt(&self, epoch: KeyEpoch, key: Secret) -> BoxFuture<'static, Result<(), Failure>> {
        let stores = self.0.clone();
        Box::pin(async move { stores.adopt(epoch, key).await })
    }
}

impl<S: SegmentStore> Inner<S> {
    async fn perform(self: &Arc<Self>, call: ChunkCall, bytes: Taken) -> Result<ChunkReply, Failure> {
        let drive = self.store_for(&call).await?;
        let failed = |error: DriveError| self.failure(call.store, &error);
        match call.what {
            ChunkRequest::Begin { after } => Ok(self.begin(&drive, after)),
            ChunkRequest::Write { length } => self.write(call.store, &drive, length, bytes).await,
            ChunkRequest::Sync { oldest } => self.sync(call.store, &drive, oldest).await,
            ChunkRequest::Discard { chunks } => {
                chunks.iter().for_each(|chunk| self.staging.drop_range(call.store, chunk.id, chunk.id));
                drive.discard(chunks).await.map_err(failed)?;
                Ok(ChunkReply::Done)
            }
            ChunkRequest::Sweep { first, last, .. } => {
                let live = chunks_of(&gather(bytes, 0).await?);
                self.staging.drop_range(call.store, first, last);
                let report = drive.sweep_range((first, last), live).await.map_err(failed)?;
                Ok(replies::swept(&report))
            }
            ChunkRequest::Status => Ok(ChunkReply::Status(self.status(&drive))),
            ChunkRequest::Read { .. } | ChunkRequest::Ranges { .. } => Err(Failure::Invalid),
            // The connection has done what there is to do.
            ChunkRequest::Revoke { .. }
            | ChunkRequest::RevokeAll
            | ChunkRequest::Deliver { .. }
            | ChunkRequest::Receive { .. }
            | ChunkRequest::Collect { .. }
            | ChunkRequest::ReadListed { .. } => Err(Failure::Invalid),
            ChunkRequest::Stage { length } => {
                let room = (call.room.as_ref().ok_or(Failure::Invalid)?, call.peer.ip());
                self.stage((call.store, &drive), room, (length, None), bytes).await
            }
            ChunkRequest::Send { content, .. } => {
                let room = (call.room.as_ref().ok_or(Failure::Invalid)?, call.peer.ip());
                self.stage((call.store, &drive), room, (content.length, Some(content)), bytes).await
            }
            ChunkRequest::Forget => {
                self.forget((call.store, &drive), call.room.as_ref().ok_or(Failure::Invalid)?).await
            }
            ChunkRequest::Claim { claim, tag, .. } => {
                self.claim((call.store, &drive), (claim, tag), bytes).await
            }
            ChunkRequest::Adopt { .. } => Err(Failure::Invalid),
        }
    }

    /// The store of a call. Who joins the drive uses it with the key that he gives, and not with the secret of the join key.
    async fn store_for(&self, call: &ChunkCall) -> Result<SegmentDrive<S>, Failure> {
        match call.epoch {
            KeyEpoch::JOIN => Err(Failure::Unavailable),
            _ => self.store(call.store).await,
        }
    }

    async fn adopt(&self, epoch: KeyEpoch, key: Secret) -> Result<(), Failure> {
        let adopt = self.adopt.clone();
        let kept = self.env.run_blocking(move || adopt(epoch, &key)).await.unwrap_or(false);
        if !kept {
            return Err(Failure::Io);
        }
        tracing::info!(%epoch, "the file server has given this drive a key");
        Ok(())
    }

    async fn open(&self, call: ChunkCall) -> Result<Opened, Failure> {
        let drive = self.store_for(&call).await?;
        let failed = |error: DriveError| self.failure(call.store, &error);
        match call.what {
            ChunkRequest::Read { chunk, start, end, .. } => {
                let room = self.room(chunk.len).await?;
                self.counts.read.fetch_add(1, Ordering::Relaxed);
                let read = drive.read_pieces(chunk, start..end).await;
                if let Err(error @ (DriveError::Damaged { .. } | DriveError::Unreadable { .. })) = &read {
                    self.counts.damaged.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(store = call.store.0, %error, "a chunk cannot be given");
                }
                Ok(replies::pieces(chunk, read.map_err(failed)?, room))
            }
            ChunkRequest::Ranges { before, .. } => {
                Ok(replies::ranges(&drive.ranges_before(before).await.map_err(failed)?))
            }
            _ => Err(Failure::Invalid),
        }
    }

    fn begin(&self, drive: &SegmentDrive<S>, after: ChunkId) -> ChunkReply {
        drive.continue_after(after);
        ChunkReply::Begun { run: self.run.0, mark: drive.mark(), usage: self.usage(drive) }
    }

    async fn write(
        &self,
        number: StoreNumber,
        drive: &SegmentDrive<S>,
        length: u32,
        mut bytes: Taken,
    ) -> Result<ChunkReply, Failure> {
        let _room = self.room(length).await?;
        let data = gather_from(&mut bytes, length as usize).await?;
        let chunk = self.put((number, drive), data, bytes).await?;
        self.counts.written.fetch_add(1, Ordering::Relaxed);
        Ok(ChunkReply::Written { chunk, usage: self.usage(drive) })
    }

    /// Writes a chunk, unless who gave it gives the request up meanwhile, and will not learn its id.
    pub(super) async fn put(
        &self,
        (number, drive): Numbered<'_, S>,
        data: Bytes,
        mut bytes: Taken,
    ) -> Result<ChunkRef, Failure> {
        let chunk = drive.write(data).await.map_err(|error| self.failure(number, &error))?;
        if let Err(failure) = bytes.next().await {
            drop(drive.discard(vec![chunk]));
            return Err(failure);
        }
        Ok(chunk)
    }

    /// All chunks of this run whose writes were answered become durable. One of an earlier run may have been lost with it.
    pub(super) async fn sync(
        &self,
        number: StoreNumber,
        drive: &SegmentDrive<S>,
        oldest: ChunkId,
    ) -> Result<ChunkReply, Failure> {
        if !drive.is_of_this_run(oldest) {
            return Err(Failure::Forgotten);
        }
        drive.sync(&[]).await.map_err(|error| self.failure(number, &error))?;
        Ok(ChunkReply::Done)
    }

    fn status(&self, drive: &SegmentDrive<S>) -> DriveStatus {
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        DriveStatus {
            run: self.run.0,
            usage: self.usage(drive),
            written: count(&self.counts.written),
            read: count(&self.counts.read),
            damaged: count(&self.counts.damaged),
        }
    }

    /// Room in memory for a chunk.
    async fn room(&self, length: u32) -> Result<OwnedSemaphorePermit, Failure> {
        let budget: Arc<_> = self.budget.clone();
        budget.acquire_many_owned(length.div_ceil(1024)).await.map_err(|_| Failure::Unavailable)
    }
}

pub(super) async fn gather(mut bytes: Taken, length: usize) -> Result<Bytes, Failure> {
    gather_from(&mut bytes, length).await
}

/// All bytes of a request.
pub(super) async fn gather_from(bytes: &mut Taken, length: usize) -> Result<Bytes, Failure> {
    let mut all = BytesMut::with_capacity(length);
    while let Some(piece) = bytes.next().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all.freeze())
}

pub(super) fn chunks_of(bytes: &[u8]) -> Vec<ChunkRef> {
    bytes.chunks_exact(ChunkRef::STORED_LEN).filter_map(ChunkRef::from_bytes).collect()
}
