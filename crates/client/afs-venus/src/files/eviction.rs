//! Eviction of file data: kept in the cache for later use, or deleted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::DataVersion;

use crate::cache::Kept;
use crate::data::FileData;
use crate::error::VenusError;
use crate::files::{Failure, Files, Handle, SetAside, is_current};
use crate::identity::User;
use crate::key::Key;
use crate::residency::Residency;
use crate::vnode::{Vnode, VnodeState};

impl Files {
    /// Keeps unreferenced data in the cache if nothing is dirty. Dirty data is listed to be stored later, for `user`
    /// unless a user is listed already. The data of an orphan without handles is deleted.
    ///
    /// The data stays current until it is kept: an open meanwhile gets this data, and not a second object over the same
    /// cache file.
    pub async fn retire(&self, vnode: &Vnode, data: &Arc<FileData>, user: User) {
        let _guard = data.keeping.lock().await;
        let Some((version, kept)) = self.contents_to_keep(vnode, data, user) else { return };
        self.keep(vnode, data, version, kept.as_ref()).await;
        let mut state = vnode.state();
        let is_same = {
            let content = data.content();
            content.uses.count() == 0 && content.version == version && content.to_kept() == kept
        };
        // Otherwise the data is or was referenced again, and is retired by that user.
        if is_same && is_current(&state, data) {
            state.file.retire_data(version, kept.map(|kept| kept.holes.bytes()));
        }
    }

    /// The same for data of a version that the server does not have yet: what is not dirty stays current until it is retired.
    pub fn hold(&self, vnode: &Vnode, data: &Arc<FileData>, user: User) {
        drop(self.contents_to_keep(vnode, data, user));
    }

    /// Version and contents of data that may be evicted. References are counted only with the state locked.
    fn contents_to_keep(
        &self,
        vnode: &Vnode,
        data: &Arc<FileData>,
        user: User,
    ) -> Option<(DataVersion, Option<Kept>)> {
        let mut state = vnode.state();
        let content = data.content();
        if content.uses.count() > 0 {
            return None;
        }
        if state.file.is_orphan() && state.file.opens() == 0 {
            drop(content);
            let dropped = state.file.drop_data();
            state.file.end_orphan();
            state.status = None;
            self.unlist(vnode.key);
            drop(state);
            drop(dropped);
            self.vnodes.remove(vnode.key);
            return None;
        }
        if !is_current(&state, data) {
            return None;
        }
        if content.is_dirty() && !data.lost.load(Ordering::SeqCst) {
            self.store_retries.add_if_missing(vnode.key, user);
            return None;
        }
        Some((content.version, content.to_kept()))
    }

    /// Keeps data in the cache, unless it is not needed there or may still change.
    async fn keep(&self, vnode: &Vnode, data: &Arc<FileData>, version: DataVersion, kept: Option<&Kept>) {
        let may_keep = {
            let state = vnode.state();
            !state.is_gone && state.residency != Residency::Past
        };
        let may_keep =
            may_keep && !data.lost.load(Ordering::SeqCst) && !data.never_kept.load(Ordering::SeqCst);
        let (Some(kept), Ok(key), true) = (kept, self.cache_key(vnode.key, version), may_keep) else {
            return;
        };
        // Data that was only read is in the cache unchanged.
        if self.cache.is_kept(&key, &data.file, kept) {
            return;
        }
        let (cache, file, kept) = (self.cache.clone(), data.file.clone(), kept.clone());
        let done = self.disk_briefly(move || cache.keep(&key, &file, &kept)).await;
        if let Err(error) = done {
            tracing::warn!(%error, "data cannot be kept in the cache");
        }
        self.has_room(0).await;
    }

    /// The server may have other bytes as the version of the data of a file: it is dropped unless it is in use or dirty, and never kept.
    pub fn drop_decided(&self, vnode: &Vnode) {
        let dropped = {
            let mut state = vnode.state();
            let is_unused = state.file.opens() == 0;
            let is_to_drop = |data: &FileData| {
                data.never_kept.store(true, Ordering::SeqCst);
                let content = data.content();
                is_unused && content.uses.count() == 0 && !content.is_dirty()
            };
            state.file.drop_data_if(is_to_drop)
        };
        drop(dropped);
    }

