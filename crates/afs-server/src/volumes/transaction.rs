//! Opening, ending and listing transactions, and the state they give to their volumes.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::VolumeId;
use afs_wire::rpc::Nothing;
use afs_wire::vol::{self, AttachFlags, TransactionInfo, VolumeFlags};
use afs_wire::xdr::{BoundedVec, Chars};

use super::transactions::Transaction;
use super::{VolumeServer, errno};
use crate::guard::{administrators, anyone};
use crate::volume_states::VolumeState;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    type Server = Arc<VolumeServer>;
    let table =
        administrators(table, |server: Server, call: vol::TransCreate| async move { server.open(&call) });
    let table = administrators(table, |server: Server, call: vol::EndTrans| async move {
        let ended = server.transactions.close(call.transaction).ok_or(errno(Errno::ENOENT))?;
        server.give_back(&ended);
        Ok(vol::EndTransReply { return_code: 0 })
    });
    let table =
        administrators(
            table,
            |server: Server, call: vol::SetFlags| async move { server.set_flags(&call).await },
        );
    let table = anyone(table, |server: Server, call: vol::GetFlags| async move {
        let transaction = server.transactions.enter(call.transaction, "GetFlags", server.now())?;
        server.transactions.leave(call.transaction, server.now(), |_| ());
        Ok(vol::GetFlagsReply { flags: transaction.flags })
    });
    anyone(table, |server: Server, _: vol::Monitor| async move {
        let transactions = server.transactions.all();
        Ok(vol::MonitorReply { transactions: BoundedVec::first_of(transactions.iter().map(info)) })
    })
}

impl VolumeServer {
    fn open(&self, call: &vol::TransCreate) -> Result<vol::TransCreateReply, AbortCode> {
        let partition = self.partition(call.partition)?;
        let volume = self.partitions.store(partition).and_then(|store| store.volume(call.volume));
        let volume = volume.ok_or(AbortCode::VNOVOL)?;
        let state = attached_state(call.flags, volume.header().is_writable())?;
        let opened = self.transactions.open(call.volume, partition, call.flags, "TransCreate", self.now());
        let transaction = opened?;
        if let Some(state) = state {
            self.states.set(call.volume, Some(state));
        }
        if state == Some(VolumeState::Offline) {
            self.clients.break_volume(call.volume);
        }
        Ok(vol::TransCreateReply { transaction })
    }

    /// The volume serves clients again, as far as it is in service; one that is gone is gone.
    pub(super) fn give_back(&self, transaction: &Transaction) {
        let state = transaction.moved.then_some(VolumeState::Moved);
        self.states.set(transaction.volume, state);
        if transaction.deleted || transaction.moved {
            self.clients.break_volume(transaction.volume);
        }
    }

    async fn set_flags(&self, call: &vol::SetFlags) -> Result<Nothing, AbortCode> {
        let transaction = self.transactions.enter(call.transaction, "SetFlags", self.now())?;
        let online = !call.flags.contains(VolumeFlags::OUT_OF_SERVICE);
        let set = if transaction.attach.contains(AttachFlags::READ_ONLY) {
            Err(errno(Errno::EROFS))
        } else {
            self.edit(transaction.volume, move |header| header.online = online).await
        };
        self.transactions.leave(call.transaction, self.now(), |transaction| {
            if set.is_ok() {
                transaction.flags = call.flags;
                transaction.unborn &= call.flags.contains(VolumeFlags::DELETE_ON_SALVAGE);
            }
        });
        set
    }

    /// Ends what nobody works on any more. A volume that was never published goes with its transaction.
    pub(super) async fn end_idle(&self) {
        for transaction in self.transactions.close_idle(self.now()) {
            tracing::warn!(volume = %transaction.volume, "a transaction was left alone and is ended");
            if transaction.unborn && !transaction.deleted {
                self.purge(transaction.volume).await;
            }
            self.give_back(&transaction);
        }
    }

    async fn purge(&self, volume: VolumeId) {
        let partition = self.partitions.partition_of(volume);
        if let Some(store) = partition.and_then(|partition| self.partitions.store(partition))
            && let Err(error) = store.delete_volume(volume).await
        {
            tracing::error!(%volume, %error, "a volume that was never published cannot be removed");
        }
    }
}

/// What clients see while a transaction holds a volume, by the first flag that is set
/// (docs/protocol volserver.md "4. Transactions").
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
