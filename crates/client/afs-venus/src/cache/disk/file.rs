//! A file of the disk cache.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use afs_own::Opening;
use bytes::Bytes;

use super::bytes::FileBytes;
use crate::cache::encryption::CacheCipher;
use crate::cache::kept::Modified;
use crate::cache::{CacheFile, Ranges};

/// Modification time that no write sets by itself: a file that has it was not written to since it was marked.
const MARK: Duration = Duration::from_secs(1);

/// A file of the cache. Deleted with its last reference unless it is kept.
pub(super) struct DiskFile {
    number: u64,
    path: PathBuf,
    bytes: FileBytes,
    kept: AtomicBool,
    /// Bytes of all files that are not kept; of this file, those written through Venus.
    unkept: Arc<AtomicU64>,
    written: AtomicU64,
    /// True if the store keeps the file open for its next use.
    warm: AtomicBool,
    /// True if it was used since it became warm, or since the last [`DiskFile::was_used`].
    used: AtomicBool,
}

impl DiskFile {
    /// A new file, encrypted if there is a cipher of the cache.
    pub fn create(
        number: u64,
        path: PathBuf,
        unkept: &Arc<AtomicU64>,
        cipher: Option<&CacheCipher>,
    ) -> io::Result<Self> {
        let file = Opening::write().new_file().open(&path)?;
        let bytes = FileBytes::new(file, cipher.map(|cipher| cipher.file(number)))?;
        Ok(Self::new(number, path, bytes, unkept, false))
    }

    pub fn open(
        number: u64,
        path: PathBuf,
        unkept: &Arc<AtomicU64>,
        cipher: Option<&CacheCipher>,
    ) -> io::Result<Self> {
        let file = Opening::write().open(&path)?;
        let bytes = FileBytes::new(file, cipher.map(|cipher| cipher.file(number)))?;
        Ok(Self::new(number, path, bytes, unkept, true))
    }

    fn new(number: u64, path: PathBuf, bytes: FileBytes, unkept: &Arc<AtomicU64>, kept: bool) -> Self {
        DiskFile {
            number,
            path,
            bytes,
            kept: AtomicBool::new(kept),
            unkept: unkept.clone(),
            written: AtomicU64::new(0),
            warm: AtomicBool::new(false),
            used: AtomicBool::new(false),
        }
    }

    /// Makes it warm, or records the use of a warm file. Returns true if it was warm before.
    pub fn use_warm(&self) -> bool {
        let was_warm = self.warm.swap(true, Ordering::Relaxed);
        self.used.store(was_warm, Ordering::Relaxed);
        was_warm
    }

    /// True if it was used since the last call of this method.
    pub fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// True if the store keeps it open.
    pub fn is_warm(&self) -> bool {
        self.warm.load(Ordering::Relaxed)
    }

    /// Records that the store does not keep it open any longer.
    pub fn leave_warm(&self) {
        self.warm.store(false, Ordering::Relaxed);
    }

    /// When it was modified last.
    pub fn modified(&self) -> io::Result<Modified> {
        modified_of(&self.bytes.on_disk().metadata()?)
    }

    /// Whether nobody has written to it since it had this time. What was written through Venus since then has a newer record, or was marked.
    pub fn is_as_kept(&self, kept: Modified) -> io::Result<bool> {
        let modified = self.modified()?;
        Ok(modified == kept || is_marked(modified))
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sets whether the file is kept; a kept file is counted by its index record.
    pub fn set_kept(&self, kept: bool) {
        if !self.kept.swap(kept, Ordering::SeqCst) && kept {
            self.uncharge(self.written.swap(0, Ordering::SeqCst));
        }
    }

    fn charge(&self, bytes: u64) {
        if !self.kept.load(Ordering::SeqCst) {
            self.written.fetch_add(bytes, Ordering::SeqCst);
            self.unkept.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn uncharge(&self, bytes: u64) {
        self.unkept.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// When a file of the disk was modified last.
pub(super) fn modified_of(metadata: &fs::Metadata) -> io::Result<Modified> {
    let since = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH);
    Ok(Modified(since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))))
}

/// True if a file with this time was not written to since it was marked.
pub(super) fn is_marked(modified: Modified) -> bool {
    u128::from(modified.0) == MARK.as_nanos()
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.uncharge(self.written.swap(0, Ordering::SeqCst));
        if !self.kept.load(Ordering::SeqCst)
            && let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "a cache file cannot be removed");
        }
    }
}

impl CacheFile for DiskFile {
    fn id(&self) -> u64 {
        self.number
    }

    fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        self.bytes.read_at(pos, len)
    }

    fn read_now(&self, pos: u64, len: usize) -> Option<Bytes> {
        self.bytes.read_now(pos, len)
    }

    fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        self.charge(data.len() as u64);
        self.bytes.write_at(pos, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.bytes.len()
    }

    fn mark(&self) -> io::Result<()> {
        self.bytes.on_disk().set_modified(SystemTime::UNIX_EPOCH + MARK)
    }

    fn touched(&self) -> io::Result<bool> {
        Ok(!is_marked(self.modified()?))
    }

    fn sync(&self) -> io::Result<()> {
        self.bytes.on_disk().sync_data()
    }

    fn data(&self) -> io::Result<Ranges> {
        self.bytes.data()
    }

    fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let blocks = || io::Result::Ok(self.bytes.on_disk().metadata()?.blocks() * 512);
        let before = blocks()?;
        self.bytes.discard(pos, len)?;
        let freed = before.saturating_sub(blocks()?).min(len);
        let left = |written: u64| Some(written.saturating_sub(freed));
        if let Ok(written) = self.written.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
            self.uncharge(written.min(freed));
        }
        Ok(())
    }

    fn file(&self) -> Option<Arc<fs::File>> {
        self.bytes.shared()
    }
}
