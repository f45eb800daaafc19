//! Count of the programs that have a directory open, and the version of which a kernel may keep a listing for them.
//!
//! A kernel that was offered `FOPEN_CACHE_DIR` puts what any program reads of a directory into one copy, when the reply
//! reaches it, and serves other programs from the copy when it is complete. It validates the copy only by the
//! modification time that it knows of the inode, in whole seconds here, and that need not be the newest (Linux,
//! fs/fuse/readdir.c: `fuse_add_dirent_to_cache`, `fuse_readdir_cached`). A reply in progress while the directory
//! changes would bring old names into the copy of the new version. Therefore all programs that fill the copy at one
//! time must have opened the same version; others bypass it.

use afs_wire::ids::DataVersion;

use crate::api::OpenedDir;

/// What a kernel may keep of a directory.
#[derive(Default)]
pub(crate) struct Listing {
    /// Version opened by the present readers, or by the last ones.
    version: Option<DataVersion>,
    /// Whether the kernel has had the reply to an open of it, upon which it drops the copy of another version.
    is_opened: bool,
    /// Open directory handles whose names go into the kernel's copy.
    readers: u32,
}

impl Listing {
    /// Opens the directory, which is of this version. The handle is counted if it may use the kernel's copy.
    pub fn open(&mut self, version: DataVersion) -> OpenedDir {
        let is_same = self.version == Some(version);
        if self.readers > 0 && !is_same {
            return OpenedDir { caches: false, keep_cache: false };
        }
        self.version = Some(version);
        self.is_opened &= is_same;
        self.readers += 1;
        OpenedDir { caches: true, keep_cache: self.is_opened }
    }

    /// Closes a handle that was counted: no reply with names read through it is in progress any more.
    pub fn close(&mut self) {
        self.readers = self.readers.saturating_sub(1);
        self.is_opened = self.version.is_some();
    }

    /// Forgets the version of the copy: it is no version's any more, or unknown.
    pub fn forget(&mut self) {
        self.version = None;
        self.is_opened = false;
    }

    /// True if a counted handle is open.
    pub fn is_open(&self) -> bool {
        self.readers > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNCACHED: OpenedDir = OpenedDir { caches: false, keep_cache: false };
    const ANEW: OpenedDir = OpenedDir { caches: true, keep_cache: false };
    const KEPT: OpenedDir = OpenedDir { caches: true, keep_cache: true };

    #[test]
    fn the_copy_is_filled_by_readers_of_one_version_only() {
        let mut listing = Listing::default();
        let [old, new] = [1, 2].map(DataVersion);
        // The kernel may take note of the second open first.
        assert_eq!([listing.open(old), listing.open(old)], [ANEW, ANEW]);
        // What the first two are reading may reach the kernel at any moment.
        assert_eq!([listing.open(new), listing.open(new)], [UNCACHED; 2]);
        listing.close();
        assert_eq!(listing.open(new), UNCACHED);
        listing.close();
        assert!(!listing.is_open());
        assert_eq!([listing.open(new), listing.open(new)], [ANEW, ANEW]);
        listing.close();
        assert_eq!([listing.open(new), listing.open(new)], [KEPT, KEPT]);
    }

    #[test]
    fn a_forgotten_listing_is_offered_again_after_its_readers_close() {
        let mut listing = Listing::default();
        let version = DataVersion(1);
        assert_eq!(listing.open(version), ANEW);
        listing.forget();
        assert_eq!(listing.open(version), UNCACHED);
        listing.close();
        assert_eq!(listing.open(version), ANEW);
    }
}
