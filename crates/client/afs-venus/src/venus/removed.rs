//! Objects removed by other clients: their cached data is deleted at once instead of at the next eviction.
//!
//! Servers do not report that a file was removed, only that its directory changed. If a cached object has no name in
//! the newest contents of its directory, its status is fetched: it may have moved to another directory.

use std::sync::Arc;

use afs_wire::fs;

use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Records that an object does not exist at the server any more. The entries of a directory are checked: they are
    /// removed too, or have moved.
    pub(super) fn removed_at_server(&self, vnode: &Arc<Vnode>) {
        self.check_existence_soon(vnode.key, self.names.directories().take(vnode));
        vnode.state().is_gone = true;
        self.note_removed(vnode);
    }

    /// Checks in the background whether objects still exist, if anything is cached of them.
    pub(super) fn check_existence_soon(&self, dir: Key, mut keys: Vec<Key>) {
        keys.retain(|key| self.has_cached(*key));
        let Some(volume) = self.location.volume_of(dir).filter(|_| !keys.is_empty()) else {
            return;
        };
        let me = self.in_background();
        self.env.spawn(Box::pin(async move {
            for keys in keys.chunks(fs::FIDS_MAX) {
                me.check_existence(&volume, keys).await;
            }
        }));
    }

    async fn check_existence(&self, volume: &Arc<Volume>, keys: &[Key]) {
        if self.bulk_status(volume, keys).await.is_ok() {
            return;
        }
        // Old servers reply for all objects or for none.
        for key in keys {
            if let Err(error) = self.fetch_status(&self.vnode(*key), volume).await {
                tracing::debug!(%error, "what has lost its name here is not there");
            }
        }
    }

    fn has_cached(&self, key: Key) -> bool {
        let is_known = self.vnodes.peek(key).is_some_and(|vnode| {
            let state = vnode.state();
            !state.is_gone
                && !state.file.is_orphan()
                && (state.file.data().is_some() || state.directory.is_some())
        });
        is_known || self.files.may_have(key)
    }
}
