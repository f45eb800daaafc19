//! Stores of whole files that were decided under a lease: each by a call of its own, from memory, between two lists.
//!
//! A store names the version that the file has before, so that it can be sent any number of times.

use std::sync::Arc;

use afs_wire::fs::{self, Status, StatusReply};
use afs_wire::ids::DataVersion;
use afs_wire::rpc::Request;
use bytes::Bytes;

use super::loss::Unstored;
use super::may_be_sent_again;
use crate::cache::CacheIo;
use crate::calls::{CallOutcome, CallReply};
use crate::data::{FileData, Piece};
use crate::error::{ErrorKind, Result};
use crate::identity::User;
use crate::leases::{Decided, Entry, Lease, WholeStore};
use crate::promises::ChangeReply;
use crate::transfer::{Rpc, Source, Stopped, StoreRequest, Transfer};
use crate::venus::Venus;
use crate::venus::listed::name_of;
use crate::vnode::Vnode;

impl Venus {
    /// Sends the store that waits in front. What the server refuses ends the lease: what was decided after it may depend on it.
    ///
    /// # Errors
    /// The server cannot be reached: it is sent later.
    pub(super) async fn send_whole(
        &self,
        lease: &Arc<Lease>,
        entry: &Entry,
        unstored: &mut Vec<Unstored>,
    ) -> Result<()> {
        let Decided::Store(store) = &entry.decided else { return Ok(()) };
        let me = self.as_user(entry.user);
        match me.send_store(lease, store, Some(store.expected)).await.result {
            Ok(answered) => {
                me.store_answered(lease, entry, &answered);
                me.evict_settled(std::slice::from_ref(entry)).await;
                if !lease.is_promised(self.now()) {
                    // Said by the server before it took this. No list is on its way: it would be refused.
                    self.lost(lease, None);
                }
                return Ok(());
            }
            Err(error) if may_be_sent_again(&error) => return Err(error),
            Err(error) => {
                let made = error.kind == ErrorKind::WouldBlock && me.store_was_made(lease, store).await?;
                tracing::warn!(%error, made, fid = %store.fid, "a store that was decided under a lease was not taken");
                if !made {
                    me.is_unstored(lease, entry, store, unstored);
                    self.lost(lease, None);
                }
            }
        }
        me.forget_decided(lease, entry);
        lease.journal(|journal| journal.first_is_over());
        Ok(())
    }

    /// Sends the bytes. They go by a call, since the server counts those towards what it has reserved for the lease.
    pub(super) async fn send_store(
        &self,
        lease: &Lease,
        store: &WholeStore,
        expected: Option<DataVersion>,
    ) -> CallOutcome<StatusReply> {
        let pieces = &[store.piece()];
        let change =
            &StoreRequest { fid: store.fid, directory: None, status: store.status, pieces, expected };
        let attempt = |target| async move {
            let mut source = BytesSource(&store.data);
            Rpc.store(&target, change, &mut source).await
        };
        self.calls.on_sites(&self.context, &lease.volume, change.operation(), attempt).await
    }

    fn store_answered(&self, lease: &Lease, entry: &Entry, answered: &CallReply<StatusReply>) {
        let vnode = &entry.vnode;
        let mut is_other = false;
        lease.first_is_over(vnode.key, || {
            let before = vnode.state().status;
            self.record_settled_file(lease, vnode, &answered.value.status);
            is_other = vnode.state().status != before;
        });
        if is_other {
            self.kernel.invalidate_attributes(vnode.key);
        }
    }

    /// Records the status of a file of which the server has all that was decided.
    pub(super) fn record_settled_file(&self, lease: &Lease, vnode: &Vnode, status: &Status) {
        let change = ChangeReply { status, sync: &lease.sync, serial: u64::MAX };
        self.promises.record_change(&lease.volume, vnode, &change);
    }

    /// Whether a store whose reply was lost was made, as far as the status of the file tells. What is cached of it is given up in any
    /// case, since others may have made a version like it after the loss of the lease.
    async fn store_was_made(&self, lease: &Lease, store: &WholeStore) -> Result<bool> {
        let request = fs::FetchStatus { fid: store.fid };
        match self.calls.call(&self.context, &lease.volume, request).await.result {
            Ok(answered) => {
                let now = answered.value.status;
                Ok(now.data_version == store.expected.next()
                    && now.length == store.data.len() as u64
                    && Some(now.client_mod_time) == store.status.mod_time)
            }
            Err(error) if may_be_sent_again(&error) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Evicts the data of closed files of which the server has all that was decided.
    pub(super) async fn evict_settled(&self, entries: &[Entry]) {
        for entry in entries.iter().filter(|entry| !entry.vnode.key.fid.is_directory()) {
            let data = entry.vnode.state().file.data().cloned();
            if let Some(data) = data.filter(|data| data.content().uses.count() == 0) {
                self.retire(&entry.vnode, &data, entry.user).await;
            }
        }
    }

    /// Evicts unreferenced data. What the server does not have yet is no version of its own: it is kept when it was sent.
    pub(in crate::venus) async fn retire(&self, vnode: &Vnode, data: &Arc<FileData>, user: User) {
        match self.leases.concern(vnode.key) {
            true => self.files.hold(vnode, data, user),
            false => self.files.retire(vnode, data, user).await,
        }
    }
}

/// Name of the call that it would be by itself.
pub(super) fn name_of_decided(decided: &Decided) -> &'static str {
    match decided {
        Decided::Change(change) => name_of(change),
        Decided::Store(_) => fs::StoreData64::NAME,
    }
}

/// Bytes in memory.
struct BytesSource<'a>(&'a Bytes);

impl Source for BytesSource<'_> {
    fn read(&mut self, _: &Piece, at: u64, len: usize) -> CacheIo<Bytes> {
        let from = (at as usize).min(self.0.len());
        let to = from.saturating_add(len).min(self.0.len());
        CacheIo::done(Ok(self.0.slice(from..to)))
    }

    fn check(
        &mut self,
        _: &Piece,
        _: u64,
        len: usize,
        read: Result<Bytes>,
    ) -> std::result::Result<Bytes, Stopped> {
        read.ok().filter(|bytes| bytes.len() == len).ok_or(Stopped)
    }
}
