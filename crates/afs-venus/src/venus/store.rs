//! Storing: at close, at fsync, and when there is too much unsaved.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::DataVersion;
use bytes::Bytes;

use crate::api::HandleId;
use crate::cache::{CacheFile, Ranges};
use crate::data::{FileData, Sums};
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::Volume;
use crate::transfer::PIECE;
use crate::venus::handles::Handle;
use crate::venus::occasion::Occasion;
use crate::venus::sending::Sent;
use crate::venus::{BRIEF_BYTES_MAX, Venus};
use crate::vnode::Vnode;

/// How often a store begins anew because what it was to send has changed meanwhile.
const ATTEMPTS_MAX: usize = 100;

impl Venus {
    /// close(2): unsaved data of a handle that may write goes to the server; the error is that of the store. Releases
    /// the locks of `lock_owner` on the file.
    pub async fn flush(&self, handle: HandleId, lock_owner: u64) -> Result<()> {
        let handle = self.handles.get(handle, "close")?;
        let me = self.speaking_for(handle.who);
        let stored = match handle.flags.write || handle.flags.truncate {
            true => me.store(&handle.vnode, &handle.data(), Occasion::Close).await,
            false => Ok(()),
        };
        me.unlock_all(&handle.vnode, lock_owner).await;
        handle.closed.store(true, Ordering::SeqCst);
        stored
    }

    /// Stores unsaved data and asks the server to commit it to its disk.
    pub async fn fsync(&self, handle: HandleId) -> Result<()> {
        let handle = self.handles.get(handle, "fsync")?;
        let data = handle.data();
        if handle.direct.load(Ordering::SeqCst) {
            // Writes through a mapping are noticed only if the pages were clean before.
            self.absorb_data(&data).await?;
            let synced = data.clone();
            self.disk(move || synced.file.sync()).await?;
            // They were not, if something was stored since the last time.
            if data.stored_unsynced.swap(false, Ordering::SeqCst) {
                self.compare_with_stored(&data, u32::MAX).await?;
            }
        }
        self.speaking_for(handle.who).store(&handle.vnode, &data, Occasion::Sync).await
    }

    /// What was written through a mapping after the last close would otherwise be lost, and nothing else tells of it.
    /// The kernel releases a file some time after its close: somebody else may have opened, cut and half written it by
    /// then. He closes it when he is done.
    pub(super) async fn store_at_release(&self, handle: &Handle) -> Result<()> {
        let data = handle.data();
        let _turn = handle.vnode.changing.lock().await;
        // Once: the kernel has let go of the file before it sends the release.
        self.absorb_to_store(&handle.vnode, &data).await?;
        if handle.direct.load(Ordering::SeqCst) {
            self.compare_with_stored(&data, 1).await?;
        }
        let failures = data.content().failures;
        match failures {
            0 => self.store_absorbed(&handle.vnode, &data, Occasion::Release).await,
            _ => self.store_absorbed_again(&handle.vnode, &data, Occasion::Release).await,
        }
    }

    /// A write through a mapping leaves no other trace than the data itself. It changes no length: what has another one
    /// was written, and is noted, by somebody else. While there are more writers it is left to others.
    async fn compare_with_stored(&self, data: &Arc<FileData>, writers_max: u32) -> Result<()> {
        let _turn = data.absorbing.lock().await;
        let known = crate::lock(&data.stored_sums).clone();
        let is_quiet = || {
            let content = data.content();
            !content.is_dirty() && content.writers <= writers_max
        };
        if known.is_empty() || !is_quiet() {
            return Ok(());
        }
        let changed = self.changed_since(data, known.clone()).await?;
        if is_quiet() && Arc::ptr_eq(&crate::lock(&data.stored_sums), &known) {
            let now = self.wall();
            changed.into_iter().for_each(|range| data.content().wrote(range, now));
        }
        Ok(())
    }

    /// The ranges whose bytes do not have the sum that they had.
    async fn changed_since(&self, data: &Arc<FileData>, sums: Arc<Sums>) -> Result<Vec<Range<u64>>> {
        let (file, length) = (data.file.clone(), data.content().length);
        let compare = move || {
            if file.len()? != length {
                return Ok(Vec::new());
            }
            let mut changed = Vec::new();
            for (range, sum) in sums.iter() {
                if sum_of(&*file, range.clone())? != sum {
                    changed.push(range);
                }
            }
            Ok(changed)
        };
        match length <= BRIEF_BYTES_MAX {
            true => self.disk_briefly(compare).await,
            false => self.disk(compare).await,
        }
    }

