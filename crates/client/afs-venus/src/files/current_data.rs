//! Choice of the data to open: data with local changes or writers, otherwise the version at the server.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;

use crate::cache::{CacheFile, CacheKey, CacheStore, Kept};
use crate::data::{Content, FileData};
use crate::error::Result;
use crate::files::Files;
use crate::vnode::{Vnode, VnodeState};

/// A cache file, and its kept contents if it is not new.
type Found = (Arc<dyn CacheFile>, Option<Kept>);

impl Files {
    /// The data to open: that with dirty ranges or writers, otherwise that of the version in the status. Before the
    /// caller counts a reference, the data may cease to be current.
    pub(super) async fn current(&self, vnode: &Arc<Vnode>, status: &Status) -> Result<Arc<FileData>> {
        if let Some(data) = usable(&vnode.state(), status) {
            return Ok(data);
        }
        let _guard = vnode.fetching.lock().await;
        if let Some(data) = usable(&vnode.state(), status) {
            return Ok(data);
        }
        let key = self.cache_key(vnode.key, status.data_version)?;
        let cache = self.cache.clone();
        let length = status.length;
        let (file, kept) = match cache.find_open(&key).filter(|(_, kept)| kept.length == length) {
            Some((file, kept)) => (file, Some(kept)),
            None if length == 0
                && !cache.may_have(&key.cell, key.fid)
                && let Some(file) = self.spares.pop() =>
            {
                (file, None)
            }
            None => self.disk_briefly(move || find_or_create(&*cache, &key, length)).await?,
        };
        let data = new_data(file, kept, status);
        let mut state = vnode.state();
        // A caller with an older status may have opened that version for writing meanwhile.
        if let Some(data) = usable(&state, status) {
            return Ok(data);
        }
        let replaced = state.file.replace_data(&data);
        drop(state);
        // Dropped with its file, outside of the lock.
        drop(replaced);
        Ok(data)
    }
}

fn new_data(file: Arc<dyn CacheFile>, kept: Option<Kept>, status: &Status) -> Arc<FileData> {
    let is_fresh = kept.is_none();
    let content = match kept {
        Some(kept) => Content::of_kept(status.data_version, kept),
        None => Content::new(status.data_version, status.length),
    };
    let data = Arc::new(FileData::new(file, content));
    data.marked.store(is_fresh && status.length == 0, Ordering::SeqCst);
    data
}

/// The kept file of this version, or a new, empty one of its length.
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

/// Data that is already open and can be opened again.
fn usable(state: &VnodeState, status: &Status) -> Option<Arc<FileData>> {
    let data = state.file.data()?;
    let content = data.content();
    let ours = content.is_changing() || state.file.is_orphan();
    (ours || content.version == status.data_version).then(|| data.clone())
}
