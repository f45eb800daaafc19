//! Holes of a file: what to look for, and what to make.

/// What is looked for from a position on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// The next byte that is not in a hole.
    Data,
    /// The next byte that is in a hole; the end of the file counts as one.
    Hole,
}

/// What is to become of a range of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// The file reaches to its end. What it grows by is a hole: no room is kept for it.
    Extend,
    /// It reads as zeros and takes no room.
    Zero {
        /// The length stays: nothing is done beyond it.
        keep_length: bool,
    },
}
