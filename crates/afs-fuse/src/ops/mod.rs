//! The operations, by the noun they work on. Each owns its reply and may wait.

mod attributes;
mod changes;
mod files;
mod holes;
mod listing;
mod locks;
mod names;
mod xattrs;

use crate::accounts::{Account, Accounts};
use crate::convert;
use crate::inodes::Inodes;
use crate::negative_entries::NegativeEntries;
use crate::passthrough::Passthrough;
use crate::sink::{Epoch, KernelSink};
use afs_env::EnvRef;
use afs_venus::{Attr, Entry, NodeId, Requester, Venus};
use fuser::{Errno, FileAttr, Generation, INodeNo};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use changes::Change;
pub(crate) use files::Create;
pub(crate) use locks::LockRequest;

/// A moment in the history of what has become stale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidationCount {
    venus: u64,
    sink: Epoch,
}

/// What every operation of one mount needs. What is done through a handle is done for whoever opened it, and needs
/// nothing else.
pub(crate) struct Mount {
    pub(crate) venus: Arc<Venus>,
    pub(crate) sink: KernelSink,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) negatives: Arc<NegativeEntries>,
    pub(crate) passthrough: Arc<Passthrough>,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) env: EnvRef,
    /// Other users of this machine are let in.
    pub(crate) allow_other: bool,
}

/// One request: the mount, and Venus speaking for whoever asks.
pub(crate) struct Operation {
    mount: Arc<Mount>,
    venus: Venus,
}

impl Operation {
    pub(crate) async fn of(mount: Arc<Mount>, requester: Requester) -> Self {
        let venus = mount.venus.on_behalf_of(requester).await;
        Self { mount, venus }
    }
}

impl Deref for Operation {
    type Target = Mount;

    fn deref(&self) -> &Mount {
        &self.mount
    }
}

impl Mount {
    /// The node behind an inode number; ESTALE, which makes the kernel look up again, for a placeholder.
    fn node(&self, ino: INodeNo) -> Result<NodeId, Errno> {
        self.inodes.node(ino).ok_or(Errno::ESTALE)
    }

    /// The present moment, for [`Mount::validity`]: taken before anything is asked.
    fn invalidation_count(&self) -> InvalidationCount {
        InvalidationCount { venus: self.venus.invalidations(), sink: self.sink.epoch() }
    }

    /// Whether nothing has become stale since. What nobody held was not said to the sink, but may be in an answer that is
    /// under way.
    fn unchanged_since(&self, since: InvalidationCount) -> bool {
        self.invalidation_count() == since
    }

    /// How long the kernel may keep an answer that was begun at `since`: for ever, unless something
    /// became stale meanwhile, which may have been this, or the next one who asks may get another answer.
    fn validity(&self, since: InvalidationCount, is_public: bool) -> Duration {
        let may_keep = (is_public || self.is_private()) && self.unchanged_since(since);
        if may_keep { convert::FOREVER } else { Duration::ZERO }
    }

    /// As [`Mount::validity`], for attributes that come with a look-up. An alias is its own inode number there, while
    /// programs are to see that of the node: the kernel asks for the attributes.
    fn entry_validity(
        &self,
        ino: INodeNo,
        owner: Account,
        since: InvalidationCount,
        is_public: bool,
    ) -> Duration {
        if Inodes::is_reserved(ino) { Duration::ZERO } else { self.attr_validity(owner, since, is_public) }
    }

    /// As [`Mount::validity`], for attributes: an owner that is not settled is asked for again.
    fn attr_validity(&self, owner: Account, since: InvalidationCount, is_public: bool) -> Duration {
        if owner.is_settled { self.validity(since, is_public) } else { Duration::ZERO }
    }

    /// Whether everybody who can ask has the same rights.
    fn is_private(&self) -> bool {
        !self.allow_other && !self.venus.has_sessions()
    }

    /// How long the kernel may keep a name of a directory, and that there is none.
    fn name_validity(&self, since: InvalidationCount, directory: INodeNo) -> Duration {
        let is_public =
            self.is_private() || self.node(directory).is_ok_and(|dir| self.venus.names_are_public(dir));
        self.validity(since, is_public)
    }

    /// As whom the owner of something is shown.
    async fn account(&self, attr: &Attr) -> Account {
        self.accounts.account(attr.owner).await
    }

    /// An entry as the kernel takes it, under the number that is now the kernel's to forget.
    fn handed_out(&self, entry: &Entry, owner: Account) -> (FileAttr, Generation) {
        let ino = self.inodes.hand_out(entry.node);
        (convert::attributes(&entry.attr, ino, owner), Generation(entry.generation))
    }
}
