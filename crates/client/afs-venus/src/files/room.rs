//! Space in the cache, and which files are kept there.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::DataVersion;

use crate::cache::{CacheKey, CacheStore};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Files;
use crate::key::Key;
use crate::vnode::Vnode;

impl Files {
    /// Limit of the cache, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.cache.bytes_max()
    }

    /// Bytes in the cache. May block.
    pub fn bytes_used(&self) -> u64 {
        self.cache.bytes_used()
    }

    /// Cache key of a version. Fails for an unknown cell.
    pub(super) fn cache_key(&self, key: Key, version: DataVersion) -> Result<CacheKey> {
        let cell = self.cells.name(key.cell).ok_or(VenusError::new(ErrorKind::NoVolume, "cell"))?;
        Ok(CacheKey { cell, fid: key.fid, version })
    }

    /// True if a version of the file may be kept; also if that is unknown without blocking.
    pub fn may_have(&self, key: Key) -> bool {
        self.cache_key(key, DataVersion(0)).is_ok_and(|named| self.cache.may_have(&named.cell, key.fid))
    }

    /// Objects of the same volume whose kept files were used about when that of an object was, see
    /// [`crate::CacheStore::kept_near`].
    pub fn kept_near(&self, key: Key, examined: usize) -> Vec<Key> {
        let Ok(named) = self.cache_key(key, DataVersion(0)) else { return Vec::new() };
        let near = self.cache.kept_near(&named.cell, key.fid, examined);
        near.into_iter().map(|fid| Key::new(key.cell, fid)).collect()
    }

    /// Bytes in holes of the kept version; 0 if unknown without blocking.
    pub fn hole_bytes(&self, key: Key, version: DataVersion) -> u64 {
        self.cache_key(key, version).map_or(0, |named| self.cache.hole_bytes(&named))
    }

    /// Bytes of the kept version; `None` if unknown without blocking.
    pub fn kept_bytes(&self, key: Key, version: DataVersion) -> Option<u64> {
        self.cache.kept_bytes(&self.cache_key(key, version).ok()?)
    }

    /// Removes what is kept of a file.
    pub fn forget_kept(&self, key: Key) {
        if let Ok(named) = self.cache_key(key, DataVersion(0)) {
            self.cache.forget(&named.cell, key.fid);
        }
    }

    /// The same on a blocking thread.
    pub async fn forget_kept_on_disk(&self, key: Key) -> Result<()> {
        let named = self.cache_key(key, DataVersion(0))?;
        let cache = self.cache.clone();
        self.disk(move || {
            cache.forget(&named.cell, named.fid);
            Ok(())
        })
        .await
    }

    /// Called before data changes: from now on the cache file may be no version of the server's, and must not be found
    /// as one after a crash.
    pub async fn prepare_change(&self, key: Key, data: &FileData) -> Result<()> {
        let _guard = data.keeping.lock().await;
        match self.may_have(key) {
            true => self.forget_kept_on_disk(key).await,
            false => Ok(()),
        }
    }

    /// True if this many more bytes fit into the cache, after eviction of unused files if needed.
    pub(super) async fn has_room(&self, bytes: u64) -> bool {
        if self.cache.fits(bytes) {
            return true;
        }
        let cache = self.cache.clone();
        self.disk(move || Ok(cache.make_room(bytes))).await.unwrap_or(false)
    }

    /// Pins an object, or ends that.
    pub fn set_pinned(&self, key: Key, is_pinned: bool) {
        if let Ok(named) = self.cache_key(key, DataVersion(0)) {
            self.cache.set_pinned(&named.cell, key.fid, is_pinned);
        }
    }

    /// The store, for its list of pins.
    pub fn store_of_pins(&self) -> &Arc<dyn CacheStore> {
        &self.cache
    }

    /// Frees space in the cache: evicts unused files, else ranges of this file outside of `wanted`. What is kept stays, but
    /// for ranges of a file that is being written.
    pub async fn make_room(&self, vnode: &Vnode, data: &Arc<FileData>, bytes: u64, wanted: &Range<u64>) {
        if self.has_room(bytes).await {
            return;
        }
        let is_kept = vnode.state().residency.is_kept();
        let evicted = {
            let mut content = data.content();
            let stays = is_kept && content.uses.writers() == 0;
            match stays || content.uses.passthrough() > 0 || data.backed.load(Ordering::SeqCst) {
                false => content.evict(bytes, wanted),
                // The kernel reads and writes the whole file by passthrough.
                true => Vec::new(),
            }
        };
        let file = data.file.clone();
        let dropped = self
            .disk(move || {
                evicted.into_iter().try_for_each(|range| file.discard(range.start, range.end - range.start))
            })
            .await;
        if dropped.is_err() {
            tracing::debug!("room in the cache cannot be given back");
        }
    }

    /// Makes what is kept available after a restart of the process.
    pub async fn shut_down(&self) -> Result<()> {
        self.records_dropped().await;
        let cache = self.cache.clone();
        self.disk(move || cache.shut_down()).await
    }
}
