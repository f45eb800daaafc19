//! Requests on names: look-up, creation, removal, renaming.

use crate::convert::{self, errno};
use crate::inodes::Inodes;
use crate::name_queue::NameAccess;
use crate::ops::{InvalidationCount, Mount, Operation};
use crate::renewals;
use crate::sink::DirectoryRequest;
use afs_venus::{Entry, ErrorKind, Kind, VenusError};
use fuser::{Errno, Generation, INodeNo, RenameFlags, ReplyData, ReplyEmpty, ReplyEntry};
use std::time::Duration;

impl Operation {
    pub(crate) async fn lookup(&self, parent: INodeNo, name: &[u8], reply: ReplyEntry) {
        let _entered = self.sink.enter(parent, NameAccess::Reads);
        let since = self.invalidation_count();
        let directory = match self.node(parent) {
            Ok(directory) => directory,
            Err(error) => return reply.error(error),
        };
        let is_held = self.venus.node_handed_out(directory, name).is_some();
        match self.look_up(directory, name).await {
            Ok(entry) => {
                let term = if is_held { self.renewed(parent, &entry) } else { convert::FOREVER };
                self.entry((parent, name), entry, term, since, reply).await
            }
            Err(error) if error.kind == ErrorKind::NotFound => self.missing(parent, name, since, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    async fn entry(
        &self,
        (parent, name): (INodeNo, &[u8]),
        entry: Entry,
        term: Duration,
        since: InvalidationCount,
        reply: ReplyEntry,
    ) {
        self.negatives.exists(parent, name);
        let entry = self.beside_open(entry).await;
        let owner = self.account(&entry.attr).await;
        let (attr, generation) = self.handed_out(&entry, owner);
        let may_keep = self.leads_into(parent, &entry).await;
        let keep = self.entry_validity(attr.ino, owner, since, &entry.attr);
        let keep_name = if may_keep { self.name_validity(since, parent) } else { Duration::ZERO };
        let name = keep_name.min(entry.name_for.unwrap_or(convert::FOREVER)).min(term);
        reply.entry_with_ttls(&keep, &name, &attr, generation);
    }

    /// How long the kernel may keep a name that it held before this look-up; see [`renewals`].
    fn renewed(&self, parent: INodeNo, entry: &Entry) -> Duration {
        match entry.attr.kind == Kind::Directory {
            false => convert::FOREVER,
            true if self.allow_other && !self.renewals.note(parent, self.env.now()) => Duration::ZERO,
            true => renewals::TERM,
        }
    }

    /// Reply ENOENT that the kernel may keep: an entry with inode number 0.
    fn missing(&self, parent: INodeNo, name: &[u8], since: InvalidationCount, reply: ReplyEntry) {
        if self.name_validity(since, parent) == Duration::ZERO {
            return reply.error(Errno::ENOENT);
        }
        // Recorded first: a later invalidation then finds it.
        if let Some((directory, names)) = self.negatives.note(parent, name) {
            self.sink.invalidate_names(directory, names);
        }
        if !self.unchanged_since(since) {
            return reply.error(Errno::ENOENT);
        }
        let nobody = convert::placeholder(None, INodeNo(0));
        reply.entry_with_ttls(&Duration::ZERO, &convert::FOREVER, &nobody, Generation(0));
    }

    async fn made(
        &self,
        (parent, name): (INodeNo, &[u8]),
        outcome: Result<Entry, VenusError>,
        since: InvalidationCount,
        reply: ReplyEntry,
    ) {
        match outcome {
            Ok(entry) => self.entry((parent, name), entry, convert::FOREVER, since, reply).await,
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn mkdir(&self, parent: INodeNo, name: &[u8], mode: u32, reply: ReplyEntry) {
        let _entered = self.sink.enter(parent, NameAccess::Changes);
        let since = self.invalidation_count();
        match self.node(parent) {
            Ok(node) => {
                let made = self.venus.mkdir(node, name, mode & 0o7777).await;
                self.made((parent, name), made, since, reply).await
            }
            Err(error) => reply.error(error),
        }
    }

    /// Creates plain files only: AFS has no devices, sockets or pipes (docs/protocol/client.md "2. Name space: /afs").
    pub(crate) async fn mknod(&self, parent: INodeNo, name: &[u8], mode: u32, reply: ReplyEntry) {
        let _entered = self.sink.enter(parent, NameAccess::Changes);
        let since = self.invalidation_count();
        if mode & libc::S_IFMT != libc::S_IFREG && mode & libc::S_IFMT != 0 {
            return reply.error(Errno::EPERM);
        }
        match self.node(parent) {
            Ok(node) => {
                let made = self.venus.mknod(node, name, mode & 0o7777).await;
                self.made((parent, name), made, since, reply).await
            }
            Err(error) => reply.error(error),
        }
    }

    pub(crate) async fn symlink(&self, parent: INodeNo, name: &[u8], target: &[u8], reply: ReplyEntry) {
        let _entered = self.sink.enter(parent, NameAccess::Changes);
        let since = self.invalidation_count();
        match self.node(parent) {
            Ok(node) => match self.venus.symlink(node, name, target).await {
                Ok(entry) if entry.attr.kind != Kind::Symlink => self.mount_point_made(&entry, reply),
                outcome => self.made((parent, name), outcome, since, reply).await,
            },
            Err(error) => reply.error(error),
        }
    }

    /// A link whose text makes it a mount point is a directory for every look-up, but the kernel insists on the type
    /// that it requested. It gets a link, without validity, so that it looks the name up again.
    fn mount_point_made(&self, entry: &Entry, reply: ReplyEntry) {
        let ino = Inodes::placeholder(entry.node);
        self.venus.forget(entry.node, 1);
        let attr = convert::placeholder(Some(Kind::Symlink), ino);
        reply.entry(&Duration::ZERO, &attr, Generation(0));
    }

    /// The attributes are those of an inode that the kernel knows, and it would install them even if it was notified
    /// meanwhile that they are stale. The name gets a validity, the attributes none.
    pub(crate) async fn link(&self, ino: INodeNo, parent: INodeNo, name: &[u8], reply: ReplyEntry) {
        let _entered = self.sink.enter(parent, NameAccess::Changes);
        let since = self.invalidation_count();
        match self.node(ino).and_then(|node| Ok((node, self.node(parent)?))) {
            Ok((node, dir)) => match self.venus.link(node, dir, name).await {
                Ok(entry) => {
                    self.negatives.exists(parent, name);
                    let entry = self.beside_open(entry).await;
                    let owner = self.account(&entry.attr).await;
                    let (attr, generation) = self.handed_out(&entry, owner);
                    let keep = self.name_validity(since, parent);
                    reply.entry_with_ttls(&Duration::ZERO, &keep, &attr, generation);
                }
                Err(error) => reply.error(errno(&error)),
            },
            Err(error) => reply.error(error),
        }
    }

    pub(crate) async fn readlink(&self, ino: INodeNo, reply: ReplyData) {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.venus.readlink(node).await {
            Ok(text) => reply.data(&text),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn unlink(&self, parent: INodeNo, name: &[u8], reply: ReplyEmpty) {
        let _entered = self.sink.enter(parent, NameAccess::Changes);
        match self.node(parent) {
            Ok(node) => done(self.venus.unlink(node, name).await, reply),
            Err(error) => reply.error(error),
        }
    }

    pub(crate) async fn rmdir(&self, parent: INodeNo, name: &[u8], reply: ReplyEmpty) {
        let _entered = (self.sink.enter(parent, NameAccess::Changes), self.enter_target(parent, name));
        match self.node(parent) {
            Ok(node) => done(self.venus.rmdir(node, name).await, reply),
            Err(error) => reply.error(error),
        }
    }

    /// The protocol cannot exchange two names.
    pub(crate) async fn rename(
        &self,
        from: (INodeNo, &[u8]),
        to: (INodeNo, &[u8]),
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let _entered =
            (self.sink.enter(from.0, NameAccess::Changes), self.sink.enter(to.0, NameAccess::Changes));
        let _targets = (self.enter_target(from.0, from.1), self.enter_target(to.0, to.1));
        let since = self.invalidation_count();
        let (old, new) = match self.node(from.0).and_then(|old| Ok((old, self.node(to.0)?))) {
            Ok(both) => both,
            Err(error) => return reply.error(error),
        };
        if flags.intersects(!RenameFlags::RENAME_NOREPLACE) {
            return reply.error(Errno::EINVAL);
        }
        let outcome = match flags.contains(RenameFlags::RENAME_NOREPLACE) {
            true => self.venus.rename_new(old, from.1, new, to.1).await,
            false => self.venus.rename(old, from.1, new, to.1).await,
        };
        if outcome.is_ok() {
            if from.0 != to.0 && self.admits() {
                self.venus.moved_into(new, to.1);
            }
            self.negatives.exists(to.0, to.1);
            self.sink.renamed(to.0, to.1, !self.unchanged_since(since));
        }
        done(outcome, reply);
    }
}

impl Mount {
    /// A request also holds the lock of what a name refers to: of a directory that it removes, replaces or moves.
    fn enter_target(&self, parent: INodeNo, name: &[u8]) -> Option<DirectoryRequest<'_>> {
        let target = self.venus.node_handed_out(self.inodes.node(parent)?, name)?;
        Some(self.sink.enter(convert::ino(target), NameAccess::Changes))
    }
}

/// The reply of an operation without a result.
pub(super) fn done(outcome: Result<(), VenusError>, reply: ReplyEmpty) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}
