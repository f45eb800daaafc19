//! Data that clients staged at a drive, as parts of a file: checked, and claimed before a transaction makes them a file's.

use std::collections::BTreeSet;

use afs_drive::{ChunkRef, DriveError, DriveId, StagedChunks};
use afs_env::EnvExt;

use crate::error::VolumeError;
use crate::extent::{EXTENTS_MAX, SLOT_LEN};
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::new_data::{FILE_LEN_MAX, NewData, Piece, Stored};
use crate::targets::{NamedDrive, Targets};
use crate::volume::Volume;

/// Chunks and the positions in a file at which they are to be, as a client says.
#[derive(Debug)]
pub struct StagedParts(Vec<(u64, ChunkRef)>);

/// What a drive has to be asked with, beside the chunks.
#[derive(Clone, Copy, Debug)]
pub struct StagedIn {
    /// The drive.
    pub drive: DriveId,
    /// The run of the drive in which they were staged.
    pub run: u64,
    /// The drive's name of the client's room.
    pub tag: [u8; 8],
}

impl StagedParts {
    /// Parts in ascending order, each within one slot of the file.
    ///
    /// # Errors
    /// `Invalid` for no parts, and for some that are empty, out of order, overlap, reach into another slot, are more than 16 in a
    /// slot, or name a chunk twice; `TooLarge` beyond [`FILE_LEN_MAX`].
    pub fn new(parts: Vec<(u64, ChunkRef)>) -> Result<Self, VolumeError> {
        let (mut reached, mut slot, mut in_slot) = (0, 0, 0);
        for (position, chunk) in &parts {
            let len = u64::from(chunk.len);
            let end = position.checked_add(len).filter(|end| *end <= FILE_LEN_MAX);
            let end = end.ok_or(VolumeError::TooLarge)?;
            let of = position / SLOT_LEN;
            in_slot = if of == slot { in_slot + 1 } else { 1 };
            let is_within = len > 0 && end <= (of + 1) * SLOT_LEN;
            if !is_within || *position < reached || in_slot > EXTENTS_MAX {
                return Err(VolumeError::Invalid);
            }
            (reached, slot) = (end, of);
        }
        let chunks: BTreeSet<_> = parts.iter().map(|(_, chunk)| chunk.id).collect();
        if parts.is_empty() || chunks.len() < parts.len() {
            return Err(VolumeError::Invalid);
        }
        Ok(Self(parts))
    }

    /// The parts.
    pub fn iter(&self) -> impl Iterator<Item = &(u64, ChunkRef)> {
        self.0.iter()
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, chunk)| u64::from(chunk.len)).sum()
    }
}

impl Volume {
    /// The drive for new data, if clients may stage them there: none where data go to several drives, because a client's chunks would be
    /// on one alone. Asks the drive if that is not known.
    pub async fn staging_drive(&self) -> Option<DriveId> {
        let (id, drive) = self.only_drive()?;
        drive.takes_staged().await.then_some(id)
    }

    /// The drive for new data, if all of them go there and are on no other one when they are acknowledged.
    fn only_drive(&self) -> Option<NamedDrive> {
        let targets = Targets::new(&self.store().drives, self.header().placement, SlotIndex(0));
        targets.is_first_alone().then(|| self.store().drives.for_new_data())
    }

    /// Makes staged chunks the store's, all or none: they are part of a file after [`VolumeTx::store_data`](crate::VolumeTx), or
    /// discarded with what is returned.
    ///
    /// # Errors
    /// `NotStaged` if not all are staged there and durable, or the volume's new data do not go to this drive alone any more; errors of
    /// the drive.
    pub async fn claim(&self, parts: StagedParts, from: StagedIn) -> Result<NewData, VolumeError> {
        let (drive_id, drive) = self.only_drive().ok_or(VolumeError::NotStaged)?;
        if drive_id != from.drive {
            return Err(VolumeError::NotStaged);
        }
        let chunks = parts.iter().map(|(_, chunk)| *chunk).collect();
        let claim = drive.claim(StagedChunks { run: from.run, tag: from.tag, chunks });
        let pieces = parts.0.iter().map(|(position, chunk)| piece(*position, drive_id, *chunk)).collect();
        let (first, last) = (parts.0.first(), parts.0.last());
        let position = first.map_or(0, |(position, _)| *position);
        let end = last.map_or(0, |(position, chunk)| position + u64::from(chunk.len));
        let bytes = parts.bytes();
        // A task: whoever waits may be gone when the chunks have been given, and then they are discarded.
        let env = &self.store().env;
        let claimed = env.start_with_result(env.stall(), async move {
            claim.await.map_err(refused)?;
            Ok(NewData::on_drive(position..end, bytes, pieces, (drive_id, drive)))
        });
        claimed.await.unwrap_or(Err(VolumeError::Drive(DriveError::Closed)))
    }
}

fn piece(position: u64, drive: DriveId, chunk: ChunkRef) -> Piece {
    Piece { position, stored: Stored::Chunk(LocatedChunk { drive, chunk }, Vec::new()) }
}

/// A drive that was started again has nothing staged.
fn refused(error: DriveError) -> VolumeError {
    match error {
        DriveError::NotStaged | DriveError::Forgotten => VolumeError::NotStaged,
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_drive::ChunkId;

    fn chunk(number: u64, len: u32) -> ChunkRef {
        ChunkRef { id: ChunkId::from_parts(1, number), len, crc: 0 }
    }

    fn code(parts: &[(u64, ChunkRef)]) -> String {
        StagedParts::new(parts.to_vec())
            .map_or_else(|error| format!("{error:?}"), |parts| parts.bytes().to_string())
    }

    #[test]
    fn parts_ascend_within_slots_and_name_each_chunk_once() {
        let slot = SLOT_LEN as u32;
        assert_eq!(
            code(&[(0, chunk(1, slot)), (SLOT_LEN, chunk(2, 5)), (SLOT_LEN + 5, chunk(3, 1))]),
            "1048582"
        );
        let last = FILE_LEN_MAX - SLOT_LEN;
        assert_eq!(code(&[(last, chunk(1, slot))]), "1048576");
        for wrong in [
            &[][..],
            &[(5, chunk(1, 0))],
            &[(5, chunk(1, slot))],
            &[(0, chunk(1, slot + 1))],
            &[(0, chunk(1, 10)), (9, chunk(2, 1))],
            &[(9, chunk(1, 1)), (0, chunk(2, 1))],
            &[(0, chunk(1, 1)), (5, chunk(1, 1))],
        ] {
            assert_eq!(code(wrong), "Invalid", "{wrong:?}");
        }
        for wrong in [u64::MAX, u64::MAX - 1, FILE_LEN_MAX] {
            assert_eq!(code(&[(wrong, chunk(1, 2))]), "TooLarge", "{wrong}");
        }
        let many: Vec<_> = (0..17).map(|n| (n, chunk(n, 1))).collect();
        assert_eq!((code(&many[..16]), code(&many)), ("16".into(), "Invalid".into()));
    }
}
