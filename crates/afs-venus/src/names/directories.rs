//! Contents of directories in memory: kept within a bound, looked up, and changed as the server's were by us.

use std::sync::Arc;

use afs_wire::dir::Blob;
use afs_wire::fs::Status;
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId};

use crate::key::Key;
use crate::vnode::{Directory, DirectoryBytes, Vnode, VnodeTable};

/// What a name stood for just before a change of ours at the server: told by our copy of the directory if it was of that version.
pub(crate) type TargetBefore = Option<Option<Key>>;

/// The contents of all directories in memory.
pub(crate) struct Directories {
    vnodes: Arc<VnodeTable>,
    bytes: DirectoryBytes,
    bytes_max: u64,
}

impl Directories {
    pub fn new(vnodes: Arc<VnodeTable>, bytes_max: u64) -> Self {
        Directories { vnodes, bytes: DirectoryBytes::default(), bytes_max }
    }

    /// Takes contents in. Gives the objects that had a name in the contents of before and have none any more.
    pub fn keep(&self, vnode: &Vnode, version: DataVersion, blob: Blob) -> Vec<Key> {
        let directory = Directory::new(version, blob, &self.bytes);
        let old = vnode.state().directory.take();
        let removed = old.map(|old| removed(vnode.key, old.blob(), directory.blob()));
        vnode.state().directory = Some(directory);
        self.shrink(vnode.key);
        removed.unwrap_or_default()
    }

    /// A new directory's contents, which need not be fetched.
    pub fn keep_new(&self, vnode: &Vnode, parent: Fid, status: &Status) {
        let fid = vnode.key.fid;
        let blob = Blob::create((fid.vnode, fid.unique), (parent.vnode, parent.unique));
        if blob.as_bytes().len() as u64 == status.length {
            self.keep(vnode, status.data_version, blob);
        }
    }

    /// Takes the contents of a directory that is no more out of memory. Gives the objects that had a name in it.
    pub fn take(&self, vnode: &Vnode) -> Vec<Key> {
        let directory = vnode.state().directory.take();
        directory.map(|directory| children(vnode.key, directory.blob()).collect()).unwrap_or_default()
    }

    /// After a change of our own that brought a directory to `version`: the same change to our copy, if it was the only one
    /// (docs/protocol/fileserver.md "14. Cache-manager side rules"); else, or if `edit` says that it failed, the copy goes.
    pub fn patch(&self, vnode: &Vnode, version: DataVersion, edit: impl FnOnce(&mut Blob) -> bool) {
        let mut state = vnode.state();
        let copy = state.directory.as_mut().filter(|directory| directory.version.next() == version);
        let patched = copy.is_some_and(|directory| directory.edit(edit));
        if !patched {
            state.directory = None;
        }
        state.listing.forget();
    }

    /// What a name stands for in a copy of a directory that is about to be changed.
    pub fn before(&self, dir: Key, blob: &Blob, name: &[u8]) -> TargetBefore {
        let found = blob.lookup(name).ok()?;
        Some(found.map(|(number, unique)| dir.sibling(number, unique)))
    }

    /// Drops contents of the directories not used longest until the bound is kept. Their status stays.
    fn shrink(&self, but: Key) {
        if self.bytes.total() <= self.bytes_max {
            return;
        }
        for vnode in self.vnodes.all() {
            if self.bytes.total() <= self.bytes_max {
                return;
            }
            if vnode.key != but {
                vnode.state().directory = None;
            }
        }
    }
}

/// What the entries of a directory stand for.
fn children(dir: Key, blob: &Blob) -> impl Iterator<Item = Key> {
    let entries = blob.entries(0).filter(|entry| !matches!(entry.name, b"." | b".."));
    entries.map(move |entry| dir.sibling(entry.vnode, entry.unique))
}

/// What has a name in the old contents and none in the new ones.
fn removed(dir: Key, old: &Blob, new: &Blob) -> Vec<Key> {
    let mut still: Vec<(VnodeId, Uniquifier)> =
        new.entries(0).map(|entry| (entry.vnode, entry.unique)).collect();
    still.sort_unstable();
    let is_there = |key: &Key| still.binary_search(&(key.fid.vnode, key.fid.unique)).is_ok();
    children(dir, old).filter(|key| !is_there(key)).collect()
}
