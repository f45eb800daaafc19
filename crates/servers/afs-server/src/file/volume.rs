//! GetVolumeStatus and SetVolumeStatus.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::VolumeError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, Name, PathText, VolumeStatus};
use afs_wire::ids::{Fid, VolumeId, VolumeName};
use afs_wire::rpc::Nothing;

use super::object::Found;
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::volume_states::Served;
use crate::volumes::snapshots_of;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table =
        super::call(table, |server: Arc<FileServer>, context, call: fs::GetVolumeStatus| async move {
            server.volume_status(&context, call.volume).await
        });
    let table =
        super::call(table, |server: Arc<FileServer>, context, call: fs::StoreVolumeStatus| async move {
            server.set_volume_status(&context, call).await
        });
    super::call(table, |server: Arc<FileServer>, context, call: fs::ListSnapshots| async move {
        server.snapshots(&context, call.volume).await
    })
}

impl FileServer {
    async fn volume_status(
        &self,
        context: &CallContext,
        id: VolumeId,
    ) -> Result<fs::GetVolumeStatusReply, AbortCode> {
        let found = self.root(context, id).await?;
        let header = &found.header;
        let (free, total) = self.room(id);
        let status = VolumeStatus {
            id,
            parent: header.parent,
            online: true,
            in_service: true,
            blessed: true,
            needs_salvage: false,
            writable: header.is_writable(),
            quota_min: header.min_quota,
            quota_max: header.max_quota,
            blocks_used: clamp(header.blocks_used),
            partition_blocks_free: clamp(free),
            partition_blocks: clamp(total),
        };
        Ok(fs::GetVolumeStatusReply {
            status,
            name: Name::new(header.name.as_str().as_bytes()).unwrap_or_default(),
            offline_message: PathText::new(header.offline_message.as_bytes()).unwrap_or_default(),
            motd: PathText::default(),
        })
    }

    /// For callers with the lookup right on the volume's root.
    async fn snapshots(
        &self,
        context: &CallContext,
        id: VolumeId,
    ) -> Result<fs::ListSnapshotsReply, AbortCode> {
        let found = self.root(context, id).await?;
        found.check(&context.subject, Operation::FetchData)?;
        let store = self.partitions.store(found.served.site.partition).ok_or(AbortCode::VNOVOL)?;
        Ok(fs::ListSnapshotsReply { snapshots: snapshots_of(store, id) })
    }

    async fn set_volume_status(
        &self,
        context: &CallContext,
        call: fs::StoreVolumeStatus,
    ) -> Result<Nothing, AbortCode> {
        let found = self.root(context, call.volume).await?;
        if !context.subject.is_administrator() {
            return Err(Errno::EACCES.to_uae());
        }
        let invalid = || Errno::EINVAL.to_uae();
        let message = String::from_utf8(call.offline_message.to_vec()).map_err(|_| invalid())?;
        if !call.name.is_empty() {
            let name = VolumeName::from_bytes(&call.name).map_err(|_| invalid())?;
            self.rename_volume(&found.served, name).await?;
        }
        let (id, set) = (call.volume, call.status);
        let (states, site) = (self.states.clone(), found.served.site);
        let edit = found.served.volume.edit(move |tx| {
            states.check(site, true).map_err(VolumeError::Refused)?;
            let header = tx.edit_header();
            header.min_quota = set.quota_min.unwrap_or(header.min_quota);
            header.max_quota = set.quota_max.unwrap_or(header.max_quota);
            if !message.is_empty() {
                header.offline_message = message;
            }
            Ok(())
        });
        edit.await.map_err(|error| self.code(Fid::root(id), &error))
    }

    /// Sets the name in the header; the location database is the caller's responsibility.
    async fn rename_volume(&self, served: &Served, name: VolumeName) -> Result<(), AbortCode> {
        let store = self.partitions.store(served.site.partition).ok_or(AbortCode::VNOVOL)?;
        let renamed = store.rename_volume(served.site.volume, name).await;
        renamed.map_err(|error: VolumeError| self.code(Fid::root(served.site.volume), &error))
    }

    /// Volume 0 is invalid; otherwise the root directory stands for the volume.
    async fn root(&self, context: &CallContext, id: VolumeId) -> Result<Found, AbortCode> {
        // Nothing of what is asked for is lent with the root directory.
        let (served, header) = self.volume(context, Fid::root(id), false)?;
        self.found(served, header, Fid::root(id)).await
    }

    /// Free and total KiB of the partition of a volume.
    fn room(&self, id: VolumeId) -> (u64, u64) {
        let partition = self.partitions.partition_of(id);
        let store = partition.and_then(|partition| self.partitions.store(partition));
        match store.map(|store| store.usage()) {
            Some(Ok(usage)) => (usage.free / 1024, usage.total / 1024),
            _ => (0, 0),
        }
    }
}

/// Block counts in this call are signed 32-bit numbers.
fn clamp(blocks: u64) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX).min(i32::MAX as u32)
}
