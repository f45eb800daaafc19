//! Requests for attributes, access and free space.

use crate::convert::{self, errno};
use crate::name_queue::NameAccess;
use crate::ops::changes::Change;
use crate::ops::names::done;
use crate::ops::{Mount, Operation};
use afs_venus::{Access, HandleId, SetAttr};
use fuser::{AccessFlags, INodeNo, ReplyAttr, ReplyEmpty, ReplyStatfs};
use std::time::Duration;

impl Operation {
    pub(crate) async fn getattr(&self, ino: INodeNo, reply: ReplyAttr) {
        let since = self.invalidation_count();
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        let seen = self.attr_of(ino, node).await;
        self.sink.pages_invalidated(node).await;
        match seen {
            Ok(attr) => {
                let owner = self.account(&attr).await;
                let keep = self.attr_validity(owner, since, &attr);
                reply.attr(&keep, &convert::attributes(&attr, convert::ino(node), owner));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// The kernel installs the attributes of this reply even if it was notified meanwhile that they are stale. They
    /// therefore get no validity: the kernel requests them when a program needs them.
    pub(crate) async fn setattr(
        &self,
        ino: INodeNo,
        handle: Option<HandleId>,
        change: Change,
        reply: ReplyAttr,
    ) {
        let _entered = self.sink.enter(ino, NameAccess::Changes);
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        let change = match self.wanted(node, change).await {
            Ok(change) => change,
            Err(error) => return reply.error(error),
        };
        let (sets_size, changes) = (change.size.is_some(), change != SetAttr::default());
        let done = if changes { self.venus.setattr(node, handle, change).await.map(drop) } else { Ok(()) };
        self.changed_elsewhere(node, ino);
        let outcome = match done {
            Ok(()) => self.attr_of(ino, node).await,
            Err(error) => Err(error),
        };
        if !sets_size {
            // A kernel that sets the length writes no pages until the reply: it would wait for them in vain.
            self.sink.pages_invalidated(node).await;
        }
        match outcome {
            Ok(attr) => {
                let owner = self.account(&attr).await;
                reply.attr(&Duration::ZERO, &convert::attributes(&attr, convert::ino(node), owner));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// The kernel sends this for access(2) and chdir(2) only; opens and changes are checked where they are made.
    pub(crate) async fn access(&self, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let wanted = Access {
            read: mask.contains(AccessFlags::R_OK),
            write: mask.contains(AccessFlags::W_OK),
            execute: mask.contains(AccessFlags::X_OK),
        };
        match self.node(ino) {
            Ok(node) => done(self.venus.access(node, wanted).await, reply),
            Err(error) => reply.error(error),
        }
    }

    pub(crate) async fn statfs(&self, ino: INodeNo, reply: ReplyStatfs) {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.venus.statfs(node).await {
            Ok(space) => {
                let (size, free) = (space.block_bytes, space.blocks_free);
                // Volumes do not limit the number of files.
                reply.statfs(space.blocks, free, free, 0, 0, size, space.name_bytes_max, size);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }
}

impl Mount {
    /// A node was changed through `ino`: invalidates what the kernel holds for its other numbers.
    pub(super) fn changed_elsewhere(&self, node: afs_venus::NodeId, ino: INodeNo) {
        if self.inodes.numbers(node).iter().any(|other| *other != ino) && ino != convert::ino(node) {
            use afs_venus::InvalidationSink;
            self.sink.attributes(node);
        }
    }
}
