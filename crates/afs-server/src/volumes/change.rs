//! Making, removing and setting volumes.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{VolumeHeader, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, UnixSeconds, VolumeId, VolumeKind, VolumeName};
use afs_wire::rpc::Nothing;
use afs_wire::vol::{self, AttachFlags, TransactionId};
use afs_wire::xdr::ByteString;

use super::info::status;
use super::transactions::Transaction;
use super::{VolumeServer, errno};
use crate::guard::{administrators, anyone};
use crate::subject::ADMIN;
use crate::volume_states::VolumeState;

/// The quota of a new volume in KiB, until the tool that makes it sets another
/// (docs/protocol volserver.md "5. Call semantics").
const NEW_QUOTA: u32 = 5000;
/// What leaves a number or date as it is in SetInfo.
const UNCHANGED: i32 = vol::VolumeInfo::UNCHANGED;

type Server = Arc<VolumeServer>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    add_settings(add_lives(table))
}

fn add_lives(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table =
        administrators(
            table,
            |server: Server, call: vol::CreateVolume| async move { server.create(&call).await },
        );
    let table = administrators(table, |server: Server, call: vol::DeleteVolume| async move {
        server.delete(call.transaction).await
    });
    let table =
        administrators(
            table,
            |server: Server, call: vol::NukeVolume| async move { server.nuke(&call).await },
        );
    anyone(table, |_: Server, _: vol::SignalRestore| async move { Ok(()) })
}

fn add_settings(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = anyone(table, |server: Server, call: vol::GetStatus| async move {
        let header = server.look(call.transaction, "GetStatus")?;
        Ok(vol::GetStatusReply { status: status(&header) })
    });
    let table = anyone(table, |server: Server, call: vol::GetName| async move {
        let header = server.look(call.transaction, "GetName")?;
        let name = ByteString::new(header.name.as_str().as_bytes());
        Ok(vol::GetNameReply { name: name.map_err(|_| errno(Errno::E2BIG))? })
    });
    let table = administrators(table, |server: Server, call: vol::SetInfo| async move {
        let info = call.info;
        server.set(call.transaction, "SetStatus", move |header| set_info(header, &info)).await
    });
    let table = administrators(table, |server: Server, call: vol::SetDate| async move {
        let date = call.date;
        server.set(call.transaction, "SetDate", move |header| header.creation_date = date).await
    });
    let table =
        administrators(
            table,
            |server: Server, call: vol::SetIdsTypes| async move { server.set_ids(&call).await },
        );
    administrators(table, |server: Server, call: vol::SetForwarding| async move {
        server.transactions.enter(call.transaction, "SetForwarding", server.now())?;
        server.transactions.leave(call.transaction, server.now(), |t| t.moved = true);
        Ok(())
    })
}

impl VolumeServer {
    /// Makes a volume that nobody sees until its transaction publishes it.
    async fn create(&self, call: &vol::CreateVolume) -> Result<vol::CreateVolumeReply, AbortCode> {
        let name = new_name(&call.name)?;
        if call.volume.0 == 0 {
            return Err(errno(Errno::E2BIG));
        }
        match call.kind.check() {
            Some(VolumeKind::ReadWrite) => {}
            // Volumes of the other kinds are made by cloning and restoring.
            Some(_) => return Err(AbortCode::VOLSERNO_OP),
            None => return Err(errno(Errno::EINVAL)),
        }
        let partition = self.partition(call.partition)?;
        if self.partitions.volume(call.volume).is_some() {
            return Err(errno(Errno::EIO));
        }
        let now = self.now();
        let opened = self.transactions.open(call.volume, partition, AttachFlags::CREATE, "CreateVolume", now);
        let transaction = opened?;
        self.states.set(call.volume, Some(VolumeState::Hidden));
        match self.make(partition, call.volume, name).await {
            Ok(()) => {
                self.transactions.leave(transaction, now, |transaction| transaction.unborn = true);
                Ok(vol::CreateVolumeReply { volume: call.volume, transaction })
            }
            Err(code) => {
                self.transactions.close(transaction);
                self.states.set(call.volume, None);
                Err(code)
            }
        }
    }

    async fn make(&self, partition: PartitionId, id: VolumeId, name: VolumeName) -> Result<(), AbortCode> {
        let store = self.store(partition)?;
        let (kind, parent, root) = (VolumeKind::ReadWrite, id, Some(Acl::of_new_volume()));
        let made =
            store.create_volume(VolumeSpec { id, name, kind, parent, owner: ADMIN, max_quota: NEW_QUOTA, root }).await;
        made.map_err(|error| self.code(id, &error))?;
        self.edit(id, |header| header.online = false).await
    }

