//! Data of files that was decided under a lost lease: stored by single calls, and kept as unsaved where the server does not take it.

use afs_wire::fs::SmallData;
use afs_wire::ids::{DataVersion, Fid, FileTime};
use bytes::Bytes;

use super::state::{Loss, Unstored};
use crate::error::Result;
use crate::key::Key;
use crate::leases::{Entry, Lease, WholeStore};
use crate::venus::Venus;
use crate::venus::leasing::may_be_sent_again;
use crate::venus::maintenance::is_final;
use crate::venus::store_reason::StoreReason;

impl Venus {
    /// Stores a whole file by a single call, whatever others have stored meanwhile.
    pub(super) async fn store_whole_alone(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        store: &WholeStore,
    ) -> Result<()> {
        let store = WholeStore { fid: loss.lease.in_place_of(store.fid), ..store.clone() };
        match self.send_store(loss.lease, &store, None).await.result {
            Err(error) if !may_be_sent_again(&error) => {
                self.is_unstored(loss.lease, entry, &store, loss.unstored);
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }

    /// The server has not taken the data of a file.
    pub(in crate::venus::leasing) fn is_unstored(
        &self,
        lease: &Lease,
        entry: &Entry,
        store: &WholeStore,
        unstored: &mut Vec<Unstored>,
    ) {
        lease.fates(|fates| fates.note_unstored(entry.vnode.key));
        let data = (store.data.clone(), store.status.mod_time);
        unstored.push(self.unstored(entry, store.fid, store.expected, data));
    }

    pub(super) fn unstored(
        &self,
        entry: &Entry,
        fid: Fid,
        version: DataVersion,
        (data, time): (Bytes, Option<FileTime>),
    ) -> Unstored {
        let vnode = self.vnode(Key::new(entry.vnode.key.cell, fid));
        Unstored { vnode, user: entry.user, version, data, time }
    }

    /// Stores data that the server did not take with the other changes; what it does not take now either is kept as after a close.
    pub(in crate::venus::leasing) async fn store_unstored(&self, unstored: Unstored) {
        let Unstored { vnode, user, version, data, time } = unstored;
        let me = self.as_user(user);
        let data = match me.files.unsaved_data(&vnode, user, version, data, time).await {
            Ok(data) => data,
            Err(full) => {
                tracing::error!(%full, fid = %vnode.key.fid, "data is lost: the server and the cache do not take it");
                return;
            }
        };
        match me.store(&vnode, &data, StoreReason::Close).await {
            Ok(()) => me.retire(&vnode, &data, user).await,
            Err(error) if is_final(error.kind) => me.give_up_data(&vnode, &error).await,
            Err(error) => {
                me.files.note_failure(vnode.key, &error);
                me.keep_unsaved(&vnode, &data).await;
            }
        }
    }
}

/// The bytes of a file in a change.
pub(super) fn bytes_of(data: &SmallData) -> Bytes {
    Bytes::copy_from_slice(data.as_bytes())
}
