//! Contents of directories in memory, with a count of their bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_wire::dir::Blob;
use afs_wire::ids::DataVersion;

/// Count of the bytes of all directories in memory; dropping a directory reduces it.
#[derive(Clone, Default)]
pub(crate) struct DirectoryBytes(Arc<AtomicU64>);

impl DirectoryBytes {
    /// Number of bytes.
    pub fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Contents of a directory at a version.
pub(crate) struct Directory {
    pub version: DataVersion,
    blob: Blob,
    account: DirectoryBytes,
    /// Bytes counted for this directory.
    counted: u64,
}

impl Directory {
    pub fn new(version: DataVersion, blob: Blob, account: &DirectoryBytes) -> Self {
        let mut directory = Directory { version, blob, account: account.clone(), counted: 0 };
        directory.count();
        directory
    }

    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// Changes the contents, and sets the next version.
    pub fn edit<T>(&mut self, edit: impl FnOnce(&mut Blob) -> T) -> T {
        self.version = self.version.next();
        let done = edit(&mut self.blob);
        self.count();
        done
    }

    fn count(&mut self) {
        let bytes = self.blob.as_bytes().len() as u64;
        self.account.0.fetch_add(bytes, Ordering::Relaxed);
        self.account.0.fetch_sub(self.counted, Ordering::Relaxed);
        self.counted = bytes;
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.account.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::dir;
    use afs_wire::ids::{Uniquifier, VnodeId};

    use super::*;

    fn empty() -> Blob {
        Blob::create((VnodeId(1), Uniquifier(1)), (VnodeId(1), Uniquifier(1)))
    }

    #[test]
    fn the_account_follows_directories_that_grow_or_are_dropped() {
        let account = DirectoryBytes::default();
        let one = empty().as_bytes().len() as u64;
        let mut first = Directory::new(DataVersion(1), empty(), &account);
        let second = Directory::new(DataVersion(1), empty(), &account);
        assert_eq!(account.total(), 2 * one);
        first.edit(|blob| {
            for n in 0..500 {
                let name = format!("a name that takes some room {n}");
                dir::insert(blob, name.as_bytes(), (VnodeId(2), Uniquifier(n))).unwrap();
            }
        });
        let grown = first.blob().as_bytes().len() as u64;
        assert!(grown > one && first.version == DataVersion(2));
        assert_eq!(account.total(), grown + one);
        drop(second);
        assert_eq!(account.total(), grown);
        drop(first);
        assert_eq!(account.total(), 0);
    }
}
