//! References to file data: opens, releases, and handles that switch to another version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::api::{HandleId, OpenFlags};
use crate::data::FileData;
use crate::error::Result;
use crate::files::{Files, Handle, is_current};
use crate::identity::User;
use crate::vnode::{HiddenName, Vnode};

/// A handle that was released.
pub(crate) struct ReleasedHandle {
    pub handle: Arc<Handle>,
    /// Set by the release of the last handle of a file that the server keeps under a hidden name for its handles.
    pub hidden: Option<HiddenName>,
}

/// A reference to data without a handle, until dropped. Data that is dirty then is stored later.
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
    /// Makes a new handle on the data to open. If the data was retired between choice and count, it is chosen again. The file
    /// has a status as long as it is open, also if it was found to be removed before it was counted as open.
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
                vnode.state().status.get_or_insert(*status);
                return Ok(handle);
            }
        }
    }

    /// Makes a new handle on this data, if it is still current.
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
        state.file.open(user);
        data.content().uses.add(handle.may_change());
        Some(handle)
    }

    /// References the data to open, for a change without a handle.
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

    /// Removes a handle; `None` if it was removed before. The caller must call [`Files::retire`] on the data next.
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

    /// Switches a handle to the current data, as if it had been opened now, because the rest of its own version cannot
    /// be fetched any more. A handle that may write keeps its data. `invalidate` is called when other data was taken, before anybody sees
    /// its attributes. Fails if the handle was released.
    pub async fn switch_to_current(
        &self,
        handle: &Handle,
        status: &Status,
        invalidate: impl Fn(),
    ) -> Result<Arc<FileData>> {
        loop {
            let data = self.current(&handle.vnode, status).await?;
            if handle.may_change() {
                return Ok(handle.data());
            }
            if self.switch(handle, &data, &invalidate)? {
                return Ok(data);
            }
        }
    }

    /// The same with the data that is current already, if the handle is to go on with newer data.
    pub fn go_on(&self, handle: &Handle, invalidate: impl Fn()) -> Result<()> {
        let current = handle.vnode.state().file.data().cloned();
        let data = handle.data();
        let other = current.filter(|current| !Arc::ptr_eq(current, &data));
        match other.filter(|_| !handle.may_change() && data.goes_on()) {
            Some(current) => self.switch(handle, &current, invalidate).map(drop),
            None => Ok(()),
        }
    }

    /// Moves the reference of a handle to other data, if that is still current.
    pub(super) fn switch(
        &self,
        handle: &Handle,
        data: &Arc<FileData>,
        invalidate: impl Fn(),
    ) -> Result<bool> {
        let state = handle.vnode.state();
        self.handle(handle.id, "read")?;
        if !is_current(&state, data) {
            return Ok(false);
        }
        data.content().uses.add(false);
        let old = handle.replace(data);
        old.content().uses.remove(false);
        if !Arc::ptr_eq(&old, data) {
            invalidate();
        }
        drop(state);
        Ok(true)
    }

    /// Starts passthrough writes of the kernel for this handle; the cache file must be complete. Passthrough writes of
    /// other handles are recorded before the file is marked again. Fails if the handle was released.
    pub async fn start_passthrough(&self, handle: &Handle) -> Result<()> {
        let data = handle.data();
        self.note_kernel_writes_in(&data).await?;
        self.begin_writing(handle, &data).await?;
        let _state = handle.vnode.state();
        self.handle(handle.id, "open")?;
        if !handle.passthrough.swap(true, Ordering::SeqCst) {
            data.content().uses.add_passthrough();
        }
        Ok(())
    }

    /// Ends passthrough of a handle, which the kernel did not use after all.
    pub fn stop_passthrough(&self, id: HandleId) {
        let Ok(handle) = self.handle(id, "open") else { return };
        let _state = handle.vnode.state();
        if handle.passthrough.swap(false, Ordering::SeqCst) {
            handle.data().content().uses.remove_passthrough();
        }
    }

    /// Called when a handle is handed out. Returns true if the kernel may keep its pages of the file, because they are
    /// of this version. Handles of older versions may share the kernel's pages.
    pub fn keeps_pages(&self, handle: &Handle) -> bool {
        let data = handle.data();
        let mut state = handle.vnode.state();
        let (version, users) = {
            let content = data.content();
            (content.version, content.uses)
        };
        let is_alone = state.file.opens() <= users.count();
        is_alone && state.file.keeps_pages(version, handle.id)
    }

    /// The kernel has sent a request on a handle, so that it has the reply to its open.
    pub fn note_request(&self, handle: &Handle) {
        if handle.is_first_request() {
            handle.vnode.state().file.pages_opened(handle.id);
        }
    }

    /// True if close(2) was called on all handles that may change this data.
    pub fn writers_have_closed(&self, data: &Arc<FileData>) -> bool {
        let handles = self.handles();
        let mut writers =
            handles.iter().filter(|handle| handle.may_change() && Arc::ptr_eq(&handle.data(), data));
        writers.all(|handle| handle.is_closed())
    }
}
