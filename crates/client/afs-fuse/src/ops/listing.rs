//! Requests on directories: listings, with attributes or without.

use crate::accounts::Account;
use crate::convert::{self, errno};
use crate::inodes::Inodes;
use crate::name_queue::NameAccess;
use crate::ops::{InvalidationCount, Mount, Operation};
use afs_venus::{DirEntry, DirEntryPlus, Entry, Kind, NodeId};
use fuser::{
    FileAttr, FileHandle, FopenFlags, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus, ReplyOpen,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Names requested at a time. The kernel's buffer takes about 130 short ones.
const NAMES_MAX: usize = 128;
/// Names with attributes requested at a time: as many as one bulk status call carries.
const STATUSES_MAX: usize = 50;

impl Operation {
    pub(crate) async fn opendir(&self, ino: INodeNo, reply: ReplyOpen) {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.venus.opendir(node).await {
            Ok(opened) => {
                let mut flags = FopenFlags::empty();
                flags.set(FopenFlags::FOPEN_CACHE_DIR, opened.caches);
                flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.keep_cache);
                reply.opened(FileHandle(u64::from(opened.caches)), flags);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn readdir(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectory) {
        let _entered = self.sink.enter(ino, NameAccess::Reads);
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.venus.readdir(node, offset, NAMES_MAX).await {
            Ok(entries) => {
                for DirEntry { next_offset, name, ino, kind } in &entries {
                    let kind = convert::file_type(kind.unwrap_or(Kind::File));
                    if reply.add(convert::ino(*ino), *next_offset, kind, OsStr::from_bytes(name)) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn readdirplus(&self, ino: INodeNo, offset: u64, mut reply: ReplyDirectoryPlus) {
        let _entered = self.sink.enter(ino, NameAccess::Reads);
        let since = self.invalidation_count();
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        let entries = match self.venus.readdirplus(node, offset, STATUSES_MAX).await {
            Ok(entries) => entries,
            Err(error) => return reply.error(errno(&error)),
        };
        // The look-ups are counted before the invalidations are compared: a later invalidation then finds them.
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            listed.push(self.listed(ino, node, entry).await);
        }
        let keep = self.listed_validity(since, ino);
        let mut full = false;
        for Listed { entry, found } in &listed {
            let keep = found.as_ref().map_or(keep, |found| keep.min(found.validity(self, since)));
            full = full || add(entry, found.as_ref(), keep, &mut reply);
            if full && let Some(found) = found {
                self.forget(found.attr.ino, 1);
            }
        }
        reply.ok();
    }

    /// An entry of a listing, handed out if its object is known.
    async fn listed(&self, dir: INodeNo, node: NodeId, entry: DirEntryPlus) -> Listed {
        let DirEntryPlus { entry, found } = entry;
        let found = match found {
            None => self.held_directory(node, &entry.name).await,
            found => found,
        };
        let Some(found) = found else { return Listed { entry, found: None } };
        let seen = self.beside_open(found).await;
        let owner = self.account(&seen.attr).await;
        let may_keep = self.leads_into(dir, &seen).await;
        let (attr, generation) = self.handed_out(&seen, owner);
        Listed { entry, found: Some(Found { attr, generation, owner, may_keep, seen }) }
    }

    /// Looks up a name that the kernel holds as a directory's, and that a listing has without attributes (a mount point, for example): with a
    /// placeholder for it, the kernel would drop the name, and unmount what is mounted there.
    async fn held_directory(&self, dir: NodeId, name: &[u8]) -> Option<Entry> {
        let held = self.venus.node_handed_out(dir, name)?;
        if self.venus.is_directory(held) { self.venus.lookup(dir, name).await.ok() } else { None }
    }
}

impl Mount {
    /// The last reference to an open directory is gone; its handle says whether it could use the kernel's copy.
    pub(crate) fn releasedir(&self, ino: INodeNo, handle: FileHandle) {
        if handle.0 != 0
            && let Ok(node) = self.node(ino)
        {
            self.venus.closedir(node);
        }
    }
}

/// One entry of a listing.
struct Listed {
    entry: DirEntry,
    found: Option<Found>,
}

/// The object of an entry in the kernel's form, counted as handed out.
struct Found {
    attr: FileAttr,
    generation: Generation,
    owner: Account,
    /// Whether the kernel may keep the name, as far as that depends on the users.
    may_keep: bool,
    seen: Entry,
}

impl Found {
    /// How long the kernel may keep the name and the attributes.
    fn validity(&self, mount: &Mount, since: InvalidationCount) -> Duration {
        if !self.may_keep {
            return Duration::ZERO;
        }
        let attr = mount.entry_validity(self.attr.ino, self.owner, since, &self.seen.attr);
        attr.min(self.seen.name_for.unwrap_or(convert::FOREVER))
    }
}

/// Adds one entry; true if the buffer is full.
fn add(entry: &DirEntry, found: Option<&Found>, validity: Duration, reply: &mut ReplyDirectoryPlus) -> bool {
    let (name, offset) = (OsStr::from_bytes(&entry.name), entry.next_offset);
    if let Some(Found { attr, generation, .. }) = found {
        return reply.add(attr.ino, offset, name, &validity, attr, *generation);
    }
    // The kernel neither keeps nor counts `.` and `..`. Any other entry gets a number that makes the kernel look the
    // name up when it is used.
    let dot = matches!(&*entry.name, b"." | b"..");
    let ino = if dot { convert::ino(entry.ino) } else { Inodes::placeholder(entry.ino) };
    let kind = if dot { Some(Kind::Directory) } else { entry.kind };
    let attr = convert::placeholder(kind, ino);
    reply.add(ino, offset, name, &Duration::ZERO, &attr, Generation(0))
}