    async fn delete(&self, id: TransactionId) -> Result<Nothing, AbortCode> {
        let transaction = self.transactions.enter(id, "DeleteVolume", self.now())?;
        let deleted = self.store(transaction.partition)?.delete_volume(transaction.volume).await;
        let deleted = deleted.map_err(|error| self.code(transaction.volume, &error));
        self.transactions.leave(id, self.now(), |transaction| transaction.deleted = deleted.is_ok());
        deleted
    }

    async fn nuke(&self, call: &vol::NukeVolume) -> Result<Nothing, AbortCode> {
        let partition = self.partition(call.partition)?;
        if self.transactions.holds(call.volume, partition) {
            return Err(AbortCode::VOLSERVOLBUSY);
        }
        let store = self.store(partition)?;
        if store.volume(call.volume).is_none() {
            return Err(errno(Errno::ENODEV));
        }
        let gone = store.delete_volume(call.volume).await.map_err(|error| self.code(call.volume, &error));
        self.clients.break_volume(call.volume);
        gone
    }

    /// The header of a transaction's volume.
    fn look(&self, id: TransactionId, procedure: &'static str) -> Result<Arc<VolumeHeader>, AbortCode> {
        let Transaction { volume, partition, .. } = self.transactions.enter(id, procedure, self.now())?;
        self.transactions.leave(id, self.now(), |_| ());
        let volume = self.store(partition)?.volume(volume).ok_or(AbortCode::VNOVOL)?;
        Ok(volume.header())
    }

    /// Changes the header of a transaction's volume.
    async fn set(
        &self,
        id: TransactionId,
        procedure: &'static str,
        change: impl FnOnce(&mut VolumeHeader) + Send + 'static,
    ) -> Result<Nothing, AbortCode> {
        let transaction = self.transactions.enter(id, procedure, self.now())?;
        let set = self.edit(transaction.volume, change).await;
        self.transactions.leave(id, self.now(), |_| ());
        set
    }

    /// Another name and group. What a volume is cannot be changed afterwards.
    async fn set_ids(&self, call: &vol::SetIdsTypes) -> Result<Nothing, AbortCode> {
        let name = new_name(&call.name)?;
        let transaction = self.transactions.enter(call.transaction, "SetIdsTypes", self.now())?;
        let set = self.rename(&transaction, call, name).await;
        self.transactions.leave(call.transaction, self.now(), |_| ());
        set
    }

    async fn rename(
        &self,
        transaction: &Transaction,
        call: &vol::SetIdsTypes,
        name: VolumeName,
    ) -> Result<Nothing, AbortCode> {
        let store = self.store(transaction.partition)?;
        let header = store.volume(transaction.volume).ok_or(AbortCode::VNOVOL)?.header();
        if call.kind.check() != Some(header.kind) || call.parent != header.parent {
            return Err(AbortCode::VOLSERNO_OP);
        }
        if header.name != name {
            let renamed = store.rename_volume(transaction.volume, name).await;
            renamed.map_err(|error| self.code(transaction.volume, &error))?;
        }
        let (clone, backup) = (call.clone, call.backup);
        let group = move |header: &mut VolumeHeader| (header.read_only, header.backup) = (clone, backup);
        self.edit(transaction.volume, group).await
    }

    pub(super) async fn edit(
        &self,
        id: VolumeId,
        change: impl FnOnce(&mut VolumeHeader) + Send + 'static,
    ) -> Result<Nothing, AbortCode> {
        let volume = self.partitions.volume(id).ok_or(AbortCode::VNOVOL)?;
        let edited = volume.edit(move |tx| {
            change(tx.edit_header());
            Ok(())
        });
        edited.await.map_err(|error| self.code(id, &error))
    }

    fn store(&self, partition: PartitionId) -> Result<&VolumeStore, AbortCode> {
        self.partitions.store(partition).ok_or(AbortCode::VOLSERILLEGAL_PARTITION)
    }
}

/// A name that a volume's header can hold.
fn new_name(name: &[u8]) -> Result<VolumeName, AbortCode> {
    let bad = AbortCode::VOLSERBADNAME;
    if name.len() > VolumeName::HEADER_MAX {
        return Err(bad);
    }
    VolumeName::from_bytes(name).map_err(|_| bad)
}

/// Sets what is given: a number or date of -1 stays.
fn set_info(header: &mut VolumeHeader, info: &vol::VolumeInfo) {
    if info.quota_max != UNCHANGED {
        header.max_quota = u32::try_from(info.quota_max).unwrap_or(0);
    }
    let date = |date: UnixSeconds| Some(date).filter(|date| date.0 != UNCHANGED as u32);
    header.creation_date = date(info.creation_date).unwrap_or(header.creation_date);
    header.update_date = date(info.update_date).unwrap_or(header.update_date);
}
