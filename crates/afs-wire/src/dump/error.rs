//! Why bytes are no dump.

use super::{DIRECTORY_LEN_MAX, LINK_LEN_MAX};
use crate::acl::BadBlock;

/// What is wrong with a dump, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the dump: {problem}")]
pub struct DumpError {
    /// Where the offending item begins, counted from the first byte of the stream; for a cut the stream's length.
    pub offset: u64,
    /// What was found there.
    pub problem: Problem,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It does not begin as dumps do.
    #[error("this is no volume dump: it does not begin with the mark of one")]
    NotADump,
    /// A version of the format that this program does not read.
    #[error("the dump has format version {0}, and only version 1 can be read")]
    Version(u32),
    /// The dump's header lacks the volume's number or the dates.
    #[error("the dump's header does not say {0}")]
    Incomplete(&'static str),
    /// A section byte where that section cannot be.
    #[error("section {0:#04x} cannot be here")]
    Section(u8),
    /// A tag that is unknown, and marked as one that must be understood.
    #[error("tag {0:#04x} is not known, and the dump says that it matters")]
    Critical(u8),
    /// A byte that is no tag.
    #[error("{0:#04x} is no tag")]
    Tag(u8),
    /// A text without an end.
    #[error("a text does not end")]
    Text,
    /// An array with more elements than any has, or an odd number of dates.
    #[error("an array of {0} numbers cannot be here")]
    Array(u16),
    /// A length of too many bytes.
    #[error("the length of tag {0:#04x} cannot be read")]
    Length(u8),
    /// Its access list makes no sense.
    #[error("vnode {vnode}: {reason}")]
    Acl {
        /// Which vnode.
        vnode: u32,
        /// What is wrong with it.
        reason: BadBlock,
    },
    /// The type of a vnode is none of the three.
    #[error("vnode {vnode} has type {kind}, which does not exist")]
    Kind {
        /// Which vnode.
        vnode: u32,
        /// What it says it is.
        kind: u8,
    },
    /// A directory larger than any can be.
    #[error("directory {vnode} has {length} bytes; a directory has at most {DIRECTORY_LEN_MAX}")]
    DirectoryTooLong {
        /// Which vnode.
        vnode: u32,
        /// Its length in bytes.
        length: u64,
    },
    /// A link with more text than any has.
    #[error("link {vnode} has {length} bytes of text; a link has at most {LINK_LEN_MAX}")]
    LinkTooLong {
        /// Which vnode.
        vnode: u32,
        /// Its length in bytes.
        length: u64,
    },
    /// Data with holes that cannot be.
    #[error("vnode {vnode} {what}")]
    Sparse {
        /// Which vnode.
        vnode: u32,
        /// What is wrong with them.
        what: &'static str,
    },
    /// The end is not marked as such.
    #[error("the mark of the dump's end is wrong")]
    EndMark,
    /// Something follows the end.
    #[error("there are bytes after the end of the dump")]
    AfterEnd,
    /// The stream ended before the dump did.
    #[error("the dump ends too early: it is cut")]
    Cut,
}
