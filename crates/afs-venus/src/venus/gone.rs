//! Objects that others have removed: what is cached of them is of no use any more, and does not wait until room is needed.
//!
//! Servers do not say that a file is removed, they say that its directory has changed. So an object whose name is gone from
//! the newest contents of a directory is asked about, if anything is cached of it: it may have moved to another directory.

use std::sync::Arc;

use afs_wire::dir::Blob;
use afs_wire::fs;
use afs_wire::ids::{Uniquifier, VnodeId};

use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// A directory has new contents.
    pub(super) fn look_for_removed(&self, dir: Key, old: &Blob, new: &Blob) {
        let mut still: Vec<(VnodeId, Uniquifier)> =
            new.entries(0).map(|entry| (entry.vnode, entry.unique)).collect();
        still.sort_unstable();
        let is_there = |key: &Key| still.binary_search(&(key.fid.vnode, key.fid.unique)).is_ok();
        self.ask_about(dir, children(dir, old).filter(|key| !is_there(key)));
    }

    /// The server says that an object does not exist any more. What was in a directory is gone with it, or has moved.
    pub(super) fn is_gone_there(&self, vnode: &Arc<Vnode>) {
        let directory = vnode.state().directory.take();
        if let Some(directory) = directory {
            self.uncount(&directory);
            self.ask_about(vnode.key, children(vnode.key, &directory.blob));
        }
        vnode.state().is_gone = true;
        self.is_gone(vnode);
    }

    /// Asks in the background whether those objects exist of which something is cached.
    fn ask_about(&self, dir: Key, keys: impl Iterator<Item = Key>) {
        let keys: Vec<Key> = keys.filter(|key| self.has_cached(*key)).collect();
        let Some(volume) = self.volumes.get(dir.cell, dir.fid.volume).filter(|_| !keys.is_empty()) else {
            return;
        };
        let me = self.again();
        self.env.spawn(Box::pin(async move {
            for keys in keys.chunks(fs::FIDS_MAX) {
                me.ask_whether_there(&volume, keys).await;
            }
        }));
    }

    async fn ask_whether_there(&self, volume: &Arc<Volume>, keys: &[Key]) {
        if self.bulk_status(volume, keys).await.is_ok() {
            return;
        }
        // Old servers answer for all or for none.
        for key in keys {
            if let Err(error) = self.ask_status(&self.vnode(*key), volume).await {
                tracing::debug!(%error, "what has lost its name here is not there");
            }
        }
    }

    fn has_cached(&self, key: Key) -> bool {
        let is_known = self.vnodes.peek(key).is_some_and(|vnode| {
            let state = vnode.state();
            !state.is_gone && !state.orphan && (state.data.is_some() || state.directory.is_some())
        });
        is_known || self.cell(key).is_ok_and(|cell| self.cache.may_have(&cell.name, key.fid))
    }
}

/// What the entries of a directory stand for.
fn children(dir: Key, blob: &Blob) -> impl Iterator<Item = Key> {
    let entries = blob.entries(0).filter(|entry| !matches!(entry.name, b"." | b".."));
    entries.map(move |entry| dir.sibling(entry.vnode, entry.unique))
}
