//! Open files and newer versions: a file that grows elsewhere grows here, any other keeps the version that is open.
//!
//! A version that begins with all of the open one is put behind it, in the same cache file, so that handles, mappings and a kernel that
//! reads the file itself go on with it. The bytes come first, then the invalidation of the pages that end before them, then the length.
//! The bytes of a short file are compared; of a longer one the server tells whether it has only grown. Data that was never all here has no
//! version to keep: its handles switch to the newest one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::sync::Notify;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Status};
use bytes::Bytes;

use crate::api::{HandleId, NodeId, OpenAttr};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::{Key, NodeTarget};
use crate::transfer::{FETCH, Wanted, directory_of};
use crate::venus::Venus;
use crate::venus::attributes::show_version;
use crate::venus::fetch::VERSIONS_MAX;
use crate::vnode::Vnode;

/// What became of the bytes that a version adds.
enum Put {
    /// They are behind the data.
    Whole,
    /// The version does not begin with the data.
    Differs,
    /// The server has a newer version.
    Overtaken,
}

impl Venus {
    /// Attributes of a node for those who have it open by `open`: the size is that of the data which this handle reads. Data that may grow
    /// to the newest version does so first.
    pub async fn getattr_open(&self, node: NodeId, open: HandleId) -> Result<OpenAttr> {
        let Ok(handle) = self.files.handle(open, "fstat") else {
            return Ok(OpenAttr { attr: self.getattr(node).await?, is_current: true });
        };
        let vnode = &handle.vnode;
        self.files.note_kernel_writes(vnode).await?;
        let status = self.reading().status_while_open(vnode).await?;
        self.promises.invalidate_if_unpromised(NodeTarget::Object(vnode.key));
        if let Err(error) = self.as_user(handle.user).bring_along(&handle, &status).await {
            tracing::debug!(%error, fid = %vnode.key.fid, "an open file keeps its version");
        }
        Ok(self.attr_of(node, &handle, &status))
    }

    /// Number of the data that a handle reads, see [`crate::Opened::data`]. `None`: the handle was released.
    pub fn data_of(&self, open: HandleId) -> Option<u64> {
        let handle = self.files.handle(open, "open").ok()?;
        self.files.go_on(&handle, || self.drop_pages(handle.vnode.key)).ok()?;
        Some(handle.data().file.id())
    }

    /// Whether the server is known to have a newer version than the one that a handle reads.
    pub fn reads_older(&self, open: HandleId) -> bool {
        self.files.handle(open, "open").is_ok_and(|handle| {
            let newest = handle.vnode.state().status;
            newest.is_some_and(|status| handle.data().content().version < status.data_version)
        })
    }

    /// Gives a handle the newest version, as far as it takes it.
    async fn bring_along(&self, handle: &Arc<Handle>, status: &Status) -> Result<()> {
        self.grow_open(&handle.vnode, status).await;
        let data = handle.data();
        let is_older = data.content().version < status.data_version;
        if is_older && data.goes_on() && !handle.vnode.state().file.is_orphan() {
            self.switch_to_current(handle, status).await?;
        }
        Ok(())
    }

    fn attr_of(&self, node: NodeId, handle: &Handle, status: &Status) -> OpenAttr {
        let vnode = &handle.vnode;
        let data = handle.data();
        let (status, is_current) = {
            let state = vnode.state();
            let is_current = state.file.data().is_some_and(|current| Arc::ptr_eq(current, &data));
            (state.status.unwrap_or(*status), is_current)
        };
        let mut attr = self.attr(vnode.key, node, &status);
        let is_shared = {
            let content = data.content();
            let is_ours = content.is_dirty() || content.uses.writers() > 0;
            is_current && (is_ours || content.version == status.data_version)
        };
        if !is_shared {
            show_version(&mut attr, &data);
            if !data.shown_older.swap(true, Ordering::SeqCst) {
                // Who goes by a name is to get the newest version, under another inode number.
                self.kernel.invalidate_names_of(vnode.key);
            }
        }
        OpenAttr { attr, is_current: is_shared }
    }

    /// The kernel loses its pages of a file.
    pub(super) fn drop_pages(&self, key: Key) {
        let _is_held = self.kernel.invalidate_data(key);
    }

    /// Switches a handle to the newest version; the kernel loses its pages of the older one.
    pub(super) async fn switch_to_current(&self, handle: &Handle, status: &Status) -> Result<Arc<FileData>> {
        let invalidate = || self.drop_pages(handle.vnode.key);
        self.files.switch_to_current(handle, status, invalidate).await
    }

    /// Makes open data the version of this status, if that begins with it. Runs to its end even if the caller gives up: what was put
    /// behind the data must not stay there.
    pub(super) async fn grow_open(&self, vnode: &Arc<Vnode>, status: &Status) {
        if self.files.may_grow(vnode, status).is_none() {
            return;
        }
        let done = Arc::new(Notify::new());
        let ended = done.clone().notified_owned();
        let (me, vnode, status) = (self.as_user(self.context.user), vnode.clone(), *status);
        self.env.spawn(Box::pin(async move {
            if let Err(error) = me.grow(&vnode, &status).await {
                tracing::debug!(%error, fid = %vnode.key.fid, "an open file does not grow");
            }
            done.notify_waiters();
        }));
        ended.await;
    }

