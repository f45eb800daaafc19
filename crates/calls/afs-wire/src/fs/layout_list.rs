//! Layout of a long range of a file: references alone, with one binding for all chunks at a drive.

use super::{LAYOUT_DRIVES_MAX, LayoutDrive, ListedParts, SERVICE};
use crate::ids::{DataVersion, Fid};
use crate::xdr::{BoundedVec, Fixed};

/// Most parts of one layout list.
pub const LISTED_PARTS_MAX: usize = 1024;

/// In the place of a list's terms and binding: the drive sends each chunk when the file server has commanded it, as
/// [`COMMANDED`](super::COMMANDED).
pub const LIST_COMMANDED: Fixed<40> = Fixed([0; 40]);
/// In that place: the client fetches each chunk from an object store, as [`ADDRESSED`](super::ADDRESSED).
pub const LIST_ADDRESSED: Fixed<40> = Fixed([0xff; 40]);

calls! {
    service SERVICE;

    /// Asks where the bytes of a range of a file are, as [`GetLayout`](super::GetLayout), with the same errors. The chunks at a drive are
    /// bound as one list, so that a part takes a few bytes in the reply. RXGEN_OPCODE also while a drive of the range does not know lists.
    0x414E_4430 "GetLayoutList" GetLayoutList { fid: Fid, version: DataVersion, start: u64, end: u64 } -> GetLayoutListReply {
        /// The drives.
        drives: BoundedVec<LayoutDrive, LAYOUT_DRIVES_MAX>,
        /// Terms and binding of the list of chunks at each drive, in the form of `docs/protocol/data-path.md`. [`LIST_COMMANDED`] and
        /// [`LIST_ADDRESSED`] where there is none.
        lists: BoundedVec<Fixed<40>, LAYOUT_DRIVES_MAX>,
        /// In order. What lies between them is zeros; the first and last may reach beyond the range.
        parts: ListedParts,
        /// Where the layout ends. The client asks for the rest from there.
        end: u64,
    };
}
