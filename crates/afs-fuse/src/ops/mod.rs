//! The operations, by the noun they work on. Each owns its reply and may wait.

mod attributes;
mod files;
mod listing;
mod locks;
mod names;
mod xattrs;

use crate::convert;
use crate::dispatch::Pause;
use crate::inodes::Inodes;
use crate::negative::Negatives;
use crate::options::Owner;
use crate::passthrough::Passthrough;
use crate::sink::{Epoch, KernelSink};
use afs_venus::{Attr, Entry, NodeId, Venus};
use fuser::{Errno, FileAttr, Generation, INodeNo};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use files::Create;
pub(crate) use locks::LockRequest;

/// A moment in the history of what has become stale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    told: u64,
    said: Epoch,
}

/// What every operation of one mount needs.
pub(crate) struct Mount {
    pub(crate) venus: Arc<Venus>,
    pub(crate) sink: KernelSink,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) negatives: Arc<Negatives>,
    pub(crate) passthrough: Arc<Passthrough>,
    pub(crate) owner: Option<Owner>,
    pub(crate) pause: Pause,
}

impl Mount {
    /// The node behind an inode number; ESTALE, which makes the kernel look up again, for a placeholder.
    fn node(&self, ino: INodeNo) -> Result<NodeId, Errno> {
        self.inodes.node(ino).ok_or(Errno::ESTALE)
    }

    /// The present moment, for [`Mount::validity`]: taken before anything is asked.
    fn moment(&self) -> Moment {
        Moment { told: self.venus.told(), said: self.sink.epoch() }
    }

    /// Whether nothing has become stale since. What nobody held was not said to the sink, but may be in an answer that is
    /// under way.
    fn unchanged_since(&self, since: Moment) -> bool {
        self.moment() == since
    }

    /// How long the kernel may keep an answer that was begun at `since`: for ever, unless something
    /// became stale meanwhile, which may have been this.
    fn validity(&self, since: Moment) -> Duration {
        if self.unchanged_since(since) { convert::FOREVER } else { Duration::ZERO }
    }

    fn attributes(&self, attr: &Attr, ino: INodeNo) -> FileAttr {
        convert::attributes(attr, ino, self.owner)
    }

    /// An entry as the kernel takes it, under the number that is now the kernel's to forget.
    fn handed_out(&self, entry: &Entry) -> (FileAttr, Generation) {
        let ino = self.inodes.hand_out(entry.node);
        (self.attributes(&entry.attr, ino), Generation(entry.generation))
    }
}
