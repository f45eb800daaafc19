//! Records of pinned objects in the cache, and the contents of pinned directories, for reading while no server replies.

use afs_wire::ids::{CellName, DataVersion, Fid};
use bytes::Bytes;

use crate::cache::{CacheKey, Kept, OfflineRecord, Ranges};
use crate::error::Result;
use crate::files::Files;
use crate::key::Key;

impl Files {
    /// The record of a pinned object, or of a volume.
    ///
    /// # Errors
    /// The cache.
    pub async fn offline(&self, key: Key) -> Result<Option<OfflineRecord>> {
        let CacheKey { cell, fid, .. } = self.cache_key(key, DataVersion(0))?;
        let cache = self.cache.clone();
        self.disk_briefly(move || Ok(cache.offline(&cell, fid))).await
    }

    /// Keeps a record in place of an older one.
    ///
    /// # Errors
    /// The cache.
    pub async fn keep_offline(&self, key: Key, record: OfflineRecord) -> Result<()> {
        let CacheKey { cell, fid, .. } = self.cache_key(key, DataVersion(0))?;
        let cache = self.cache.clone();
        self.disk_briefly(move || cache.keep_offline(&cell, fid, record)).await
    }

    /// Removes a record; of a directory its contents, too.
    ///
    /// # Errors
    /// The cache.
    pub async fn forget_offline(&self, key: Key) -> Result<()> {
        let CacheKey { cell, fid, .. } = self.cache_key(key, DataVersion(0))?;
        let cache = self.cache.clone();
        let forget = move || {
            cache.forget_offline(&cell, fid);
            if fid.is_directory() {
                cache.forget(&cell, fid);
            }
            Ok(())
        };
        self.disk_briefly(forget).await
    }

    /// All fids that have a record, by the index of their cell; those of cells that this mount does not know are left out.
    ///
    /// # Errors
    /// The cache.
    pub async fn all_offline(&self) -> Result<Vec<Key>> {
        let (cache, cells) = (self.cache.clone(), self.cells.clone());
        let names = self.disk(move || Ok(cache.offline_names())).await?;
        let key = |(cell, fid): (CellName, Fid)| Some(Key::new(cells.index(cell.as_str())?, fid));
        Ok(names.into_iter().filter_map(key).collect())
    }

    /// Keeps the contents of a directory, as those of a file.
    ///
    /// # Errors
    /// The cache.
    pub async fn keep_contents(&self, key: Key, version: DataVersion, contents: Bytes) -> Result<()> {
        let named = self.cache_key(key, version)?;
        let length = contents.len() as u64;
        if self.cache.kept_bytes(&named) == Some(length) {
            return Ok(());
        }
        let cache = self.cache.clone();
        let keep = move || {
            let file = cache.create()?;
            file.write_at(0, &contents)?;
            file.mark()?;
            cache.keep(&named, &file, &Kept { length, present: Ranges::whole(length), holes: Ranges::new() })
        };
        self.disk_moving(length, keep).await
    }

    /// The contents of a directory of this version and length, if they are kept.
    ///
    /// # Errors
    /// The cache.
    pub async fn contents(&self, key: Key, version: DataVersion, length: u64) -> Result<Option<Vec<u8>>> {
        let named = self.cache_key(key, version)?;
        let cache = self.cache.clone();
        let read = move || {
            let whole = |kept: &Kept| kept.length == length && kept.present.contains(&(0..length));
            let Some((file, _)) = cache.find(&named).filter(|(_, kept)| whole(kept)) else { return Ok(None) };
            Ok(Some(file.read_at(0, length as usize)?.to_vec()))
        };
        self.disk_moving(length, read).await
    }
}