    /// Drops data that the server has and that this open has truncated, unless it is shared with other handles; it is
    /// fetched again. Returns true if it was dropped.
    pub fn undo_cut(&self, handle: &Handle) -> bool {
        let data = handle.data();
        let mut state = handle.vnode.state();
        // References of the vnode, of the handle and of this function. An open obtains its reference from the vnode,
        // under this lock.
        if !handle.has_cut_clean_data() || !is_current(&state, &data) || Arc::strong_count(&data) > 3 {
            return false;
        }
        state.file.drop_data();
        true
    }

    /// Drops the data of a failed change that had no handle, unless an open handle uses the data.
    pub fn discard(&self, vnode: &Vnode, data: &Arc<FileData>) {
        let mut state = vnode.state();
        if is_current(&state, data) && data.content().uses.count() == 0 {
            self.unlist(vnode.key);
            state.file.drop_data();
        }
    }

    /// Records that the last name of a file, or the file itself, is gone from the server: open handles continue without
    /// the server.
    pub fn became_nameless(&self, vnode: &Vnode) {
        let mut state = vnode.state();
        state.file.lose_name();
        self.unlist(vnode.key);
        let dropped = take_unused(&mut state);
        drop(state);
        drop(dropped);
    }

    /// Drops dirty data that no server will accept, unless the file is still open. Returns true if there was data and it was
    /// dropped.
    pub fn give_up(&self, vnode: &Vnode) -> bool {
        let mut state = vnode.state();
        self.unlist(vnode.key);
        let dropped = take_unused(&mut state);
        drop(state);
        dropped.is_some()
    }

    /// The same, but dirty data is set aside for the user who wrote it: the one for whom it was listed, else `user`.
    /// Returns the number of the data. It survives the mount once [`Files::keep_set_aside`] was called.
    pub fn give_up_aside(&self, vnode: &Vnode, user: User, error: &VenusError) -> Option<u64> {
        let mut state = vnode.state();
        let listed = self.store_retries.remove(vnode.key);
        let taken = take_unused(&mut state);
        drop(state);
        let kept = listed.as_ref().and_then(|listed| listed.kept).map(|kept| kept.ticket);
        let Some(data) = taken.filter(|data| data.content().is_dirty()) else {
            kept.into_iter().for_each(|ticket| self.drop_record(ticket));
            return None;
        };
        let number = data.file.id();
        let user = listed.as_ref().map_or(user, |listed| listed.user);
        let since = listed.and_then(|listed| listed.failure).map_or(self.wall(), |failure| failure.since);
        let failure = Failure { error: error.clone(), since };
        self.add_aside(SetAside { key: vnode.key, user, failure, data, kept });
        Some(number)
    }

    /// Sets data aside; older data makes room.
    pub(super) fn add_aside(&self, new: SetAside) {
        for dropped in self.set_aside.add(new, self.bytes_max()) {
            tracing::error!(fid = %dropped.key.fid, "unsaved data that was set aside is dropped for newer such data");
            dropped.kept.into_iter().for_each(|ticket| self.drop_record(ticket));
        }
    }

    /// Handles the loss of a lock: data written under it is not stored, and an open from now on gets the server's
    /// version in a new cache file. A file given to the kernel for passthrough stays current as long as it is open.
    pub async fn lock_lost(&self, vnode: &Arc<Vnode>) {
        // An open that comes meanwhile looks into the cache after this.
        let _opening = vnode.fetching.lock().await;
        for handle in self.handles().into_iter().filter(|handle| Arc::ptr_eq(&handle.vnode, vnode)) {
            handle.data().lost.store(true, Ordering::SeqCst);
        }
        if let Some(data) = self.take_lost_data(vnode) {
            self.forget_lost(vnode.key, &data).await;
        }
    }

    /// The data that ceases to be current, or that of a passthrough file.
    fn take_lost_data(&self, vnode: &Vnode) -> Option<Arc<FileData>> {
        let mut state = vnode.state();
        self.unlist(vnode.key);
        let data = state.file.data().cloned();
        state.file.drop_data_if(|data| !data.backed.load(Ordering::SeqCst));
        data
    }

    /// Handles that continue with the cache file may fetch into it: it must not be found by later opens.
    async fn forget_lost(&self, key: Key, data: &FileData) {
        if let Err(error) = self.prepare_change(key, data).await {
            tracing::warn!(%error, "a file whose lock was lost stays in the cache");
        }
    }
}

/// Takes the data of a file without handles and references.
fn take_unused(state: &mut VnodeState) -> Option<Arc<FileData>> {
    let is_unused = state.file.opens() == 0;
    state.file.drop_data_if(|data| is_unused && data.content().uses.count() == 0)
}
