//! One range of a store.

use std::ops::Range;

/// One range of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Where, and from where to where.
    pub range: Range<u64>,
    /// What the server cuts the file to first.
    pub file_length: u64,
}
