//! What was decided under a lease and cannot be made: logged, its data set aside for its user. And what is not known any more after a loss.

use std::sync::Arc;

use afs_wire::fs::Change;
use afs_wire::ids::FileTime;
use bytes::Bytes;

use super::data::bytes_of;
use crate::counters::count;
use crate::error::VenusError;
use crate::leases::{Decided, Entry, Lease};
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// What was decided of an object is not known to be so.
    pub(in crate::venus::leasing) fn forget_decided(&self, lease: &Lease, entry: &Entry) {
        if let Some(unlinked) = entry.unlinked.and_then(|key| self.vnodes.peek(key)) {
            self.distrust(&unlinked);
            self.invalidate(unlinked.key);
        }
        let key = entry.vnode.key;
        if entry.dirs.iter().any(|(dir, _)| dir.key == key) {
            return;
        }
        if entry.makes_object() && lease.in_place_of(key.fid) != key.fid {
            entry.vnode.state().is_gone = true;
            self.note_removed(&entry.vnode);
        } else {
            self.distrust(&entry.vnode);
        }
        self.files.drop_decided(&entry.vnode);
        self.invalidate(key);
    }

    /// The server has another directory than the copy here.
    pub(in crate::venus::leasing) fn forget_copy(&self, dir: &Arc<Vnode>) {
        self.distrust(dir);
        dir.state().directory = None;
        self.invalidate(dir.key);
    }

    /// Gives up all that waits.
    pub(in crate::venus::leasing) async fn give_up_lease(&self, lease: &Arc<Lease>, error: &VenusError) {
        lease.lose(None);
        while let Some(entry) = lease.journal(|journal| journal.first()) {
            self.as_user(entry.user).is_given_up(lease, &entry, error).await;
            lease.journal(|journal| journal.first_is_over());
        }
        self.leases.remove(lease);
    }

    /// A change will not be made.
    pub(super) async fn is_given_up(&self, lease: &Lease, entry: &Entry, error: &VenusError) {
        let (dir, change, key) = (lease.dir.fid, &entry.decided, entry.vnode.key);
        if entry.makes_object() && lease.journal(|journal| journal.names_left(key)) <= 0 {
            // Its program has removed it.
            lease.fates(|fates| fates.note_unmade(key));
            tracing::debug!(%error, %dir, ?change, "an object without a name could not be made");
        } else {
            count(&self.counters.changes_given_up);
            tracing::error!(%error, %dir, ?change, "a change that was decided under a lease could not be made");
            self.set_decided_aside(entry, error).await;
        }
        if entry.vnode.state().file.opens() > 0 {
            self.leases.note_failure(key, error.clone());
        }
    }

    async fn set_decided_aside(&self, entry: &Entry, error: &VenusError) {
        let key = entry.vnode.key;
        let Some((data, time)) = data_of(&entry.decided).filter(|(data, _)| !data.is_empty()) else { return };
        match self.files.set_bytes_aside(key, self.context.user, data, time, error).await {
            Ok(number) => self.keep_aside(&entry.vnode, number).await,
            Err(error) => {
                tracing::error!(%error, fid = %key.fid, "data that could not be stored is lost: the cache does not take it");
            }
        }
    }
}

/// The bytes of a file in a change, and their time.
fn data_of(decided: &Decided) -> Option<(Bytes, Option<FileTime>)> {
    match decided {
        Decided::Change(Change::CreateFile(small)) => {
            Some((bytes_of(&small.data), small.create.status.mod_time))
        }
        Decided::Change(Change::Store(store)) => Some((bytes_of(&store.data), store.status.mod_time)),
        Decided::Store(store) => Some((store.data.clone(), store.status.mod_time)),
        Decided::Change(_) => None,
    }
}
