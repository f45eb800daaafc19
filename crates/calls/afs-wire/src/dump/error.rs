//! Errors of a dump, with their position.

use super::{DIRECTORY_LEN_MAX, LINK_LEN_MAX};
use crate::acl::BadBlock;

/// What is wrong with a dump, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the dump: {problem}")]
pub struct DumpError {
    /// Position of the offending item from the first byte of the stream; for a truncated dump the stream's length.
    pub offset: u64,
    /// Kind of error.
    pub problem: Problem,
}

/// Kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It does not begin like a dump.
    #[error("this is no volume dump: it does not begin with the mark of one")]
    NotADump,
    /// A version of the format that this program does not read.
    #[error("the dump has format version {0}, and only version 1 can be read")]
    Version(u32),
    /// The dump's header lacks the volume's number or the dates.
    #[error("the dump's header does not say {0}")]
    Incomplete(&'static str),
    /// A section byte where that section is not permitted.
    #[error("section {0:#04x} cannot be here")]
    Section(u8),
    /// An unknown tag that is marked as critical.
    #[error("tag {0:#04x} is not known, and the dump says that it matters")]
    Critical(u8),
    /// A byte that is no tag.
    #[error("{0:#04x} is no tag")]
    Tag(u8),
    /// A text without its NUL.
    #[error("a text does not end")]
    Text,
    /// An array with too many elements, or an odd number of dates.
    #[error("an array of {0} numbers cannot be here")]
    Array(u16),
    /// A length with too many bytes.
    #[error("the length of tag {0:#04x} cannot be read")]
    Length(u8),
    /// The access list is invalid.
    #[error("vnode {vnode}: {reason}")]
    Acl {
        /// The vnode.
        vnode: u32,
        /// What is wrong with it.
        reason: BadBlock,
    },
    /// The type of a vnode is not one of the three.
    #[error("vnode {vnode} has type {kind}, which does not exist")]
    Kind {
        /// The vnode.
        vnode: u32,
        /// The type.
        kind: u8,
    },
    /// A directory longer than [`DIRECTORY_LEN_MAX`](super::DIRECTORY_LEN_MAX).
    #[error("directory {vnode} has {length} bytes; a directory has at most {DIRECTORY_LEN_MAX}")]
    DirectoryTooLong {
        /// The vnode.
        vnode: u32,
        /// Its length in bytes.
        length: u64,
    },
    /// A link longer than [`LINK_LEN_MAX`](super::LINK_LEN_MAX).
    #[error("link {vnode} has {length} bytes of text; a link has at most {LINK_LEN_MAX}")]
    LinkTooLong {
        /// The vnode.
        vnode: u32,
        /// Its length in bytes.
        length: u64,
    },
    /// Sparse data with impossible holes.
    #[error("vnode {vnode} {what}")]
    Sparse {
        /// The vnode.
        vnode: u32,
        /// What is wrong with them.
        what: &'static str,
    },
    /// The end mark is missing.
    #[error("the mark of the dump's end is wrong")]
    EndMark,
    /// Bytes after the end.
    #[error("there are bytes after the end of the dump")]
    AfterEnd,
    /// The stream ended before the dump did.
    #[error("the dump ends too early: it is cut")]
    Cut,
}
