//! Volume service calls that open, end and list transactions, and the states they give to volumes.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::rpc::Nothing;
use afs_wire::vol::{self, AttachFlags, TransactionInfo, VolumeFlags};
use afs_wire::xdr::{BoundedVec, Chars};

use super::transactions::Transaction;
use super::{VolumeServer, errno};
use crate::guard::{administrators, anyone};
use crate::volume_states::{Site, VolumeState, is_published};

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    type Server = Arc<VolumeServer>;
    let table =
        administrators(
            table,
            |server: Server, call: vol::TransCreate| async move { server.open(&call).await },
        );
    let table = administrators(table, |server: Server, call: vol::EndTrans| async move {
        let ended = server.transactions.close(call.transaction).ok_or(errno(Errno::ENOENT))?;
        if let Some(ended) = ended {
            server.give_back(&ended);
            server.purge_what_it_made(&ended).await;
        }
        Ok(vol::EndTransReply { return_code: 0 })
    });
    let table =
        administrators(
            table,
            |server: Server, call: vol::SetFlags| async move { server.set_flags(&call).await },
        );
    let table = anyone(table, |server: Server, call: vol::GetFlags| async move {
        let flags = server.enter(call.transaction, "GetFlags")?.transaction().flags;
        Ok(vol::GetFlagsReply { flags })
    });
    anyone(table, |server: Server, _: vol::Monitor| async move {
        let transactions = server.transactions.all();
        Ok(vol::MonitorReply { transactions: BoundedVec::first_of(transactions.iter().map(info)) })
    })
}

impl VolumeServer {
    /// When this returns, every change acknowledged to a client is in the volume, and no further change that
    /// the attach mode excludes is admitted.
    async fn open(self: &Arc<Self>, call: &vol::TransCreate) -> Result<vol::TransCreateReply, AbortCode> {
        let site = Site { volume: call.volume, partition: self.partition(call.partition)? };
        let volume = self.store(site.partition)?.volume(site.volume).ok_or(AbortCode::VNOVOL)?;
        let state = attached_state(call.flags, volume.header().is_writable())?;
        let transaction = self.transactions.open(site, call.flags, "TransCreate", self.moment())?;
        // What clients decided by themselves is in the volume before anybody dumps, clones or takes it.
        let unlent = self.states.recall_leases(site.volume).await;
        self.transactions.note(transaction, |transaction| transaction.unlent = unlent);
        self.states.hold(site, state);
        if state.is_some() && volume.header().is_writable() {
            // Changes check the state inside their transaction of the store. An earlier one is durable when
            // this one is.
            let settled = volume.edit(|_| Ok(())).await;
            if let Err(error) = settled {
                self.states.hold(site, None);
                self.transactions.forget(transaction);
                return Err(self.code(call.volume, &error));
            }
        }
        if matches!(state, Some(VolumeState::Offline | VolumeState::Hidden)) {
            self.announce_change(call.volume);
        }
        Ok(vol::TransCreateReply { transaction })
    }

    /// Returns a volume to its clients, as far as it is in service; a deleted one stays gone.
    pub(super) fn give_back(&self, transaction: &Transaction) {
        let site = transaction.site();
        let volume = self.partitions.store(site.partition).and_then(|store| store.volume(site.volume));
        let serves =
            volume.map(|volume| volume.header()).filter(|header| header.online && is_published(header));
        if serves.is_some() {
            self.states.set(site.volume, None);
        }
        self.states.hold(site, None);
        // A volume that comes back may differ from the one that clients know.
        if transaction.deleted || (serves.is_some() && transaction.attach.contains(AttachFlags::CREATE)) {
            self.announce_change(site.volume);
        }
    }

    async fn set_flags(self: &Arc<Self>, call: &vol::SetFlags) -> Result<Nothing, AbortCode> {
        let work = self.enter(call.transaction, "SetFlags")?;
        work.volume_to_change()?;
        let (online, destroy) = (
            !call.flags.contains(VolumeFlags::OUT_OF_SERVICE),
            call.flags.contains(VolumeFlags::DELETE_ON_SALVAGE),
        );
        let set = self.edit(work.transaction().site(), move |tx| {
            let header = tx.edit_header();
            (header.online, header.destroy) = (online, destroy);
        });
        set.await?;
        work.note(|transaction| transaction.flags = call.flags);
        Ok(())
    }

    /// Ends abandoned transactions. A volume that was never published is removed with its transaction.
    pub(super) async fn end_idle(&self) {
        for transaction in self.transactions.take_idle(self.moment()) {
            tracing::warn!(volume = %transaction.volume, "a transaction was left alone and is ended");
            self.purge_if_unfinished(transaction.site()).await;
            self.transactions.forget(transaction.id);
            self.give_back(&transaction);
        }
    }
}

/// What clients see while a transaction holds a volume, by the first flag that is set (docs/protocol
/// volserver.md "4. Transactions").
fn attached_state(flags: AttachFlags, writable: bool) -> Result<Option<VolumeState>, AbortCode> {
    if flags.contains(AttachFlags::CREATE) {
        Ok(Some(VolumeState::Hidden))
    } else if flags.contains(AttachFlags::BUSY) {
        Ok(writable.then_some(VolumeState::Busy))
    } else if flags.contains(AttachFlags::READ_ONLY) {
        Ok(None)
    } else if flags.contains(AttachFlags::OFFLINE) {
        Ok(Some(VolumeState::Offline))
    } else {
        Err(errno(Errno::EINVAL))
    }
}

fn info(transaction: &Transaction) -> TransactionInfo {
    TransactionInfo {
        id: transaction.id,
        active: transaction.active,
        created: transaction.created,
        volume: transaction.volume,
        partition: transaction.partition.into(),
        attach_flags: transaction.attach.0 as i16,
        volume_flags: transaction.flags.0 as i8,
        transaction_flags: i8::from(transaction.ended),
        last_procedure: Chars::truncated(transaction.procedure.as_bytes()),
        ..TransactionInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_flag_counts() {
        let both = AttachFlags(AttachFlags::BUSY.0 | AttachFlags::OFFLINE.0);
        assert_eq!(attached_state(both, true), Ok(Some(VolumeState::Busy)));
        assert_eq!(attached_state(AttachFlags::BUSY, false), Ok(None));
        assert_eq!(attached_state(AttachFlags::OFFLINE, false), Ok(Some(VolumeState::Offline)));
        assert_eq!(attached_state(AttachFlags(0x1000), true), Err(AbortCode(22)));
    }
}