    /// Takes note of what the kernel wrote behind our back.
    pub(super) async fn absorb(&self, vnode: &Vnode) -> Result<()> {
        let data = vnode.state().data.clone();
        match data {
            Some(data) => self.absorb_data(&data).await,
            None => Ok(()),
        }
    }

    pub(super) async fn absorb_data(&self, data: &Arc<FileData>) -> Result<()> {
        if data.content().direct == 0 {
            return Ok(());
        }
        let _turn = data.absorbing.lock().await;
        if !data.content().is_complete() {
            // Another version is on its way into the file: that, and no kernel, has touched it.
            return Ok(());
        }
        let file = data.file.clone();
        let Some((length, whole)) = self.disk_briefly(move || touched(&*file)).await? else { return Ok(()) };
        let written = match length <= BRIEF_BYTES_MAX {
            true => Ranges::whole(length),
            false => {
                let file = data.file.clone();
                self.disk(move || file.data()).await?
            }
        };
        let now = self.wall();
        data.content().wrote_data(length, &written, now);
        data.marked.store(true, Ordering::SeqCst);
        *crate::lock(&data.ready) = whole;
        Ok(())
    }

    /// The same before a store. Where another version could not be brought whole into a file that a kernel writes to, nobody knows what in
    /// it is whose: an error, and not a store of nothing, is the answer.
    async fn absorb_to_store(&self, vnode: &Vnode, data: &Arc<FileData>) -> Result<()> {
        // What was read earlier may be older than what a mapping has written since.
        *crate::lock(&data.ready) = None;
        self.absorb_data(data).await?;
        let content = data.content();
        match content.direct > 0 && !content.is_complete() {
            true => Err(VenusError::new(ErrorKind::Cache, "StoreData").of(vnode.key.fid)),
            false => Ok(()),
        }
    }

    /// Brings the server up to date. Nothing to do is success.
    pub(super) async fn store(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        occasion: Occasion,
    ) -> Result<()> {
        let _turn = vnode.changing.lock().await;
        self.store_in_order(vnode, data, occasion).await
    }

    /// The same, for one who has the turn to change the file.
    pub(super) async fn store_in_order(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        occasion: Occasion,
    ) -> Result<()> {
        self.absorb_to_store(vnode, data).await?;
        self.store_absorbed(vnode, data, occasion).await
    }

    /// The same, when what the kernel has written is known.
    async fn store_absorbed(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        occasion: Occasion,
    ) -> Result<()> {
        if !is_due(vnode, data, occasion) {
            return Ok(());
        }
        let volume = self.volume_of(vnode.key).await?;
        self.check_lock(vnode, &volume, data).await?;
        self.store_in_turn(vnode, &volume, data, occasion).await
    }

    /// Tries a store again that has failed and that nobody waits for any more: its close has returned the error. What
    /// somebody else has stored in the meantime was stored by a close that returned success, and stays.
    pub(super) async fn store_again(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        occasion: Occasion,
    ) -> Result<()> {
        let _turn = vnode.changing.lock().await;
        self.absorb_to_store(vnode, data).await?;
        self.store_absorbed_again(vnode, data, occasion).await
    }

    async fn store_absorbed_again(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        occasion: Occasion,
    ) -> Result<()> {
        if !is_due(vnode, data, occasion) {
            return Ok(());
        }
        let volume = self.volume_of(vnode.key).await?;
        self.check_lock(vnode, &volume, data).await?;
        // Asked even if we hold a promise: a server that could not reach us could not break it.
        let status = match self.ask_status(vnode, &volume).await {
            Ok(status) => status,
            Err(error) => {
                data.content().failures += 1;
                return Err(self.explained(&volume, error));
            }
        };
        let is_base = data.content().version == status.data_version;
        if is_base {
            return self.store_in_turn(vnode, &volume, data, occasion).await;
        }
        let into = data.content().version;
        if self.was_carried_out(vnode, &volume, data, &status, into).await? {
            return Ok(());
        }
        Err(overtaken(vnode))
    }

