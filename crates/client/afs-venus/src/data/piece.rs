//! A piece: one range of a store.

use std::ops::Range;

/// One range of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The bytes.
    pub range: Range<u64>,
    /// Length to which the server truncates the file first.
    pub file_length: u64,
}
