//! Operations of a mount, a file for each kind of object. Each operation owns its reply and may wait.

mod attributes;
mod changes;
mod files;
mod holes;
mod listing;
mod locks;
mod names;
mod repeated_opens;

use crate::accounts::{Account, Accounts};
use crate::convert;
use crate::inodes::Inodes;
use crate::lengths::Lengths;
use crate::negative_entries::NegativeEntries;
use crate::passthrough::Passthrough;
use crate::renewals::Renewals;
use crate::sink::{Epoch, KernelSink};
use afs_env::EnvRef;
use afs_venus::{Attr, Entry, Kind, NodeId, OpenAttr, Requester, Venus, VenusError};
use fuser::{Errno, FileAttr, Generation, INodeNo};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use changes::Change;
pub(crate) use files::Create;
pub(crate) use locks::LockRequest;
pub(crate) use repeated_opens::RepeatedOpens;

/// Counters of invalidations at a point in time, to detect later ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidationCount {
    venus: u64,
    sink: Epoch,
}

/// State that every operation of one mount needs. An operation on a handle acts for the user who opened it, and needs
/// nothing else.
pub(crate) struct Mount {
    pub(crate) venus: Arc<Venus>,
    pub(crate) sink: KernelSink,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) lengths: Arc<Lengths>,
    pub(crate) negatives: Arc<NegativeEntries>,
    pub(crate) passthrough: Arc<Passthrough>,
    pub(crate) renewals: Renewals,
    pub(crate) accounts: Arc<dyn Accounts>,
    pub(crate) repeated: RepeatedOpens,
    pub(crate) env: EnvRef,
    /// Other users of this machine may use the mount.
    pub(crate) allow_other: bool,
}

/// One request: the mount, and Venus acting for the requester.
pub(crate) struct Operation {
    mount: Arc<Mount>,
    venus: Venus,
    /// The thread that waits for the reply.
    thread: u32,
}

impl Operation {
    pub(crate) async fn of(mount: Arc<Mount>, requester: Requester) -> Self {
        let (venus, thread) = (mount.venus.on_behalf_of(requester).await, requester.pid);
        Self { mount, venus, thread }
    }
}

impl Operation {
    /// Attributes to tell of an inode: those of the data by which it is open.
    async fn attr_of(&self, ino: INodeNo, node: NodeId) -> Result<Attr, VenusError> {
        match self.passthrough.handle(ino) {
            None => self.venus.getattr(node).await,
            Some(open) => self.venus.getattr_open(node, open).await.map(|open| open.attr),
        }
    }

    /// An entry as it is now, to be handed out. If its inode is open in a version that it keeps, it gets another number from now on.
    async fn beside_open(&self, entry: Entry) -> Entry {
        let Some(open) = self.passthrough.handle(self.inodes.current(entry.node)) else { return entry };
        let seen = self.venus.getattr_open(entry.node, open).await;
        self.sink.pages_invalidated(entry.node).await;
        match seen {
            Ok(OpenAttr { attr, is_current: true }) => Entry { attr, ..entry },
            _ => {
                self.inodes.renumber(entry.node);
                entry
            }
        }
    }

    /// Admits the requester to a directory that was found in another one. Returns whether the kernel may keep the entry,
    /// as far as that depends on the users. Before [`Mount::validity`]: this may invalidate.
    async fn leads_into(&self, parent: INodeNo, entry: &Entry) -> bool {
        let Ok(dir) = self.node(parent) else { return true };
        if entry.attr.kind != Kind::Directory || !self.admits() {
            return true;
        }
        let admission = self.venus.admit(dir, entry.node);
        if admission.has_new_users {
            let ino = self.inodes.current(entry.node);
            self.sink.look_up_again(ino, entry.node, self.renewals.is_recent(ino, self.env.now())).await;
        }
        admission.may_keep_entry
    }
}

impl Deref for Operation {
    type Target = Mount;

    fn deref(&self) -> &Mount {
        &self.mount
    }
}

impl Mount {
    /// The node of an inode number; for a placeholder ESTALE, after which the kernel looks the name up again.
    fn node(&self, ino: INodeNo) -> Result<NodeId, Errno> {
        self.inodes.node(ino).ok_or(Errno::ESTALE)
    }

