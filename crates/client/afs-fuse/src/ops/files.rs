//! Requests on files: open, read, write, close.

use crate::convert::{self, errno};
use crate::name_queue::NameAccess;
use crate::ops::names::done;
use crate::ops::repeated_opens::Attempt;
use crate::ops::{InvalidationCount, Mount, Operation};
use crate::passthrough::{Admission, Writes};
use afs_venus::{Entry, ErrorKind, HandleId, InvalidationSink, NodeId, OpenFlags, Opened, VenusError};
use bytes::Bytes;
use fuser::{
    BackingId, Errno, FileHandle, FopenFlags, INodeNo, LockOwner, ReplyCreate, ReplyData, ReplyEmpty,
    ReplyOpen, ReplyWrite,
};

/// A file to create and open.
pub(crate) struct Create<'a> {
    pub(crate) parent: INodeNo,
    pub(crate) name: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) flags: i32,
}

impl Operation {
    pub(crate) async fn open(&self, ino: INodeNo, flags: i32, reply: ReplyOpen) {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => {
                self.open_failed(self.open_wanted(flags)).await;
                return reply.error(error);
            }
        };
        let writes = writes_of(flags);
        let is_through = match writes {
            Writes::Plain => self.passthrough.allowed(),
            Writes::Durable => self.passthrough.is_backed(ino),
            Writes::DurableOnly => false,
        };
        let wanted = convert::open_flags(flags, is_through);
        let (opened, attempt) = self.open_or_take(node, wanted).await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                match error.kind == ErrorKind::Stale {
                    true if attempt.is_repeated => {
                        tracing::info!(?attempt, "an open got ESTALE twice: {error}")
                    }
                    true => self.expect_again(wanted),
                    false => {}
                }
                return reply.error(errno(&error));
            }
        };
        if let Some(open) = self.passthrough.handle(ino)
            && let Some(data) = self.venus.data_of(open)
        {
            self.passthrough.switched(ino, data);
        }
        let admission = match wanted.truncate || self.knows_length(ino, node, &opened, attempt) {
            true => self.admit(ino, &opened, writes, |file| reply.open_backing(file)),
            false => Admission::Conflict,
        };
        if self.venus.reads_older(opened.handle) {
            // The kernel may have been told the newest length before this open was counted.
            self.sink.attributes(node);
        }
        let flags = self.fopen_flags(ino, node, &opened, wanted.write);
        let handle = FileHandle(opened.handle.0);
        match admission {
            Admission::Through(backing) => reply.opened_passthrough(handle, through(flags), &backing),
            Admission::Cached => reply.opened(handle, flags),
            Admission::Apart(backing) => reply.opened_passthrough(handle, apart(flags), &backing),
            Admission::Conflict if attempt.is_repeated => {
                self.passthrough.open_apart(ino, opened.handle, opened.data);
                reply.opened(handle, apart(flags));
            }
            Admission::Conflict => {
                // After ESTALE the kernel looks the name up again, and then finds another inode.
                self.keep_apart(node, &opened);
                self.venus.cancel_open(opened.handle).await;
                self.expect_again(wanted);
                reply.error(Errno::ESTALE);
            }
        }
    }

    fn admit(
        &self,
        ino: INodeNo,
        opened: &Opened,
        writes: Writes,
        register: impl FnOnce(&std::fs::File) -> std::io::Result<BackingId>,
    ) -> Admission<BackingId> {
        let admission = self.passthrough.admit(ino, opened, writes, register);
        if opened.backing.is_some() && !matches!(admission, Admission::Through(_) | Admission::Apart(_)) {
            self.venus.passthrough_refused(opened.handle);
        }
        admission
    }

    pub(crate) async fn create(&self, file: Create<'_>, reply: ReplyCreate) {
        let _entered = self.sink.enter(file.parent, NameAccess::Changes);
        let since = self.invalidation_count();
        let parent = match self.node(file.parent) {
            Ok(parent) => parent,
            Err(error) => return reply.error(error),
        };
        let wanted = self.open_wanted(file.flags);
        match self.venus.create(parent, file.name, file.mode & 0o7777, wanted).await {
            Ok((entry, opened)) => self.created(&file, &entry, &opened, since, reply).await,
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn open_wanted(&self, flags: i32) -> OpenFlags {
        convert::open_flags(flags, self.passthrough.allowed() && writes_of(flags) == Writes::Plain)
    }

    async fn created(
        &self,
        file: &Create<'_>,
        entry: &Entry,
        opened: &Opened,
        since: InvalidationCount,
        reply: ReplyCreate,
    ) {
        self.negatives.exists(file.parent, file.name);
        let owner = self.account(&entry.attr).await;
        let (attr, generation) = self.handed_out(entry, owner);
        let writes = writes_of(file.flags);
        let wanted = self.open_wanted(file.flags);
        let admission =
            match wanted.truncate || self.knows_length(attr.ino, entry.node, opened, Attempt::default()) {
                true => self.admit(attr.ino, opened, writes, |file| reply.open_backing(file)),
                false => Admission::Conflict,
            };
        let ttl = self.entry_validity(attr.ino, owner, since, &entry.attr);
        let ttl = ttl.min(self.name_validity(since, file.parent));
        let flags = self.fopen_flags(attr.ino, entry.node, opened, true);
        let handle = FileHandle(opened.handle.0);
        match admission {
            Admission::Through(backing) => {
                reply.created_passthrough(&ttl, &attr, generation, handle, through(flags), &backing);
            }
            Admission::Cached => reply.created(&ttl, &attr, generation, handle, flags),
            Admission::Apart(backing) => {
                reply.created_passthrough(&ttl, &attr, generation, handle, apart(flags), &backing);
            }
            Admission::Conflict => {
                // Only if the file existed: then as for an open of it.
                self.keep_apart(entry.node, opened);
                self.forget(attr.ino, 1);
                self.venus.cancel_open(opened.handle).await;
                self.expect_again(wanted);
                reply.error(Errno::ESTALE);
            }
        }
    }
}

impl Mount {
    pub(crate) async fn read(&self, handle: HandleId, pos: u64, len: u32, asker: u32, reply: ReplyData) {
        match self.venus.for_process(asker).read(handle, pos, len as usize).await {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn write(
        &self,
        ino: INodeNo,
        handle: HandleId,
        pos: u64,
        data: Bytes,
        flags: i32,
        reply: ReplyWrite,
    ) {
        match self.written(ino, handle, pos, data, flags).await {
            Ok(length) => {
                self.after_change(ino);
                reply.written(u32::try_from(length).unwrap_or(u32::MAX));
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// A write that is durable, if its flags say so. Where the kernel has pages, it requests that itself.
    async fn written(
        &self,
        ino: INodeNo,
        handle: HandleId,
        pos: u64,
        data: Bytes,
        flags: i32,
    ) -> Result<usize, VenusError> {
        let length = self.venus.write(handle, pos, data).await?;
        if convert::writes_durably(flags) && self.passthrough.is_apart(ino, handle) {
            self.venus.fsync(handle).await?;
        }
        Ok(length)
    }

    /// The request of close(2): an error of the store is the error of close.
    pub(crate) async fn flush(
        &self,
        ino: INodeNo,
        handle: HandleId,
        owner: LockOwner,
        asker: u32,
        reply: ReplyEmpty,
    ) {
        let outcome = self.venus.for_process(asker).flush(handle, owner.0).await;
        self.after_change(ino);
        done(outcome, reply);
    }

    pub(crate) async fn fsync(&self, ino: INodeNo, handle: HandleId, asker: u32, reply: ReplyEmpty) {
        let outcome = self.venus.for_process(asker).fsync(handle).await;
        self.after_change(ino);
        done(outcome, reply);
    }

    /// Changes of names are durable at the server when their call returns, except under a lease.
    pub(crate) async fn fsync_directory(&self, ino: INodeNo, reply: ReplyEmpty) {
        let _entered = self.sink.enter(ino, NameAccess::Changes);
        match self.node(ino) {
            Ok(node) => done(self.venus.fsync_directory(node).await, reply),
            Err(error) => reply.error(error),
        }
    }

    /// `flock_owner` is given if a lock of flock(2) ends with the file.
    pub(crate) async fn release(
        &self,
        ino: INodeNo,
        handle: HandleId,
        flock_owner: Option<LockOwner>,
        reply: ReplyEmpty,
    ) {
        // The kernel has released the backing file before it sends this request.
        self.passthrough.release(ino, handle);
        if let Some(node) = self.inodes.node(ino) {
            self.settle(node);
        }
        if let Some(owner) = flock_owner {
            let _ = self.venus.unlock(handle, owner.0, afs_venus::LockRange::WHOLE).await;
        }
        let outcome = self.venus.release(handle).await;
        self.after_change(ino);
        done(outcome, reply);
    }

    pub(super) fn after_change(&self, ino: INodeNo) {
        if let Some(node) = self.inodes.node(ino) {
            self.changed_elsewhere(node, ino);
        }
    }

    /// The kernel returns look-ups.
    pub(crate) fn forget(&self, ino: INodeNo, lookups: u64) {
        let Some(node) = self.inodes.forget(ino, lookups, |ino| self.passthrough.is_open(ino)) else {
            return;
        };
        self.venus.forget(node, lookups);
        if self.venus.lookups(node) == 0 {
            // The object may have been removed: a registered backing file keeps its space on the disk.
            self.passthrough.stale(ino);
            self.inodes.evicted(node);
            self.lengths.evicted(node);
        }
    }

    /// The opened data does not go with what is open under the same number. After ESTALE the kernel looks the name up
    /// once more, gets a number under which the data can be opened, and opens that, once.
    pub(super) fn keep_apart(&self, node: NodeId, opened: &Opened) {
        let current = self.inodes.current(node);
        if !self.passthrough.goes_with(current, opened.data, opened.backing.as_ref()) {
            self.inodes.renumber(node);
            // The open file that was in conflict may have been closed meanwhile.
            self.settle(node);
        }
    }

    fn settle(&self, node: NodeId) {
        self.inodes.settle(node, |ino| self.passthrough.is_open(ino));
    }

    /// Pages are kept between opens as long as Venus says that they are valid. The close of a reader stores nothing, so
    /// the kernel need not send a FLUSH for it.
    fn fopen_flags(&self, ino: INodeNo, node: NodeId, opened: &Opened, writes: bool) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        if self.inodes.has_latest_pages(ino, node) && opened.keep_cache {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if !writes {
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        flags
    }
}

/// What an open with these flags writes.
fn writes_of(flags: i32) -> Writes {
    match (convert::writes_durably(flags), flags & libc::O_ACCMODE) {
        (false, _) => Writes::Plain,
        (true, libc::O_WRONLY) => Writes::DurableOnly,
        (true, _) => Writes::Durable,
    }
}

/// Flags of an open that shares nothing with the others of its inode: each read and write is a request.
fn apart(flags: FopenFlags) -> FopenFlags {
    through(flags) | FopenFlags::FOPEN_DIRECT_IO
}

/// Flags of a passthrough open: the kernel refuses any flag about its page cache, which is not used then.
fn through(flags: FopenFlags) -> FopenFlags {
    flags & FopenFlags::FOPEN_NOFLUSH
}
