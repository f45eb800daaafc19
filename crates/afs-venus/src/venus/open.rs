//! Opening and releasing files.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::{FileKind, Status};

use crate::api::{Access, Backing, HandleId, NodeId, OpenFlags, Opened};
use crate::cache::{CacheFile, CacheKey, CacheStore, Kept};
use crate::data::{Content, FileData};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::venus::Venus;
use crate::venus::attributes::may;
use crate::venus::handles::Handle;
use crate::venus::maintenance::is_final;
use crate::vnode::Vnode;

/// ENOTCONN: what the kernel says of a mount whose process has ended.
const NOT_CONNECTED: i32 = 107;

/// A cache file, and what was kept in it if it is not new.
type Found = (Arc<dyn CacheFile>, Option<Kept>);

impl Venus {
    /// Opens a file. What is opened is the newest version, unless this machine has unsaved changes to it.
    pub async fn open(&self, node: NodeId, flags: OpenFlags) -> Result<Opened> {
        let vnode = self.vnode(self.key(node, "open")?);
        let status = self.status_or_unsaved(&vnode).await?;
        self.check_open(&vnode, &status, flags).await?;
        self.open_checked(&vnode, &status, flags, false).await
    }

    /// Opens a file which we have just made: nothing needs to be asked.
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
        let wanted = Access { read: flags.read && !flags.write, write: writes, execute: false };
        // Executing needs x or r, and arrives here as reading.
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
            // Nothing would store what is written, and nothing would know of it.
            return Err(VenusError::new(ErrorKind::Refused(NOT_CONNECTED), "open").of(vnode.key.fid));
        }
        self.await_late_release(vnode, status).await?;
        let (id, data) = self.hold(vnode, status, flags).await?;
        match self.prepare(vnode, &data, id, flags, is_new).await {
            Ok(backing) => Ok(self.opened(vnode, &data, id, backing)),
            Err(error) => {
                self.give_up_open(id).await;
                Err(error)
            }
        }
    }

    /// Counts a new handle on the data to open. Data that was put away between the choice and the count is none of the file's any more:
    /// it is chosen again.
    async fn hold(
        &self,
        vnode: &Arc<Vnode>,
        status: &Status,
        flags: OpenFlags,
    ) -> Result<(HandleId, Arc<FileData>)> {
        loop {
            let data = self.current_data(vnode, status).await?;
            let mut state = vnode.state();
            if !state.data.as_ref().is_some_and(|current| Arc::ptr_eq(current, &data)) {
                continue;
            }
            state.opens += 1;
            let id = self.handles.next_id();
            let handle = Handle::new(id, vnode.clone(), flags, self.asker.who, data.clone());
            if handle.may_change() {
                data.content().writers += 1;
            }
            drop(state);
            self.handles.add(handle);
            return Ok((id, data));
        }
    }

    fn opened(&self, vnode: &Vnode, data: &FileData, handle: HandleId, backing: Option<Backing>) -> Opened {
        let version = data.content().version;
        let mut state = vnode.state();
        // Others that have an older version open share the kernel's pages at times.
        let is_alone = state.opens <= data.handles.load(Ordering::SeqCst);
        let keep_cache = is_alone && state.kernel_version == Some(version);
        if is_alone {
            state.kernel_version = Some(version);
        }
        Opened { handle, keep_cache, data: data.file.id(), backing }
    }

    /// Cuts, fetches and decides on passthrough, as the flags say.
    async fn prepare(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        id: HandleId,
        flags: OpenFlags,
        is_new: bool,
    ) -> Result<Option<Backing>> {
        let handle = self.handles.get(id, "open")?;
        if flags.truncate {
            self.will_change(vnode).await?;
            handle.cut_what_was_saved.store(!data.content().is_dirty(), Ordering::SeqCst);
            self.cut(data, 0).await?;
        }
        let length = data.content().length;
        let small = length <= self.limits.chunk_bytes;
        let file = data.file.file().filter(|_| flags.passthrough);
        let rewrites = flags.write && length > self.limits.passthrough_rewrite_bytes_max;
        let wants_all = small && (flags.read || (file.is_some() && !rewrites));
        if wants_all && !vnode.state().orphan {
            self.fetch_range(&handle, 0..length).await?;
        }
        // The version may have changed while the rest came.
        let data = handle.data();
        let file = data.file.file().filter(|_| flags.passthrough);
        // Of a file that did not exist a moment ago the cache keeps nothing.
        if flags.write && !is_new && !flags.truncate {
            self.will_change(vnode).await?;
        }
        let complete = data.content().is_complete();
        let Some(file) = file.filter(|_| complete && !rewrites) else { return Ok(None) };
        data.backed.store(true, Ordering::SeqCst);
        if flags.write {
            // What the kernel wrote through another handle must be noted before a new mark hides it.
            self.absorb_data(&data).await?;
            if !data.marked.swap(true, Ordering::SeqCst) {
                let marked = data.clone();
                self.disk_briefly(move || marked.file.mark()).await?;
            }
            data.content().direct += 1;
            handle.direct.store(true, Ordering::SeqCst);
        }
        Ok(Some(Backing { file, id: data.file.id() }))
    }

    /// From now on the cache file may be no version of the server's: it must not be found as one after a crash.
    pub(super) async fn will_change(&self, vnode: &Vnode) -> Result<()> {
        let cell = self.cell(vnode.key)?.name.clone();
        let (cache, fid) = (self.cache.clone(), vnode.key.fid);
        if !cache.may_have(&cell, fid) {
            return Ok(());
        }
        self.disk(move || {
            cache.forget(&cell, fid);
            Ok(())
        })
        .await
    }

    /// The data to open: that with unsaved changes or writers, or that of the version in the status.
    pub(super) async fn current_data(&self, vnode: &Arc<Vnode>, status: &Status) -> Result<Arc<FileData>> {
        if let Some(data) = usable(vnode, status) {
            return Ok(data);
        }
        let _turn = vnode.fetching.lock().await;
        if let Some(data) = usable(vnode, status) {
            return Ok(data);
        }
        let key = self.cache_key(vnode.key, status)?;
        let cache = self.cache.clone();
        let length = status.length;
        let (file, kept) = match cache.find_open(&key).filter(|(_, kept)| kept.length == length) {
            Some((file, kept)) => (file, Some(kept)),
            None => self.disk_briefly(move || find_or_create(&*cache, &key, length)).await?,
        };
        let is_fresh = kept.is_none();
        let content = match kept {
            Some(kept) => Content::of_kept(status.data_version, kept),
            None => Content::new(status.data_version, status.length),
        };
        let data = Arc::new(FileData::new(file, content));
        data.marked.store(is_fresh && length == 0, Ordering::SeqCst);
        vnode.state().data = Some(data.clone());
        Ok(data)
    }

    pub(super) fn cache_key(&self, key: Key, status: &Status) -> Result<CacheKey> {
        Ok(CacheKey { cell: self.cell(key)?.name.clone(), fid: key.fid, version: status.data_version })
    }

    /// The last reference to an open file is gone. Stores what is still unsaved (a mapping may have written after the
    /// last close).
    pub async fn release(&self, id: HandleId) -> Result<()> {
        let Ok(handle) = self.handles.get(id, "release") else {
            return Err(VenusError::new(ErrorKind::BadHandle, "release"));
        };
        self.speaking_for(handle.who).release_held(&handle).await
    }

    async fn release_held(&self, handle: &Handle) -> Result<()> {
        let stored = match handle.flags.write || handle.flags.truncate {
            true => self.store_at_release(handle).await,
            false => Ok(()),
        };
        if self.handles.remove(handle.id).is_some() {
            self.unhold(handle).await;
        }
        if let Err(error) = &stored
            && is_final(error.kind)
        {
            self.give_up_data(&handle.vnode);
        }
        stored
    }

    /// Takes a handle off the accounts of its file, and puts the data away if it was the last.
    pub(super) async fn unhold(&self, handle: &Handle) {
        let (vnode, data) = (&handle.vnode, handle.data());
        data.handles.fetch_sub(1, Ordering::SeqCst);
        {
            let mut content = data.content();
            if handle.flags.write || handle.flags.truncate {
                content.writers = content.writers.saturating_sub(1);
            }
            if handle.direct.swap(false, Ordering::SeqCst) {
                content.direct = content.direct.saturating_sub(1);
            }
        }
        data.released.notify_all();
        let hidden = {
            let mut state = vnode.state();
            state.opens = state.opens.saturating_sub(1);
            if state.opens == 0 { state.hidden_as.take() } else { None }
        };
        if let Some((dir, name)) = hidden {
            let serial = self.promises.serial();
            if let Err(error) = self.remove_hidden(dir, &name).await {
                tracing::warn!(%error, "a removed file that was open here could not be removed in the end");
            }
            if let Ok(volume) = self.volume_of(vnode.key).await {
                self.lost_name(vnode.key, &volume, Some(serial)).await;
            }
        }
        self.put_away(vnode, &data).await;
    }

    /// Keeps data for later if nobody uses it and nothing is unsaved.
    pub(super) async fn put_away(&self, vnode: &Arc<Vnode>, data: &Arc<FileData>) {
        if data.handles.load(Ordering::SeqCst) > 0 {
            return;
        }
        let (kept, version, is_dirty) = {
            let content = data.content();
            (content.to_kept(), content.version, content.is_dirty())
        };
        let is_lost = data.lost.load(Ordering::SeqCst);
        let (is_current, is_gone) = {
            let mut state = vnode.state();
            // Opened again since: who counts a handle does so with the state locked.
            if data.handles.load(Ordering::SeqCst) > 0 {
                return;
            }
            if state.orphan && state.opens == 0 {
                state.orphan = false;
                state.data = None;
                state.status = None;
                drop(state);
                crate::lock(&self.unsaved).remove(&vnode.key);
                self.vnodes.remove(vnode.key);
                return;
            }
            let is_current = state.data.as_ref().is_some_and(|current| Arc::ptr_eq(current, data));
            if is_dirty && !is_lost {
                drop(state);
                if is_current {
                    crate::lock(&self.unsaved).entry(vnode.key).or_insert(self.asker.who);
                }
                return;
            }
            if is_current {
                state.data = None;
                state.holes = kept.as_ref().map(|kept| (version, kept.holes.bytes()));
            }
            (is_current, state.is_gone)
        };
        let may_keep = is_current && !is_gone && !is_lost && !data.outlives_us.load(Ordering::SeqCst);
        let (Some(kept), Ok(cell), true) = (kept, self.cell(vnode.key), may_keep) else { return };
        let key = CacheKey { cell: cell.name.clone(), fid: vnode.key.fid, version };
        let (cache, file) = (self.cache.clone(), data.file.clone());
        // What was only read is in the cache as it was.
        if cache.is_kept(&key, &file, &kept) {
            return;
        }
        let done = self.disk_briefly(move || cache.keep(&key, &file, &kept)).await;
        if let Err(error) = done {
            tracing::warn!(%error, "data cannot be kept in the cache");
        }
        self.cache_has_room(0).await;
    }
}

/// The kept file of this version, or a new one of its length with nothing in it yet.
fn find_or_create(cache: &dyn CacheStore, key: &CacheKey, length: u64) -> io::Result<Found> {
    if let Some((file, kept)) = cache.find(key).filter(|(_, kept)| kept.length == length) {
        return Ok((file, Some(kept)));
    }
    let file = cache.create()?;
    if length > 0 {
        file.set_len(length)?;
    }
    file.mark()?;
    Ok((file, None))
}

/// Data that is open already and may be opened once more.
fn usable(vnode: &Vnode, status: &Status) -> Option<Arc<FileData>> {
    let state = vnode.state();
    let data = state.data.as_ref()?;
    let content = data.content();
    let ours = content.writers > 0 || content.is_dirty() || state.orphan;
    (ours || content.version == status.data_version).then(|| data.clone())
}
