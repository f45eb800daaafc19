//! One running call on a volume transaction.

use std::sync::Arc;

use afs_volume::{Volume, VolumeStore};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::VolumeId;
use afs_wire::vol::{AttachFlags, TransactionId};

use super::transactions::Transaction;
use super::{VolumeServer, errno};
use crate::volume_states::{Site, VolumeState};

/// A call on a transaction, which stays open until this is dropped.
pub(super) struct Work {
    server: Arc<VolumeServer>,
    transaction: Transaction,
}

impl VolumeServer {
    /// Begins a call on a transaction.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: TransactionId,
        procedure: &'static str,
    ) -> Result<Work, AbortCode> {
        let transaction = self.transactions.enter(id, procedure, self.moment())?;
        Ok(Work { server: self.clone(), transaction })
    }

    /// A transaction for the duration of this call, on a volume that it creates, invisible meanwhile.
    pub(super) fn enter_hidden(
        self: &Arc<Self>,
        site: Site,
        procedure: &'static str,
    ) -> Result<ScopedTransaction, AbortCode> {
        let within = self.enter_serving(site, procedure)?;
        self.states.hold(site, Some(VolumeState::Hidden));
        Ok(within)
    }

    /// A transaction for the duration of this call, on a volume that stays in service.
    pub(super) fn enter_serving(
        self: &Arc<Self>,
        site: Site,
        procedure: &'static str,
    ) -> Result<ScopedTransaction, AbortCode> {
        let id = self.transactions.open(site, AttachFlags::CREATE, procedure, self.moment())?;
        Ok(ScopedTransaction { server: self.clone(), id, kept: false })
    }
}

impl Work {
    pub(super) fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    pub(super) fn id(&self) -> VolumeId {
        self.transaction.volume
    }

    pub(super) fn store(&self) -> Result<&VolumeStore, AbortCode> {
        self.server.store(self.transaction.partition)
    }

    /// The transaction's volume.
    pub(super) fn volume(&self) -> Result<Arc<Volume>, AbortCode> {
        self.store()?.volume(self.id()).ok_or(AbortCode::VNOVOL)
    }

    /// As [`Work::volume`], for calls that change it: read-only transactions are refused.
    pub(super) fn volume_to_change(&self) -> Result<Arc<Volume>, AbortCode> {
        if self.transaction.attach.contains(AttachFlags::READ_ONLY) {
            return Err(errno(Errno::EROFS));
        }
        self.volume()
    }

    /// Updates the transaction with what the call did to it.
    pub(super) fn note(&self, note: impl FnOnce(&mut Transaction)) {
        self.server.transactions.note(self.transaction.id, note);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(ended) = self.server.transactions.leave(self.transaction.id, self.server.moment()) {
            self.server.give_back(&ended);
            let server = self.server.clone();
            self.server.env.spawn(Box::pin(async move { server.purge_what_it_made(&ended).await }));
        }
    }
}

/// A transaction for the duration of one call. Ends with it, unless it is kept for the caller.
pub(super) struct ScopedTransaction {
    server: Arc<VolumeServer>,
    id: TransactionId,
    kept: bool,
}

impl ScopedTransaction {
    /// Leaves the transaction open for the caller.
    pub(super) fn keep(mut self) -> TransactionId {
        self.kept = true;
        self.id
    }
}

impl Drop for ScopedTransaction {
    fn drop(&mut self) {
        if !self.kept
            && let Some(Some(ended)) = self.server.transactions.close(self.id)
        {
            self.server.give_back(&ended);
        }
    }
}
