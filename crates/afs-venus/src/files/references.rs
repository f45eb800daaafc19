//! Counting who uses what: opens, releases, and handles that go on with another version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::api::{HandleId, OpenFlags};
use crate::data::FileData;
use crate::error::Result;
use crate::files::{Files, Handle, is_current};
use crate::identity::User;
use crate::vnode::{HiddenName, Vnode};

/// A handle that is one no more.
pub(crate) struct ReleasedHandle {
    pub handle: Arc<Handle>,
    /// Where the server keeps the file under a name of ours that was to last as long as its handles; this was the last.
    pub hidden: Option<HiddenName>,
}

/// Somebody who uses data without a handle, until this is dropped. What he leaves unsaved is stored later.
pub(crate) struct DataUse<'a> {
    pub data: Arc<FileData>,
    files: &'a Files,
    vnode: &'a Vnode,
    user: User,
}

impl Drop for DataUse<'_> {
    fn drop(&mut self) {
        let state = self.vnode.state();
        let mut content = self.data.content();
        content.uses.remove(false);
        if content.uses.count() == 0 && content.is_dirty() && is_current(&state, &self.data) {
            self.files.store_retries.add_if_missing(self.vnode.key, self.user);
        }
    }
}

impl Files {
    /// A new handle on the data to open. Data that was put away between the choice and the count is none of the file's any
    /// more: it is chosen again.
    pub async fn open_handle(
        &self,
        vnode: &Arc<Vnode>,
        status: &Status,
        flags: OpenFlags,
        user: User,
    ) -> Result<Arc<Handle>> {
        loop {
            let data = self.current(vnode, status).await?;
            if let Some(handle) = self.count_handle(vnode, &data, flags, user) {
                return Ok(handle);
            }
        }
    }

    /// A new handle on this data, if it is still the file's.
    pub(super) fn count_handle(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        flags: OpenFlags,
        user: User,
    ) -> Option<Arc<Handle>> {
        let mut state = vnode.state();
        if !is_current(&state, data) {
            return None;
        }
        let handle = self.handles.add(vnode, flags, user, data);
        state.file.open();
        data.content().uses.add(handle.may_change());
        Some(handle)
    }

    /// The data to open, for one who changes the file without a handle.
    pub async fn use_current<'a>(
        &'a self,
        vnode: &'a Arc<Vnode>,
        status: &Status,
        user: User,
    ) -> Result<DataUse<'a>> {
        loop {
            let data = self.current(vnode, status).await?;
            let state = vnode.state();
            if is_current(&state, &data) {
                data.content().uses.add(false);
                drop(state);
                return Ok(DataUse { data, files: self, vnode, user });
            }
        }
    }

    /// Takes a handle off the accounts of its file; `None` if that was done before. The data is to be put away then.
    pub fn release_handle(&self, id: HandleId) -> Option<ReleasedHandle> {
        let handle = self.handle(id, "release").ok()?;
        let mut state = handle.vnode.state();
        self.handles.remove(id)?;
        let data = handle.data();
        {
            let mut content = data.content();
            if handle.passthrough.swap(false, Ordering::SeqCst) {
                content.uses.remove_passthrough();
            }
            content.uses.remove(handle.may_change());
        }
        let hidden = state.file.close();
        drop(state);
        data.released.notify_waiters();
        Some(ReleasedHandle { handle, hidden })
    }

    /// Lets a handle go on with the data to open, as if it had been opened now, because the rest of its own is not to be had any more.
    /// One that may change the file stays where its changes are. Fails if it was released.
    pub async fn switch_to_current(&self, handle: &Handle, status: &Status) -> Result<Arc<FileData>> {
        loop {
            let data = self.current(&handle.vnode, status).await?;
            if handle.may_change() {
                return Ok(handle.data());
            }
            if self.switch(handle, &data)? {
                return Ok(data);
            }
        }
    }

    /// Counts a handle on other data, if that is still the file's, in the place of its own.
    pub(super) fn switch(&self, handle: &Handle, data: &Arc<FileData>) -> Result<bool> {
        let state = handle.vnode.state();
        self.handle(handle.id, "read")?;
        if !is_current(&state, data) {
            return Ok(false);
        }
        data.content().uses.add(false);
        let old = handle.replace(data);
        old.content().uses.remove(false);
        drop(state);
        Ok(true)
    }

    /// The kernel writes for this handle by itself from now on, into the cache file, which is whole. What it wrote for others is noted
    /// before a new mark hides it. Fails if the handle was released.
    pub async fn start_passthrough(&self, handle: &Handle) -> Result<()> {
        let data = handle.data();
        self.note_kernel_writes_in(&data).await?;
        if !data.marked.swap(true, Ordering::SeqCst) {
            let marked = data.clone();
            self.disk_briefly(move || marked.file.mark()).await?;
        }
        let _state = handle.vnode.state();
        self.handle(handle.id, "open")?;
        if !handle.passthrough.swap(true, Ordering::SeqCst) {
            data.content().uses.add_passthrough();
        }
        Ok(())
    }

    /// The kernel does not, after all.
    pub fn stop_passthrough(&self, id: HandleId) {
        let Ok(handle) = self.handle(id, "open") else { return };
        let _state = handle.vnode.state();
        if handle.passthrough.swap(false, Ordering::SeqCst) {
            handle.data().content().uses.remove_passthrough();
        }
    }

    /// A handle is handed out. Whether the kernel may keep the pages that it has of the file: they are of this version. Others that
    /// have an older version open share the kernel's pages at times.
    pub fn keeps_pages(&self, handle: &Handle) -> bool {
        let data = handle.data();
        let mut state = handle.vnode.state();
        let (version, users) = {
            let content = data.content();
            (content.version, content.uses)
        };
        let is_alone = state.file.opens() <= users.count();
        let keeps = is_alone && state.file.pages() == Some(version);
        if is_alone {
            state.file.set_pages(Some(version));
        }
        keeps
    }

    /// Whether close(2) was called for all handles that may change this data.
    pub fn writers_have_closed(&self, data: &Arc<FileData>) -> bool {
        let handles = self.handles();
        let mut writers =
            handles.iter().filter(|handle| handle.may_change() && Arc::ptr_eq(&handle.data(), data));
        writers.all(|handle| handle.is_closed())
    }
}
