//! Discarding of chunks, and deletion of packs that have no live one left.

use afs_drive::{ChunkRef, DriveError};
use afs_env::future::join_all;

use crate::drive::Inner;
use crate::names::PackId;

/// Packs that are deleted at a time.
const DELETED_AT_ONCE: usize = 16;

impl Inner {
    pub(crate) async fn discard(&self, chunks: &[ChunkRef]) -> Result<(), DriveError> {
        {
            let mut packs = self.packs.lock();
            chunks.iter().for_each(|chunk| packs.discard(chunk.id));
        }
        chunks.iter().for_each(|chunk| self.cache.lock().remove(chunk.id));
        self.remove_doomed().await
    }

    /// Deletes the packs without a live chunk. What fails is deleted by the next call.
    pub(crate) async fn remove_doomed(&self) -> Result<(), DriveError> {
        loop {
            let doomed = self.packs.lock().doomed(DELETED_AT_ONCE);
            if doomed.is_empty() {
                return Ok(());
            }
            // A later run of another server may have references of its own.
            self.check_run().await?;
            let deleted = join_all(doomed.into_iter().map(|pack| self.delete(pack))).await;
            deleted.into_iter().collect::<Result<(), _>>()?;
        }
    }

    async fn delete(&self, pack: PackId) -> Result<(), DriveError> {
        self.requests.delete(&pack.key()).await?;
        self.packs.lock().deleted(pack);
        Ok(())
    }
}
