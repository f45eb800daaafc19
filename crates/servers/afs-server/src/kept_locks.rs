//! Persistent rows of advisory locks: read at the start, deleted by a sweep when no longer needed.

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_volume::KeptLock;
use afs_wire::ids::Fid;
use bytes::Bytes;

use crate::file::server::FileServer;
use crate::locks::{Holder, LockMode, Locks};
use crate::partitions::Partitions;

/// Time between sweeps: the row of a released lock stays for this long, up to twice this.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
const READ: u8 = 0;
const WRITE: u8 = 1;

/// The row of a lock in the volume store.
pub(crate) fn kept_lock(fid: Fid, holder: Holder, mode: LockMode) -> KeptLock {
    let kind = match mode {
        LockMode::Read => READ,
        LockMode::Write => WRITE,
    };
    KeptLock { fid, holder: holder.to_bytes().into(), kind }
}

/// Restores the locks that the previous process had granted, for one lifetime from `now`.
pub(crate) fn restore(locks: &Locks, partitions: &Partitions, now: u64) {
    for (partition, store) in partitions.iter() {
        match store.kept_locks() {
            Ok(kept) => kept.iter().for_each(|lock| restore_one(locks, lock, now)),
            Err(error) => tracing::error!(%partition, %error, "the locks of before cannot be read"),
        }
    }
}

fn restore_one(locks: &Locks, kept: &KeptLock, now: u64) {
    let mode = match kept.kind {
        READ => LockMode::Read,
        WRITE => LockMode::Write,
        _ => return,
    };
    if let Some(holder) = Holder::from_bytes(&kept.holder) {
        locks.restore(kept.fid, holder, mode, now);
    }
}

impl FileServer {
    /// Sweeps every few seconds for as long as the server lives.
    pub(crate) fn start_sweeping_locks(self: &Arc<Self>) {
        let (env, server) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            loop {
                env.sleep(SWEEP_INTERVAL).await;
                let Some(server) = Weak::upgrade(&server) else { return };
                server.sweep_locks().await;
            }
        }));
    }

    /// Deletes the rows of released locks before an orderly stop, so that the next process takes no unlocked
    /// object for locked. For a server whose services receive no calls any more.
    pub async fn settle(&self) {
        self.forget_locks(self.locks.sweep_all()).await;
    }

    async fn sweep_locks(&self) {
        self.forget_locks(self.locks.sweep(self.clients.now())).await;
    }

    async fn forget_locks(&self, rows: Vec<(Fid, Holder)>) {
        if rows.is_empty() {
            return;
        }
        // A volume may have moved to another partition of this server since.
        for (partition, store) in self.partitions.iter() {
            let gone: Vec<(Fid, Bytes)> =
                rows.iter().map(|(fid, holder)| (*fid, holder.to_bytes().into())).collect();
            if let Err(error) = store.forget_locks(gone).await {
                tracing::warn!(%partition, %error, "locks that nobody holds could not be deleted");
            }
        }
        self.locks.deleted(&rows);
    }
}