    /// The present counters, for [`Mount::validity`]: read before the operation asks for anything.
    fn invalidation_count(&self) -> InvalidationCount {
        InvalidationCount { venus: self.venus.invalidations(), sink: self.sink.epoch() }
    }

    /// Whether there was no invalidation since. One for an object that the kernel does not hold is not passed to the
    /// sink, but may concern a reply in progress; Venus counts these.
    fn unchanged_since(&self, since: InvalidationCount) -> bool {
        self.invalidation_count() == since
    }

    /// How long the kernel may keep a reply that was begun at `since`: without limit, unless there was an invalidation
    /// meanwhile, which may concern it, or another user may get another reply.
    fn validity(&self, since: InvalidationCount, is_public: bool) -> Duration {
        let may_keep = (is_public || self.has_one_user()) && self.unchanged_since(since);
        if may_keep { convert::FOREVER } else { Duration::ZERO }
    }

    /// As [`Mount::validity`], for attributes that come with a look-up. Those of an alias have its own inode number,
    /// but programs must see that of the node: the kernel has to request the attributes.
    fn entry_validity(
        &self,
        ino: INodeNo,
        owner: Account,
        since: InvalidationCount,
        attr: &Attr,
    ) -> Duration {
        if Inodes::is_reserved(ino) { Duration::ZERO } else { self.attr_validity(owner, since, attr) }
    }

    /// As [`Mount::validity`], for attributes: an owner that is not settled is requested again, and so is what belongs to an older version
    /// than the newest.
    fn attr_validity(&self, owner: Account, since: InvalidationCount, attr: &Attr) -> Duration {
        let may_keep = owner.is_settled && !attr.is_older;
        if may_keep { self.validity(since, self.is_shown_to_all(attr)) } else { Duration::ZERO }
    }

    /// Whether all users of the mount have the same rights.
    fn has_one_user(&self) -> bool {
        !self.allow_other && !self.venus.has_sessions()
    }

    /// Whether this mount keeps account of the users whom the kernel leads into directories ([`Venus::admit`]).
    fn admits(&self) -> bool {
        self.allow_other && self.sink.can_invalidate_all_names()
    }

    /// Whether what is shown to all users who were admitted may be kept. A process of a session begins where its user
    /// was, and is not noticed.
    fn keeps_shared(&self) -> bool {
        self.admits() && !self.venus.has_sessions()
    }

    /// How long the kernel may keep a name of a directory, or that there is no such name.
    fn name_validity(&self, since: InvalidationCount, directory: INodeNo) -> Duration {
        let is_shown = |dir| {
            self.venus.names_are_public(dir) || (self.keeps_shared() && self.venus.names_are_shared(dir))
        };
        let is_shown_to_all = self.has_one_user() || self.node(directory).is_ok_and(is_shown);
        self.validity(since, is_shown_to_all)
    }

    /// The same of the names in a listing with attributes. The kernel installs these with the epoch at which it has read the
    /// reply, so that what is not public could be kept although another user was admitted meanwhile.
    fn listed_validity(&self, since: InvalidationCount, directory: INodeNo) -> Duration {
        let is_public =
            self.has_one_user() || self.node(directory).is_ok_and(|dir| self.venus.names_are_public(dir));
        self.validity(since, is_public)
    }

    /// Whether all users whom the kernel may show the attributes may see them.
    fn is_shown_to_all(&self, attr: &Attr) -> bool {
        attr.is_public || (self.keeps_shared() && self.venus.attributes_are_shared(attr.node))
    }

    /// User of this machine as which the owner of an object is shown.
    async fn account(&self, attr: &Attr) -> Account {
        match attr.is_home {
            true => self.accounts.account(attr.owner).await,
            false => self.accounts.foreign_account(attr.owner).await,
        }
    }

    /// An entry in the kernel's form; its number is counted as handed out.
    fn handed_out(&self, entry: &Entry, owner: Account) -> (FileAttr, Generation) {
        let ino = self.inodes.hand_out(entry.node);
        (convert::attributes(&entry.attr, ino, owner), Generation(entry.generation))
    }
}
