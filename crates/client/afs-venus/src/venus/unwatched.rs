//! Open files that a kernel reads without asking: their newest version is asked for when their promise has ended.

use std::collections::BTreeSet;

use afs_rpc::future::join_all;

use crate::error::ErrorKind;
use crate::key::Key;
use crate::venus::Venus;

/// Files that are asked for at a time.
const FILES_MAX: usize = 16;

impl Venus {
    /// Asks for the newest version of open files whose promise has ended, and that a kernel reads without asking: they grow all the same.
    pub(super) fn watch_open_files(&self) {
        let due = self.promises.take_unwatched();
        if due.is_empty() {
            return;
        }
        let me = self.without_waiting();
        self.env.spawn(Box::pin(async move { me.look_at_open(due).await }));
    }

    async fn look_at_open(&self, due: BTreeSet<Key>) {
        let due: Vec<Key> = due.into_iter().collect();
        for keys in due.chunks(FILES_MAX) {
            join_all(keys.iter().map(|key| self.look_at_open_file(*key))).await;
        }
    }

    async fn look_at_open_file(&self, key: Key) {
        let Some(vnode) = self.vnodes.peek(key) else { return };
        let user = vnode.state().file.opened_by();
        let me = self.as_user(user);
        match me.status(&vnode).await {
            Ok(status) => {
                me.grow_open(&vnode, &status).await;
                if self.files.may_grow(&vnode, &status).is_some() {
                    self.promises.still_unwatched(key);
                }
            }
            Err(error) if error.kind == ErrorKind::ServerUnreachable && vnode.state().file.opens() > 0 => {
                self.promises.still_unwatched(key);
            }
            Err(error) => tracing::debug!(%error, fid = %key.fid, "an open file keeps its version"),
        }
    }
}
