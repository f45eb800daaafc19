//! Division of a store into chunks: each is a part of one piece, within one slot of the file.

use std::ops::Range;

use afs_drive::BLOCK;
use afs_wire::fs::{COMMIT_PARTS_MAX, COMMIT_SLOT_LEN, ROOM_BYTES_MAX};

use crate::data::Piece;
use crate::transfer::StoreRequest;

/// Shortest average length of the parts of a store. What consists of shorter ones is stored by the file server, which joins them.
const PART_MIN: u64 = 16 << 10;

/// Bytes of a file that become one chunk.
pub(super) struct Part<'a> {
    pub piece: &'a Piece,
    pub range: Range<u64>,
}

/// The parts of a store, in order.
pub(super) fn parts<'a>(change: &StoreRequest<'a>) -> impl Iterator<Item = Part<'a>> + Clone + use<'a> {
    change.pieces.iter().flat_map(|piece| {
        let Range { mut start, end } = piece.range;
        std::iter::from_fn(move || {
            let slot_end = (start / COMMIT_SLOT_LEN + 1).saturating_mul(COMMIT_SLOT_LEN);
            let range = start..end.min(slot_end);
            start = range.end;
            (!range.is_empty()).then_some(Part { piece, range })
        })
    })
}

/// Bytes that a room needs for the parts of a store, each in whole blocks; `None` if the file server is to store them.
pub(super) fn space(change: &StoreRequest<'_>) -> Option<u64> {
    let (mut count, mut bytes, mut space) = (0, 0, 0);
    for Part { range, .. } in parts(change) {
        let length = range.end - range.start;
        (count, bytes, space) = (count + 1, bytes + length, space + length.next_multiple_of(BLOCK));
        if count > COMMIT_PARTS_MAX as u64 || space > ROOM_BYTES_MAX {
            return None;
        }
    }
    (count > 0 && bytes / count >= PART_MIN).then_some(space)
}

#[cfg(test)]
mod tests {
    use afs_wire::fs::SetStatus;
    use afs_wire::ids::Fid;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn pieces(ranges: &[(u64, u64)]) -> Vec<Piece> {
        ranges.iter().map(|(start, end)| Piece { range: *start..*end, file_length: 0 }).collect()
    }

    fn with<T>(ranges: &[(u64, u64)], look: impl FnOnce(&StoreRequest<'_>) -> T) -> T {
        let pieces = pieces(ranges);
        let status = SetStatus::default();
        look(&StoreRequest { fid: Fid::default(), directory: None, status, pieces: &pieces, expected: None })
    }

    fn divided(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        with(ranges, |change| parts(change).map(|part| (part.range.start, part.range.end)).collect())
    }

    #[test]
    fn a_part_lies_in_one_piece_and_one_slot() {
        assert_eq!(divided(&[(0, 5)]), [(0, 5)]);
        assert_eq!(divided(&[(0, MIB)]), [(0, MIB)]);
        assert_eq!(
            divided(&[(MIB - 1, MIB + 1), (7 * MIB, 7 * MIB), (9 * MIB + 3, 9 * MIB + 4)]),
            [(MIB - 1, MIB), (MIB, MIB + 1), (9 * MIB + 3, 9 * MIB + 4)]
        );
        let whole = divided(&[(3, 5 * MIB)]);
        assert_eq!((whole.len(), whole[0], whole[4]), (5, (3, MIB), (4 * MIB, 5 * MIB)));
        let end = u64::MAX;
        assert_eq!(divided(&[(end - 5, end)]).len(), 1, "no end is beyond the last number");
    }

    #[test]
    fn a_room_has_whole_blocks_and_bounds() {
        let space_of = |ranges: &[(u64, u64)]| with(ranges, space);
        assert_eq!(space_of(&[(0, MIB + 20_001)]), Some(MIB + 20_480));
        assert_eq!(space_of(&[]), None);
        assert_eq!(space_of(&[(0, 100), (MIB, MIB + 100)]), None, "they are too short");
        assert_eq!(space_of(&[(0, 4096 * MIB)]), Some(4096 * MIB));
        assert_eq!(space_of(&[(0, 4096 * MIB + 1)]), None);
        assert_eq!(space_of(&[(1, 4096 * MIB + 1)]), None, "that is 4097 parts");
    }
}
