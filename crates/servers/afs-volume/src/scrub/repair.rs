//! Repair: replaces a damaged chunk by sound bytes.

use bytes::Bytes;

use super::{BadData, BadPart};
use crate::copies;
use crate::error::VolumeError;
use crate::exchange::{ChunkPlace, Exchange, exchange};
use crate::extent::SLOT_LEN;
use crate::header::decode_header;
use crate::ids::SlotIndex;
use crate::key::{self, HEADERS};
use crate::located::LocatedChunk;
use crate::store::VolumeStore;

impl VolumeStore {
    /// Replaces a damaged chunk by `bytes`, read from a replica of the same fid and data version at the same
    /// position. All volumes that share the chunk get the new one. The bytes must have the length and the
    /// checksum that were stored.
    ///
    /// # Errors
    /// `Invalid` if the damage is not a whole chunk, or the bytes are not those that were written; `Busy` if
    /// the file changed meanwhile.
    pub async fn repair(&self, bad: &BadData, bytes: Bytes) -> Result<(), VolumeError> {
        let BadPart::Chunk { position, len, chunk: old, .. } = bad.part else {
            return Err(VolumeError::Invalid);
        };
        if len != u64::from(old.chunk.len) || bytes.len() as u64 != len {
            return Err(VolumeError::Invalid);
        }
        self.replace(bad, position, old, bytes).await
    }

    /// Replaces a damaged chunk by a copy of it on another drive (see [`VolumeStore::use_drives`]), wherever the damage is in it.
    ///
    /// # Errors
    /// `Invalid` if the damage is not in a chunk, or no copy can be read; `Busy` if the file changed meanwhile.
    pub async fn repair_from_copy(&self, bad: &BadData) -> Result<(), VolumeError> {
        let BadPart::Chunk { position, chunk: old, .. } = bad.part else { return Err(VolumeError::Invalid) };
        let copies = copies::of(&self.store.kv.snapshot(), old)?;
        for copy in copies {
            let Ok(read) = self.store.drives.read(copy, 0..copy.chunk.len) else { continue };
            if let Ok(bytes) = read.await {
                return self.replace(bad, position, old, bytes).await;
            }
        }
        Err(VolumeError::Invalid)
    }

    /// Writes the bytes of a chunk to its drive again, and has all rows name them. They must have the checksum of the chunk.
    async fn replace(
        &self,
        bad: &BadData,
        position: u64,
        old: LocatedChunk,
        bytes: Bytes,
    ) -> Result<(), VolumeError> {
        let drive = self.store.drives.get(old.drive)?;
        let new = drive.write(bytes).await?;
        if new.crc != old.chunk.crc {
            drive.discard(vec![new]).await?;
            return Err(VolumeError::Invalid);
        }
        drive.sync(&[new]).await?;
        let (volume, vnode) = (bad.volume, bad.vnode);
        let slot = SlotIndex((position / SLOT_LEN) as u32);
        let store = self.store.clone();
        let exchanged = self.store.kv.update(move |txn| {
            let header = txn.get(HEADERS, &key::volume(volume))?.ok_or(VolumeError::NoVolume)?;
            let place = ChunkPlace { group: decode_header(header)?.group, vnode, slot };
            let new = LocatedChunk { drive: old.drive, chunk: new };
            if !exchange(txn, place, Exchange { old, new })? {
                return Err(VolumeError::Busy);
            }
            txn.before_visible(move |_| store.work.notify_one());
            Ok(())
        });
        let exchanged: Result<(), VolumeError> = exchanged.await.map_err(VolumeError::from);
        if let Err(VolumeError::Busy | VolumeError::NoVolume) = exchanged {
            drive.discard(vec![new]).await?;
        }
        exchanged
    }
}
