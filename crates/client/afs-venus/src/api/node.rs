//! Replies of look-ups and listings.

use std::time::Duration;

use crate::api::{Attr, Kind, NodeId};

/// Reply to a look-up or a creation. Each `Entry` handed out counts as one look-up of its node, to be returned with
/// [`crate::Venus::forget`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The object; same as `attr.node`.
    pub node: NodeId,
    /// Its attributes.
    pub attr: Attr,
    /// Distinguishes objects that used the same node id one after the other (the uniquifier).
    pub generation: u64,
    /// How long a cache of the caller may keep the name without asking again; `None`: until the sink is notified. The name of a
    /// mount point leads to the volume that had a name when the location service was asked.
    pub name_for: Option<Duration>,
}

/// One name of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntry {
    /// Position after this entry, for the next `readdir`. Stable while the entry exists: it is a slot of the directory,
    /// and slots never move (docs/protocol/directory.md "3. Algorithms").
    pub next_offset: u64,
    /// The name in bytes, not empty, without `/` and NUL. Listings include `.` and `..`.
    pub name: Vec<u8>,
    /// Inode number. Of a mount point that has not been crossed, the mount point's own.
    pub ino: NodeId,
    /// Type, if known without a call to a server. A mount point is a [`Kind::Directory`].
    pub kind: Option<Kind>,
}

/// An entry of a directory with the attributes of its object, if known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DirEntryPlus {
    /// The entry.
    pub entry: DirEntry,
    /// The object, counted as one look-up; `None` for `.`, `..`, a mount point not yet crossed, and an object that the
    /// server does not show to this user.
    pub found: Option<Entry>,
}