    async fn store_in_turn(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        occasion: Occasion,
    ) -> Result<()> {
        // A file that others change all the time faster than it is stored here.
        let mut stored = Err(VenusError::new(ErrorKind::VolumeBusy, "StoreData").of(vnode.key.fid));
        for _ in 0..ATTEMPTS_MAX {
            let replaces = self.must_replace(vnode, volume, data).await;
            let replaces = replaces.map_err(|error| self.explained(volume, error))?;
            match self.send_unsaved(vnode, volume, data, replaces, occasion).await {
                // Nobody waits for it; who cut the file stores it at his close.
                Ok(Sent::Cut) if occasion == Occasion::Again => return Ok(()),
                Ok(Sent::OtherVersion) if occasion == Occasion::Again => return Err(overtaken(vnode)),
                Ok(Sent::Cut | Sent::OtherVersion | Sent::Mixed | Sent::OldServer) => {}
                Ok(Sent::All) => {
                    stored = Ok(());
                    break;
                }
                Err(error) => {
                    stored = Err(self.explained(volume, error));
                    break;
                }
            }
        }
        match &stored {
            Ok(()) if data.content().is_dirty() => {}
            Ok(()) => drop(crate::lock(&self.unsaved).remove(&vnode.key)),
            Err(error) => self.store_failed(vnode, error),
        }
        stored
    }

    /// The version of the server's copy, if it is another than ours was made from, so that parts of ours do not fit into it. What
    /// is here of the file is stored as a whole then (the last close wins). If not all of it is here, the unsaved parts go on
    /// top of the new version instead.
    async fn must_replace(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
    ) -> Result<Option<DataVersion>> {
        let based_on = data.content().version;
        let known = vnode.fresh_status(volume, self.now());
        let status = match known {
            Some(status) => status,
            None => self.status_unseen(vnode).await?,
        };
        if status.data_version == based_on {
            return Ok(None);
        }
        if data.content().is_complete() {
            return Ok(Some(status.data_version));
        }
        self.take_version(data, &status).await?;
        Ok(None)
    }

    /// The status has changed with the store: version and times. The kernel's pages are those of the new version.
    pub(super) fn after_store(&self, vnode: &Arc<Vnode>, data: &FileData) {
        let version = data.content().version;
        {
            let mut state = vnode.state();
            let current = state.data.as_ref().is_some_and(|current| std::ptr::eq(&**current, data));
            if current && state.kernel_version.is_some() {
                state.kernel_version = Some(version);
            }
        }
        if !data.shown.swap(false, Ordering::SeqCst) {
            return;
        }
        self.above.attributes(vnode.key);
    }

    /// Refused, one whose token has expired would be let in after he has logged in again.
    fn explained(&self, volume: &Volume, error: VenusError) -> VenusError {
        match error.kind {
            ErrorKind::AccessDenied if self.has_expired_token(volume.cell) => {
                VenusError { kind: ErrorKind::TokenExpired, ..error }
            }
            _ => error,
        }
    }

    fn store_failed(&self, vnode: &Arc<Vnode>, error: &VenusError) {
        tracing::warn!(%error, "unsaved data could not be stored");
        if error.kind == ErrorKind::AccessDenied {
            self.was_refused(vnode);
        }
        if error.kind == ErrorKind::Stale {
            // There is no file any more to store it to.
            let mut state = vnode.state();
            state.orphan = state.opens > 0;
            if !state.orphan {
                state.data = None;
            }
            return;
        }
        crate::lock(&self.unsaved).insert(vnode.key, self.asker.who);
    }
}

/// The length of a file that the kernel has written to since it was marked, and a small file's bytes: it is about to be stored.
/// It is marked again.
fn touched(file: &dyn CacheFile) -> std::io::Result<Option<(u64, Option<Bytes>)>> {
    if !file.touched()? {
        return Ok(None);
    }
    file.mark()?;
    let length = file.len()?;
    if length > BRIEF_BYTES_MAX {
        return Ok(Some((length, None)));
    }
    let whole = Some(file.read_at(0, length as usize)?);
    Ok(Some((length, whole.filter(|bytes| bytes.len() as u64 == length))))
}

/// The checksum of a range of a cache file.
fn sum_of(file: &dyn CacheFile, range: Range<u64>) -> std::io::Result<u32> {
    let (mut sum, mut at) = (0, range.start);
    while at < range.end {
        let bytes = file.read_at(at, (range.end - at).min(PIECE) as usize)?;
        if bytes.is_empty() {
            break;
        }
        sum = crc32c::crc32c_append(sum, &bytes);
        at += bytes.len() as u64;
    }
    Ok(sum)
}

/// What others have stored since must stay.
fn overtaken(vnode: &Vnode) -> VenusError {
    tracing::error!(fid = %vnode.key.fid, "data whose store failed is older than what others have stored since");
    VenusError::new(ErrorKind::Stale, "StoreData").of(vnode.key.fid)
}

/// Whether there is something to store.
fn is_due(vnode: &Vnode, data: &FileData, occasion: Occasion) -> bool {
    let orphan = vnode.state().orphan;
    let mut content = data.content();
    if occasion.ends_a_change() {
        content.changing = false;
    }
    !orphan && content.is_dirty() && !occasion.leaves_it(&content)
}
