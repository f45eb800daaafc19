//! Holes of a file: arguments of lseek(2) and fallocate(2).

/// What lseek(2) searches for from a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek {
    /// The next byte outside of holes.
    Data,
    /// The next byte in a hole; the end of the file counts as a hole.
    Hole,
}

/// Operation of fallocate(2) on a range of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Extends the file to the end of the range. The extension is a hole: no space is reserved.
    Extend,
    /// Makes the range zeros that take no space.
    Zero {
        /// The length stays unchanged; the part beyond the end is ignored.
        keep_length: bool,
    },
}
