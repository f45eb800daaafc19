//! Requests on directories: listings, with attributes or without.

use crate::accounts::Account;
use crate::convert::{self, errno};
use crate::inodes::Inodes;
use crate::ops::{Mount, Operation};
use afs_venus::{DirEntry, DirEntryPlus, Kind};
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
        let _entered = self.sink.enter(ino);
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
        let _entered = self.sink.enter(ino);
        let since = self.invalidation_count();
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.venus.readdirplus(node, offset, STATUSES_MAX).await {
            Ok(mut entries) => {
                let mut owners = Vec::with_capacity(entries.len());
                for entry in &mut entries {
                    owners.push(match entry.found.take() {
                        Some(found) => {
                            let found = self.beside_open(found).await;
                            let owner = self.account(&found.attr).await;
                            entry.found = Some(found);
                            Some(owner)
                        }
                        None => None,
                    });
                }
                // The look-up is counted before the invalidations are compared: a later invalidation then finds it.
                let give = |(entry, owner): (DirEntryPlus, Option<Account>)| {
                    let found = entry.found.zip(owner).map(|(found, owner)| {
                        let leads = self.leads_into(ino, &found);
                        (self.handed_out(&found, owner), (leads, found.attr), owner)
                    });
                    (found, entry.entry)
                };
                let given: Vec<_> = entries.into_iter().zip(owners).map(give).collect();
                let keep = self.listed_validity(since, ino);
                let mut full = false;
                for (found, entry) in &given {
                    let keep = found.as_ref().map_or(keep, |((attr, _), (leads, seen), owner)| {
                        let valid = self.entry_validity(attr.ino, *owner, since, seen);
                        keep.min(if *leads { valid } else { Duration::ZERO })
                    });
                    full = full || add(entry, found.as_ref().map(|(found, ..)| found), keep, &mut reply);
                    if full && let Some(((attr, _), ..)) = found {
                        self.forget(attr.ino, 1);
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(errno(&error)),
        }
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

/// Adds one entry; true if the buffer is full.
fn add(
    entry: &DirEntry,
    found: Option<&(FileAttr, Generation)>,
    validity: Duration,
    reply: &mut ReplyDirectoryPlus,
) -> bool {
    let (name, offset) = (OsStr::from_bytes(&entry.name), entry.next_offset);
    if let Some((attr, generation)) = found {
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
