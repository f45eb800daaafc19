//! What look-ups and listings answer.

use crate::api::{Attr, Kind, NodeId};

/// The answer to a look-up or a creation. Every `Entry` handed out counts as one look-up of its node, to be
/// given back with [`crate::Venus::forget`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The object; `attr.node` repeats it.
    pub node: NodeId,
    /// Its attributes.
    pub attr: Attr,
    /// Tells apart two objects that used one node id one after the other (the uniquifier).
    pub generation: u64,
}

/// One name of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Where the listing goes on after this entry: hand it to the next `readdir`. Stable while the entry lives,
    /// since it is the position of a slot that is never moved (docs/protocol/directory.md "3. Algorithms").
    pub next_offset: u64,
    /// The name, bytes, neither empty nor with `/` or NUL. `.` and `..` are among the entries.
    pub name: Vec<u8>,
    /// The inode number. For a mount point that has not been crossed it is the mount point's own.
    pub ino: NodeId,
    /// The kind where it is known without asking a server. A mount point is [`Kind::Directory`].
    pub kind: Option<Kind>,
}

/// One name of a directory with what is known of the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntryPlus {
    /// The name.
    pub entry: DirEntry,
    /// The object, counted as one look-up; absent for `.`, `..`, a mount point not yet crossed, and what the
    /// server would not let us see.
    pub found: Option<Entry>,
}
