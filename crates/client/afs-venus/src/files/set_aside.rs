//! Data that no server will accept and that is no file's data any more, kept for the user who wrote it; bounded.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::UnsavedTicket;
use crate::data::FileData;
use crate::files::Failure;
use crate::identity::User;
use crate::key::Key;

/// Most files that are set aside; of more, the oldest are dropped.
const FILES_MAX: usize = 256;
/// The part of the cache that they may take.
const SHARE_OF_CACHE: u64 = 4;

/// Data that was set aside.
#[derive(Clone)]
pub(crate) struct SetAside {
    /// The file that it was to be stored to.
    pub key: Key,
    /// Who wrote it.
    pub user: User,
    /// Why it could not be stored.
    pub failure: Failure,
    /// The data; its cache file is deleted with the last reference.
    pub data: Arc<FileData>,
    /// The record on disk by which it survives the mount.
    pub kept: Option<UnsavedTicket>,
}

impl SetAside {
    fn bytes(&self) -> u64 {
        self.data.content().cached_data().bytes()
    }
}

/// All data that is set aside, the oldest first.
#[derive(Default)]
pub(super) struct SetAsideTable(Mutex<Vec<SetAside>>);

impl SetAsideTable {
    /// Adds data, in place of older data of the same file and user. Returns what had to go: the replaced data, and the oldest
    /// beyond the bounds.
    pub fn add(&self, new: SetAside, cache_bytes: u64) -> Vec<SetAside> {
        let mut all = self.0.lock();
        let is_same = |old: &SetAside| (old.key, old.user) == (new.key, new.user);
        let mut dropped: Vec<SetAside> = all.extract_if(.., |old| is_same(old)).collect();
        all.push(new);
        let mut bytes: u64 = all.iter().map(SetAside::bytes).sum();
        while all.len() > FILES_MAX || (bytes > cache_bytes / SHARE_OF_CACHE && !all.is_empty()) {
            let oldest = all.remove(0);
            bytes = bytes.saturating_sub(oldest.bytes());
            dropped.push(oldest);
        }
        dropped
    }

    /// Removes the data in this cache file; `None` if it is not there any more.
    pub fn take(&self, number: u64) -> Option<SetAside> {
        let mut all = self.0.lock();
        let at = all.iter().position(|it| it.data.file.id() == number)?;
        Some(all.remove(at))
    }

    /// Records that the data in this cache file survives the mount. Returns false if it is not there any more.
    pub fn set_kept(&self, number: u64, ticket: UnsavedTicket) -> bool {
        let mut all = self.0.lock();
        let found = all.iter_mut().find(|it| it.data.file.id() == number);
        found.map(|found| found.kept = Some(ticket)).is_some()
    }

    pub fn all(&self) -> Vec<SetAside> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{DataVersion, Fid, Uniquifier, UnixSeconds, VnodeId, VolumeId};

    use super::*;
    use crate::api::TokenOwner;
    use crate::cache::{CacheStore, MemoryCache};
    use crate::data::Content;
    use crate::error::{ErrorKind, VenusError};
    use crate::key::CellIndex;

    fn data_of(cache: &MemoryCache, vnode: u32, bytes: u64) -> SetAside {
        let mut content = Content::new(DataVersion(1), 0);
        content.wrote(0..bytes, UnixSeconds(1).into());
        SetAside {
            key: Key::new(CellIndex(0), Fid::new(VolumeId(1), VnodeId(vnode), Uniquifier(1))),
            user: Some(TokenOwner::Uid(7)),
            failure: Failure {
                error: VenusError::new(ErrorKind::AccessDenied, "StoreData"),
                since: UnixSeconds(1),
            },
            data: Arc::new(FileData::new(cache.create().unwrap(), content)),
            kept: None,
        }
    }

    fn vnodes(all: &[SetAside]) -> Vec<u32> {
        all.iter().map(|it| it.key.fid.vnode.0).collect()
    }

    #[test]
    fn the_oldest_data_goes_first_and_never_more_than_a_quarter_of_the_cache_stays() {
        let (cache, table) = (MemoryCache::new(1 << 20), SetAsideTable::default());
        for vnode in 1..=4 {
            assert_eq!(vnodes(&table.add(data_of(&cache, vnode, 25), 400)), [0; 0]);
        }
        assert_eq!(vnodes(&table.add(data_of(&cache, 5, 30), 400)), [1, 2]);
        assert_eq!(vnodes(&table.add(data_of(&cache, 4, 10), 400)), [4], "newer data of the same file");
        assert_eq!(vnodes(&table.all()), [3, 5, 4]);
        assert_eq!(vnodes(&table.add(data_of(&cache, 6, 101), 400)), [3, 5, 4, 6], "not even this one");
        let small = (0..300).flat_map(|n| table.add(data_of(&cache, n, 0), 400)).count();
        assert_eq!((small, table.all().len()), (44, FILES_MAX));
    }

    #[test]
    fn data_is_taken_once() {
        let (cache, table) = (MemoryCache::new(1 << 20), SetAsideTable::default());
        let new = data_of(&cache, 1, 5);
        let number = new.data.file.id();
        table.add(new, 400);
        assert!(
            table.take(number + 1).is_none() && table.take(number).is_some() && table.take(number).is_none()
        );
    }
}
