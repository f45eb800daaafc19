//! Passthrough writes: detection and recording of what the kernel has written to a cache file.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::cache::{CacheFile, CacheStore, Ranges, WrittenFile};
use crate::data::{FileData, Sums};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::{BRIEF_BYTES_MAX, Files, Handle};
use crate::vnode::Vnode;

/// Block size of comparisons, in bytes.
const PIECE: u64 = 256 << 10;

impl Files {
    /// Records passthrough writes of the kernel to the current data of a file.
    pub async fn note_kernel_writes(&self, vnode: &Vnode) -> Result<()> {
        let data = vnode.state().file.data().cloned();
        match data {
            Some(data) => self.note_kernel_writes_in(&data).await,
            None => Ok(()),
        }
    }

    /// The same for one version.
    pub async fn note_kernel_writes_in(&self, data: &Arc<FileData>) -> Result<()> {
        if data.content().uses.passthrough() == 0 {
            return Ok(());
        }
        let _guard = data.kernel_writes.lock().await;
        if !data.content().is_complete() {
            // Another version is being fetched into the file: that changed it, not the kernel.
            return Ok(());
        }
        let (cache, file) = (self.cache.clone(), data.file.clone());
        let noted = self.disk_briefly(move || touched(&*cache, &file)).await?;
        let Some((length, whole)) = noted else { return Ok(()) };
        let written = match length <= BRIEF_BYTES_MAX {
            true => Ranges::whole(length),
            false => {
                let file = data.file.clone();
                self.disk(move || file.data()).await?
            }
        };
        let now = self.time();
        data.content().wrote_data(length, &written, now);
        data.marked.store(true, Ordering::SeqCst);
        *data.ready.lock() = whole;
        Ok(())
    }

    /// The same before a store. If a file with passthrough writers is incomplete because another version could not be
    /// fetched into it as a whole, its bytes cannot be attributed to either version: this is an error, since storing
    /// nothing would lose data silently.
    pub async fn note_kernel_writes_to_store(&self, vnode: &Vnode, data: &Arc<FileData>) -> Result<()> {
        // A mapping may have written since these bytes were read.
        *data.ready.lock() = None;
        self.note_kernel_writes_in(data).await?;
        let content = data.content();
        match content.uses.passthrough() > 0 && !content.is_complete() {
            true => Err(VenusError::new(ErrorKind::Cache, "StoreData").of(vnode.key.fid)),
            false => Ok(()),
        }
    }

    /// The kernel may write to the data of a handle from now on: what it writes is found in the cache after a kill of this process.
    pub(super) async fn begin_writing(&self, handle: &Handle, data: &Arc<FileData>) -> Result<()> {
        let Handle { vnode, user, .. } = handle;
        let Some(cell) = self.cells.name(vnode.key.cell) else { return Ok(()) };
        let (version, base_length) = {
            let content = data.content();
            (content.version, content.base_length)
        };
        let of = WrittenFile { cell, fid: vnode.key.fid, owner: *user, version, base_length };
        let (cache, file) = (self.cache.clone(), data.file.clone());
        let is_marked = data.marked.swap(true, Ordering::SeqCst);
        let begin = move || {
            noted_on_disk(cache.begin_writing(&file, of));
            if is_marked { Ok(()) } else { file.mark() }
        };
        self.disk_briefly(begin).await
    }

    /// The server has all that the kernel wrote. Nothing is recorded if later writes may not be detected.
    pub async fn kernel_writes_stored(&self, data: &Arc<FileData>) {
        let _guard = data.kernel_writes.lock().await;
        {
            let content = data.content();
            let is_unsure = content.is_dirty() || data.stored_unsynced.load(Ordering::SeqCst);
            if content.uses.passthrough() == 0 || is_unsure {
                return;
            }
        }
        let (cache, file) = (self.cache.clone(), data.file.clone());
        let note = move || {
            noted_on_disk(cache.set_changed(&file, false));
            Ok(())
        };
        // Its one error is the end of the mount.
        self.disk_briefly(note).await.ok();
    }

    /// Compares the data with the checksums of the last store, because a write through a mapping may leave no other
    /// evidence. A file whose length has changed was written by a system call, which is recorded elsewhere. With more
    /// than `writers_max` writers nothing is done.
    pub async fn compare_with_stored(&self, data: &Arc<FileData>, writers_max: u32) -> Result<()> {
        let _guard = data.kernel_writes.lock().await;
        let known = data.stored_sums.lock().clone();
        let is_quiet = || {
            let content = data.content();
            !content.is_dirty() && content.uses.writers() <= writers_max
        };
        if known.is_empty() || !is_quiet() {
            return Ok(());
        }
        let changed = self.changed_since(data, known.clone()).await?;
        if is_quiet() && Arc::ptr_eq(&data.stored_sums.lock(), &known) {
            let now = self.time();
            changed.into_iter().for_each(|range| data.content().wrote(range, now));
        }
        Ok(())
    }

    /// The ranges whose bytes do not match their checksum.
    async fn changed_since(&self, data: &Arc<FileData>, sums: Arc<Sums>) -> Result<Vec<Range<u64>>> {
        let (file, length) = (data.file.clone(), data.content().length);
        let compare = move || {
            if file.len()? != length {
                return Ok(Vec::new());
            }
            let mut changed = Vec::new();
            for (range, sum) in sums.iter() {
                if sum_of(&*file, 0, range.clone())? != sum {
                    changed.push(range);
                }
            }
            Ok(changed)
        };
        self.disk_moving(length, compare).await
    }
}

/// The length of a file that was written to since it was marked, and the contents of a small file, since it will be
/// stored next. Marks it again.
fn touched(
    cache: &dyn CacheStore,
    file: &Arc<dyn CacheFile>,
) -> std::io::Result<Option<(u64, Option<Bytes>)>> {
    if !file.touched()? {
        return Ok(None);
    }
    // Before the mark, which is what tells of the writes after a kill. A full disk is no reason not to store them.
    noted_on_disk(cache.set_changed(file, true));
    file.mark()?;
    let length = file.len()?;
    if length > BRIEF_BYTES_MAX {
        return Ok(Some((length, None)));
    }
    let whole = Some(file.read_at(0, length as usize)?);
    Ok(Some((length, whole.filter(|bytes| bytes.len() as u64 == length))))
}

fn noted_on_disk(noted: std::io::Result<()>) {
    if let Err(error) = noted {
        tracing::warn!(%error, "what the kernel writes would be lost with a kill of this process: the index of the cache cannot be written");
    }
}

/// The checksum of a range of a cache file, continued from that of other bytes. Ends at the end of the file.
pub(super) fn sum_of(file: &dyn CacheFile, before: u32, range: Range<u64>) -> std::io::Result<u32> {
    let (mut sum, mut at) = (before, range.start);
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
