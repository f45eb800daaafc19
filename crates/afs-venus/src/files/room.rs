//! Room in the cache, and what is kept there.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::DataVersion;

use crate::cache::CacheKey;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Files;
use crate::key::Key;

impl Files {
    /// Bytes that the cache holds at most.
    pub fn bytes_max(&self) -> u64 {
        self.cache.bytes_max()
    }

    /// The name of a version in the cache. Fails for a cell that is not known.
    pub(super) fn cache_key(&self, key: Key, version: DataVersion) -> Result<CacheKey> {
        let cell = self.cells.get(usize::from(key.cell.0));
        let cell = cell.ok_or(VenusError::new(ErrorKind::NoVolume, "cell"))?.clone();
        Ok(CacheKey { cell, fid: key.fid, version })
    }

    /// Whether anything is kept of a file; also if that is not known without waiting.
    pub fn may_have(&self, key: Key) -> bool {
        self.cache_key(key, DataVersion(0)).is_ok_and(|named| self.cache.may_have(&named.cell, key.fid))
    }

    /// How many bytes of what is kept of a version are in holes; 0 also if that is not known without waiting.
    pub fn hole_bytes(&self, key: Key, version: DataVersion) -> u64 {
        self.cache_key(key, version).map_or(0, |named| self.cache.hole_bytes(&named))
    }

    /// Forgets what is kept of a file, which is of no use any more.
    pub fn forget_kept(&self, key: Key) {
        if let Ok(named) = self.cache_key(key, DataVersion(0)) {
            self.cache.forget(&named.cell, key.fid);
        }
    }

    /// The same where blocking does no harm.
    pub async fn forget_kept_on_disk(&self, key: Key) -> Result<()> {
        let named = self.cache_key(key, DataVersion(0))?;
        let cache = self.cache.clone();
        self.disk(move || {
            cache.forget(&named.cell, named.fid);
            Ok(())
        })
        .await
    }

    /// A user of data is about to change it: from now on the cache file may be no version of the server's, and must not be found as one
    /// after a crash.
    pub async fn prepare_change(&self, key: Key, data: &FileData) -> Result<()> {
        let _guard = data.keeping.lock().await;
        match self.may_have(key) {
            true => self.forget_kept_on_disk(key).await,
            false => Ok(()),
        }
    }

    /// Whether so many bytes more fit into the cache, if need be after files that are not in use are dropped.
    pub(super) async fn has_room(&self, bytes: u64) -> bool {
        if self.cache.fits(bytes) {
            return true;
        }
        let cache = self.cache.clone();
        self.disk(move || Ok(cache.make_room(bytes))).await.unwrap_or(false)
    }

    /// Makes room in the cache: by dropping what nobody uses, else parts of this very file outside of what is wanted.
    pub async fn make_room(&self, data: &Arc<FileData>, bytes: u64, wanted: &Range<u64>) {
        if self.has_room(bytes).await {
            return;
        }
        let evicted = {
            let mut content = data.content();
            match content.uses.passthrough() > 0 || data.backed.load(Ordering::SeqCst) {
                false => content.evict(bytes, wanted),
                // The kernel reads and writes the whole file by itself.
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

    /// Makes what is kept outlive the process.
    pub async fn shut_down(&self) -> Result<()> {
        let cache = self.cache.clone();
        self.disk(move || cache.shut_down()).await
    }
}
