//! Writing of chunks, which packs gather, and putting of packs.

use std::pin::pin;
use std::sync::Arc;

use afs_drive::{ChunkRef, DriveError, MAX_CHUNK_LEN};
use afs_env::Stall;
use bytes::Bytes;

use crate::drive::Inner;
use crate::pack::Pack;
use crate::packs::Appended;

impl Inner {
    /// Puts a chunk into a pack. Waits while as many packs as may be are being put.
    pub(crate) async fn write(self: &Arc<Self>, data: Bytes) -> Result<ChunkRef, DriveError> {
        if data.is_empty() || data.len() > MAX_CHUNK_LEN {
            return Err(DriveError::Length { len: data.len() as u64 });
        }
        let crc = crc32c::crc32c(&data);
        let (failures_before, _) = self.packs.lock().failures();
        loop {
            self.claim_run().await?;
            let mut room = pin!(self.room.notified());
            room.as_mut().enable();
            let appended = self.packs.lock().append(&data, crc)?;
            if let Appended::Chunk(chunk, full) = appended {
                full.into_iter().for_each(|pack| self.start_put(pack));
                return Ok(chunk);
            }
            let (failures, last) = self.packs.lock().failures();
            if let Some(error) = last.filter(|_| failures > failures_before) {
                return Err(error);
            }
            self.put_failed_again();
            room.await;
        }
    }

    fn put_failed_again(self: &Arc<Self>) {
        let failed = self.packs.lock().failed();
        failed.into_iter().for_each(|pack| self.start_put(pack));
    }

    /// Begins to put a pack.
    pub(crate) fn start_put(self: &Arc<Self>, pack: Arc<Pack>) {
        let inner = self.clone();
        self.env.start(Box::pin(async move { inner.put(pack).await }), Stall::None);
    }

    async fn put(self: Arc<Self>, pack: Arc<Pack>) {
        let proof = (pack.tail_range(), pack.tail.clone());
        let result = self.requests.put_new(&pack.id.key(), &pack.body, proof).await;
        let (waiting, result) = self.packs.lock().put_ended(pack.id, result);
        if let Err(error) = &result {
            tracing::warn!(pack = %pack.id, %error, "a pack was not put; it stays in memory");
        }
        for waiter in waiting {
            _ = waiter.send(result.clone());
        }
        self.room.notify_waiters();
        // A pack of which every chunk was discarded meanwhile.
        if let Err(error) = self.remove_doomed().await {
            tracing::debug!(%error, "dead packs remain for now");
        }
    }
}