    async fn grow(&self, vnode: &Arc<Vnode>, status: &Status) -> Result<()> {
        let mut status = *status;
        for _ in 0..VERSIONS_MAX {
            let Some(data) = self.files.may_grow(vnode, &status) else { return Ok(()) };
            let _turn = data.growing.lock().await;
            let _length = data.change_lock.block_cuts().await;
            if self.files.may_grow(vnode, &status).is_none_or(|same| !Arc::ptr_eq(&same, &data)) {
                return Ok(());
            }
            let put = self.put_rest_behind(vnode, &data, &status).await;
            if !matches!(put, Ok(Put::Whole)) {
                self.files.trim(&data).await?;
            }
            match put {
                Ok(Put::Whole) => {
                    let invalidate = || self.drop_pages(vnode.key);
                    self.files.grown(vnode, &data, &status, invalidate);
                    return Ok(());
                }
                Ok(Put::Overtaken) => status = vnode.state().status.unwrap_or(status),
                Ok(Put::Differs) => data.differs.store(status.data_version.0, Ordering::SeqCst),
                Err(error) => {
                    if error.kind == ErrorKind::AccessDenied {
                        // The server is not asked again at each look.
                        data.differs.store(status.data_version.0, Ordering::SeqCst);
                    }
                    return Err(error);
                }
            }
        }
        Err(VenusError::new(ErrorKind::Stale, FETCH).of(vnode.key.fid))
    }

    /// Puts what a version has beyond the end of the data behind it, if it begins with the data.
    async fn put_rest_behind(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        status: &Status,
    ) -> Result<Put> {
        let length = data.content().length;
        let has_grown = length > self.chunk_bytes() && self.has_grown(vnode, data, status).await?;
        if length > self.chunk_bytes() && !has_grown {
            return Ok(Put::Differs);
        }
        self.files.prepare_change(vnode.key, data).await?;
        let mut at = if has_grown { length } else { 0 };
        while at < status.length {
            let end = status.length.min(at + self.chunk_bytes());
            let Some(bytes) = self.bytes_of(vnode, at..end, status).await? else { return Ok(Put::Overtaken) };
            let known = length.saturating_sub(at).min(end - at);
            if !self.begins_with(data, at, bytes.slice(..known as usize)).await? {
                return Ok(Put::Differs);
            }
            self.files.make_room(vnode, data, end - at - known, &(at..end)).await;
            self.files.put_behind(data, at + known, bytes.slice(known as usize..)).await?;
            at = end;
        }
        Ok(Put::Whole)
    }

    /// Whether the server knows that the version of a status begins with all of the data.
    async fn has_grown(&self, vnode: &Arc<Vnode>, data: &Arc<FileData>, status: &Status) -> Result<bool> {
        let volume = self.volume_of(vnode.key).await?;
        let servers = volume.sites(self.now());
        let resets: Vec<_> = servers.iter().map(|server| server.reset.get()).collect();
        if !servers.iter().all(|server| server.may_know_our_calls(self.now())) {
            return Ok(false);
        }
        let request = fs::GetGrowth { fid: vnode.key.fid };
        match self.call_about(&volume, Some(&[vnode.key]), request).await.result {
            Ok(told) => {
                let (version, since) = (told.value.version, told.value.since);
                Ok(version == status.data_version && since <= data.content().version)
            }
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                // Which of several has replied is not known.
                if let ([server], [reset]) = (&servers[..], &resets[..]) {
                    server.no_calls_of_ours.note(self.now(), *reset);
                }
                Ok(false)
            }
            Err(error) => Err(self.handle_error(vnode, error)),
        }
    }

    /// Bytes of the version of a status. `None`: the server has another one.
    async fn bytes_of(
        &self,
        vnode: &Arc<Vnode>,
        range: std::ops::Range<u64>,
        status: &Status,
    ) -> Result<Option<Bytes>> {
        let (fid, count) = (vnode.key.fid, range.end - range.start);
        let directory = Some(directory_of(fid, status));
        let wanted = Wanted { fid, range, held: Some(status.data_version), directory };
        let (bytes, fetched) = self.fetch_to_memory(vnode, &wanted).await?;
        let is_whole = fetched.version() == status.data_version && bytes.len() as u64 == count;
        Ok(is_whole.then(|| Bytes::from(bytes)))
    }

    /// Whether the data has these bytes at a position.
    async fn begins_with(&self, data: &Arc<FileData>, at: u64, bytes: Bytes) -> Result<bool> {
        let file = data.file.clone();
        let compare = move || file.read_at(at, bytes.len()).map(|here| here == bytes);
        self.files.disk(compare).await
    }
}
