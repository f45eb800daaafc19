//! Contents of directories in memory: bounded, looked up, and patched after changes by this client.

use std::sync::Arc;

use afs_wire::dir::Blob;
use afs_wire::fs::Status;
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId};

use crate::key::Key;
use crate::vnode::{Directory, DirectoryBytes, Vnode, VnodeTable};

/// Target of a name just before a change by this client; `None` if the local copy of the directory was of another
/// version.
pub(crate) type TargetBefore = Option<Option<Key>>;

/// Contents of all directories in memory.
pub(crate) struct Directories {
    vnodes: Arc<VnodeTable>,
    bytes: DirectoryBytes,
    bytes_max: u64,
}

impl Directories {
    pub fn new(vnodes: Arc<VnodeTable>, bytes_max: u64) -> Self {
        Directories { vnodes, bytes: DirectoryBytes::default(), bytes_max }
    }

    /// Stores contents. Returns the objects that had a name in the previous contents and have none now.
    pub fn keep(&self, vnode: &Vnode, version: DataVersion, blob: Blob) -> Vec<Key> {
        let directory = Directory::new(version, blob, &self.bytes);
        let old = vnode.state().directory.take();
        let removed = old.map(|old| removed(vnode.key, old.blob(), directory.blob()));
        vnode.state().directory = Some(directory);
        self.shrink(vnode.key);
        removed.unwrap_or_default()
    }

    /// Stores the contents of a new directory, which need not be fetched.
    pub fn keep_new(&self, vnode: &Vnode, parent: Fid, status: &Status) {
        let fid = vnode.key.fid;
        let blob = Blob::create((fid.vnode, fid.unique), (parent.vnode, parent.unique));
        if blob.as_bytes().len() as u64 == status.length {
            self.keep(vnode, status.data_version, blob);
        }
    }

    /// Removes the contents of a removed directory. Returns the objects that had a name in it.
    pub fn take(&self, vnode: &Vnode) -> Vec<Key> {
        let directory = vnode.state().directory.take();
        directory.map(|directory| children(vnode.key, directory.blob()).collect()).unwrap_or_default()
    }

    /// Applies a change by this client, which made the directory version `version`, to the local copy if no other
    /// change came in between (docs/protocol/fileserver.md "14. Cache-manager side rules"). Otherwise, or if `edit`
    /// returns false, the copy is dropped.
    pub fn patch(&self, vnode: &Vnode, version: DataVersion, edit: impl FnOnce(&mut Blob) -> bool) {
        let mut state = vnode.state();
        let copy = state.directory.as_mut().filter(|directory| directory.version.next() == version);
        let patched = copy.is_some_and(|directory| directory.edit(edit));
        if !patched {
            state.directory = None;
        }
        state.listing.forget();
    }

    /// Target of a name in a copy of a directory that is about to change.
    pub fn before(&self, dir: Key, blob: &Blob, name: &[u8]) -> TargetBefore {
        let found = blob.lookup(name).ok()?;
        Some(found.map(|(number, unique)| dir.sibling(number, unique)))
    }

    /// Drops contents of the least recently used directories until the bound is kept. Their status is kept.
    fn shrink(&self, but: Key) {
        if self.bytes.total() <= self.bytes_max {
            return;
        }
        for vnode in self.vnodes.all() {
            if self.bytes.total() <= self.bytes_max {
                return;
            }
            let mut state = vnode.state();
            if vnode.key != but && !state.residency.is_kept() {
                state.directory = None;
            }
        }
    }
}

/// Targets of the entries of a directory.
fn children(dir: Key, blob: &Blob) -> impl Iterator<Item = Key> {
    let entries = blob.entries(0).filter(|entry| !matches!(entry.name, b"." | b".."));
    entries.map(move |entry| dir.sibling(entry.vnode, entry.unique))
}

/// Objects with a name in the old contents and none in the new ones.
fn removed(dir: Key, old: &Blob, new: &Blob) -> Vec<Key> {
    let mut still: Vec<(VnodeId, Uniquifier)> =
        new.entries(0).map(|entry| (entry.vnode, entry.unique)).collect();
    still.sort_unstable();
    let is_there = |key: &Key| still.binary_search(&(key.fid.vnode, key.fid.unique)).is_ok();
    children(dir, old).filter(|key| !is_there(key)).collect()
}
