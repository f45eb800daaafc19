//! What a client says to have staged: chunks at drives, as parts of a file.

use std::collections::BTreeSet;

use afs_drive::ChunkRef;

use crate::error::VolumeError;
use crate::extent::{EXTENTS_MAX, SLOT_LEN};
use crate::located::COPIES_MAX;
use crate::new_data::FILE_LEN_MAX;

/// A chunk that has the bytes of a part of a file.
#[derive(Clone, Copy, Debug)]
pub struct StagedPlace {
    /// First byte of the part.
    pub position: u64,
    /// Its drive: a place in a list.
    pub at: usize,
    /// Its id on the drive, length and checksum.
    pub chunk: ChunkRef,
}

/// Parts of a file, each with its chunk, and copies of it on other drives.
#[derive(Debug)]
pub struct StagedParts(Vec<StagedPlace>);

impl StagedParts {
    /// Parts in ascending order, each within one slot of the file. Places that follow one another with the same position are of one
    /// part.
    ///
    /// # Errors
    /// `Invalid` for no parts, and for some that are empty, out of order, overlap, reach into another slot, are more than 16 in a
    /// slot, have more than [`COPIES_MAX`] places, two at one drive or of other lengths or checksums, or name a chunk twice; `TooLarge`
    /// beyond [`FILE_LEN_MAX`].
    pub fn new(places: Vec<StagedPlace>) -> Result<Self, VolumeError> {
        let all = Self(places);
        let (mut reached, mut slot, mut in_slot) = (0, 0, 0);
        for part in all.parts() {
            let Some(StagedPlace { position, chunk, .. }) = part.first().copied() else { continue };
            let len = u64::from(chunk.len);
            let end = position.checked_add(len).filter(|end| *end <= FILE_LEN_MAX);
            let end = end.ok_or(VolumeError::TooLarge)?;
            let of = position / SLOT_LEN;
            in_slot = if of == slot { in_slot + 1 } else { 1 };
            let is_within = len > 0 && end <= (of + 1) * SLOT_LEN;
            if !is_within || position < reached || in_slot > EXTENTS_MAX || !are_copies(part) {
                return Err(VolumeError::Invalid);
            }
            (reached, slot) = (end, of);
        }
        let chunks: BTreeSet<_> = all.places().iter().map(|place| (place.at, place.chunk.id)).collect();
        if all.0.is_empty() || chunks.len() < all.0.len() {
            return Err(VolumeError::Invalid);
        }
        Ok(all)
    }

    /// All places, those of a part one after the other.
    pub fn places(&self) -> &[StagedPlace] {
        &self.0
    }

    /// The places of each part: the one that references are to name first.
    pub fn parts(&self) -> impl Iterator<Item = &[StagedPlace]> {
        self.0.chunk_by(|one, next| one.position == next.position)
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.parts().filter_map(<[_]>::first).map(|place| u64::from(place.chunk.len)).sum()
    }
}

/// Whether the chunks of a part have the same bytes, as far as references tell, and each is at another drive.
fn are_copies(part: &[StagedPlace]) -> bool {
    let drives: BTreeSet<_> = part.iter().map(|place| place.at).collect();
    let sums: BTreeSet<_> = part.iter().map(|place| (place.chunk.len, place.chunk.crc)).collect();
    part.len() <= COPIES_MAX && drives.len() == part.len() && sums.len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_drive::ChunkId;

    fn chunk(number: u64, len: u32) -> ChunkRef {
        ChunkRef { id: ChunkId::from_parts(1, number), len, crc: 0 }
    }

    fn placed(places: &[(u64, usize, ChunkRef)]) -> String {
        let places = places.iter().map(|(position, at, chunk)| StagedPlace {
            position: *position,
            at: *at,
            chunk: *chunk,
        });
        StagedParts::new(places.collect())
            .map_or_else(|error| format!("{error:?}"), |parts| parts.bytes().to_string())
    }

    fn code(parts: &[(u64, ChunkRef)]) -> String {
        placed(&parts.iter().map(|(position, chunk)| (*position, 0, *chunk)).collect::<Vec<_>>())
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
            &[(0, chunk(1, 1)), (0, chunk(2, 1))],
        ] {
            assert_eq!(code(wrong), "Invalid", "{wrong:?}");
        }
        for wrong in [u64::MAX, u64::MAX - 1, FILE_LEN_MAX] {
            assert_eq!(code(&[(wrong, chunk(1, 2))]), "TooLarge", "{wrong}");
        }
        let many: Vec<_> = (0..17).map(|n| (n, chunk(n, 1))).collect();
        assert_eq!((code(&many[..16]), code(&many)), ("16".into(), "Invalid".into()));
    }

    #[test]
    fn copies_are_of_the_same_bytes_each_at_another_drive() {
        let other_sum = ChunkRef { crc: 1, ..chunk(2, 9) };
        assert_eq!(placed(&[(5, 0, chunk(1, 9)), (5, 1, chunk(1, 9)), (14, 1, chunk(2, 9))]), "18");
        for wrong in [
            &[(5, 0, chunk(1, 9)), (5, 1, chunk(2, 8))][..],
            &[(5, 0, chunk(1, 9)), (5, 1, other_sum)],
            &[(5, 0, chunk(1, 9)), (5, 1, chunk(2, 9)), (5, 0, chunk(3, 9))],
            &[(5, 0, chunk(1, 9)), (5, 1, chunk(2, 9)), (5, 2, chunk(3, 9)), (5, 3, chunk(4, 9))],
            &[(5, 0, chunk(1, 9)), (5, 1, chunk(1, 9)), (14, 1, chunk(1, 9))],
        ] {
            assert_eq!(placed(wrong), "Invalid", "{wrong:?}");
        }
    }
}
