//! Volume service call that lists the named snapshots of a volume.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::VolumeStore;
use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;
use afs_wire::vol::{self, Snapshot, Snapshots};
use afs_wire::xdr::ByteString;

use super::VolumeServer;
use crate::guard::anyone;
use crate::volume_states::is_published;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    anyone(table, |server: Arc<VolumeServer>, call: vol::ListSnapshots| async move {
        let partition = server.partitions.partition_of(call.volume).ok_or(AbortCode::VNOVOL)?;
        let snapshots = snapshots_of(server.store(partition)?, call.volume);
        Ok(vol::ListSnapshotsReply { snapshots })
    })
}

/// The published snapshots of a volume, newest first.
pub(crate) fn snapshots_of(store: &VolumeStore, volume: VolumeId) -> Snapshots {
    let headers = store.snapshots(volume).into_iter().map(|snapshot| snapshot.header());
    let seen = headers.filter(|header| is_published(header) && header.online);
    Snapshots::first_of(seen.filter_map(|header| {
        let name = header.name.as_str().rsplit('.').next().unwrap_or_default();
        let name = ByteString::new(name.as_bytes()).ok()?;
        Some(Snapshot { name, volume: header.id, created: header.creation_date })
    }))
}
