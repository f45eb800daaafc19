//! Opening files.

use afs_rpc::boxed;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::{FileKind, Status};

use crate::api::{Access, Backing, NodeId, OpenFlags, Opened};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::venus::Venus;
use crate::venus::attributes::may;
use crate::vnode::Vnode;

/// ENOTCONN: what the kernel returns for a mount whose process has ended.
const NOT_CONNECTED: i32 = 107;

impl Venus {
    /// Opens a file: the newest version, unless this machine has dirty data of it.
    #[boxed]
    pub async fn open(&self, node: NodeId, flags: OpenFlags) -> Result<Opened> {
        let me = self.reading_unless(flags.write || flags.truncate);
        let vnode = self.vnode(self.key(node, "open")?);
        let status = me.status_or_dirty(&vnode).await?;
        me.check_open(&vnode, &status, flags).await?;
        self.grow_open(&vnode, &status).await;
        self.open_checked(&vnode, &status, flags, false).await
    }

    /// Opens a file that was just created, without calls to a server.
    pub(super) async fn open_new(&self, node: NodeId, flags: OpenFlags) -> Result<Opened> {
        let vnode = self.vnode(self.key(node, "open")?);
        let status = vnode.state().status;
        match status {
            Some(status) => {
                self.open_checked(&vnode, &status, OpenFlags { truncate: false, ..flags }, true).await
            }
            None => self.open(node, flags).await,
        }
    }

    async fn check_open(&self, vnode: &Arc<Vnode>, status: &Status, flags: OpenFlags) -> Result<()> {
        let refuse = |kind| Err(VenusError::new(kind, "open").of(vnode.key.fid));
        match status.kind {
            FileKind::File => {}
            FileKind::Directory => return refuse(ErrorKind::IsDirectory),
            FileKind::Symlink | FileKind::Invalid => return refuse(ErrorKind::Loop),
        }
        let writes = flags.write || flags.truncate;
        if writes && !self.volume_of(vnode.key).await?.is_writable() {
            return refuse(ErrorKind::ReadOnly);
        }
        // The kernel refuses writers of a program that runs, but asks for this truncation before it looks.
        if flags.truncate && !flags.write && self.files.is_executed(vnode.key) {
            return refuse(ErrorKind::Executed);
        }
        let wanted = Access { read: flags.read && !flags.write, write: writes, execute: false };
        // execve(2) needs x or r, and arrives here as an open for reading.
        let run = Access { execute: true, ..Access::default() };
        let enough = |rights| may(status, rights, wanted) || (!writes && may(status, rights, run));
        self.require(vnode, status, "open", enough).await
    }

    async fn open_checked(
        &self,
        vnode: &Arc<Vnode>,
        status: &Status,
        flags: OpenFlags,
        is_new: bool,
    ) -> Result<Opened> {
        if self.is_closing() && (flags.write || flags.truncate) {
            // Nothing would store the data, and the loss would go unnoticed.
            return Err(VenusError::new(ErrorKind::Refused(NOT_CONNECTED), "open").of(vnode.key.fid));
        }
        self.await_late_release(vnode, status).await?;
        self.apply_rules(vnode, status.length);
        let handle = self.files.open_handle(vnode, status, flags, self.context.user).await?;
        if handle.may_change() {
            // What grows does so before the first write: none begins while there is a writer.
            drop(handle.data().growing.lock().await);
        }
        let backing = match self.prepare(&handle, is_new).await {
            Ok(backing) => backing,
            Err(error) => {
                self.cancel_open(handle.id).await;
                return Err(error);
            }
        };
        let keep_cache = self.files.keeps_pages(&handle);
        Ok(Opened { handle: handle.id, keep_cache, data: handle.data().file.id(), backing })
    }

    /// Truncates, fetches and decides on passthrough, according to the flags.
    async fn prepare(&self, handle: &Arc<Handle>, is_new: bool) -> Result<Option<Backing>> {
        let (vnode, flags) = (&handle.vnode, handle.flags);
        let length = self.cut_to_open(handle).await?;
        let data = handle.data();
        let small = length <= self.limits.chunk_bytes;
        let through = flags.passthrough && !self.never_through(handle, &data);
        let file = data.file.file().filter(|_| through);
        let rewrites = flags.write && length > self.limits.passthrough_rewrite_bytes_max;
        let reads = flags.read && !self.bypasses(handle, &data);
        let wants_all = small && (reads || (file.is_some() && !rewrites));
        if wants_all && !vnode.state().file.is_orphan() {
            let fetched = self.fetch_range(handle, 0..length).await;
            self.unless_past_the_cache(handle, &data, fetched)?;
        } else if wants_all && !data.content().is_complete() {
            // It was removed before all of it was here: the caller looks the name up again.
            return Err(VenusError::new(ErrorKind::Stale, "open").of(vnode.key.fid));
        }
        // The version may have changed during the fetch.
        let data = handle.data();
        let file = data.file.file().filter(|_| through);
        // The cache keeps nothing of a file that was just created.
        if flags.write && !is_new && !flags.truncate {
            self.files.prepare_change(vnode.key, &data).await?;
        }
        let complete = data.content().is_complete();
        data.whole.fetch_or(complete, Ordering::SeqCst);
        let Some(file) = file.filter(|_| complete && !rewrites) else { return Ok(None) };
        data.backed.store(true, Ordering::SeqCst);
        if flags.write {
            self.files.start_passthrough(handle).await?;
        }
        Ok(Some(Backing { file, id: data.file.id() }))
    }

    /// Truncates the file if the flags say so; returns its length.
    async fn cut_to_open(&self, handle: &Handle) -> Result<u64> {
        let data = handle.data();
        if handle.flags.truncate {
            self.files.prepare_change(handle.vnode.key, &data).await?;
            handle.note_cut_at_open();
            self.files.cut(&data, 0).await?;
        }
        let length = data.content().length;
        Ok(length)
    }
}
