//! Volume service calls about partitions.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::ids::PartitionId;
use afs_wire::vol::{self, DiskPartition, DiskPartition64, PartitionSlots};
use afs_wire::xdr::{BoundedVec, Chars};

use super::VolumeServer;
use super::info::clamp;
use crate::guard::anyone;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    type Server = Arc<VolumeServer>;
    let table = anyone(table, |server: Server, _: vol::ListPartitions| async move {
        let partitions = PartitionSlots::of(server.partitions.ids());
        Ok(vol::ListPartitionsReply { partitions })
    });
    let table = anyone(table, |server: Server, _: vol::XListPartitions| async move {
        let numbers = server.partitions.ids().map(Into::into);
        Ok(vol::XListPartitionsReply { partitions: BoundedVec::first_of(numbers) })
    });
    let table = anyone(table, |server: Server, call: vol::PartitionInfo| async move {
        let (name, free, total) = server.room(&call.name)?;
        let partition = DiskPartition {
            name: Chars::truncated(name.as_bytes()),
            device: Chars::truncated(name.as_bytes()),
            free: clamp(free),
            total: clamp(total),
            ..DiskPartition::default()
        };
        Ok(vol::PartitionInfoReply { partition })
    });
    anyone(table, |server: Server, call: vol::PartitionInfo64| async move {
        let (name, free, total) = server.room(&call.name)?;
        let partition = DiskPartition64 {
            name: Chars::truncated(name.as_bytes()),
            device: Chars::truncated(name.as_bytes()),
            free: free as i64,
            total: total as i64,
            ..DiskPartition64::default()
        };
        Ok(vol::PartitionInfo64Reply { partition })
    })
}

impl VolumeServer {
    /// Name, free KiB and total KiB of a partition that is well.
    fn room(&self, name: &[u8]) -> Result<(String, u64, u64), AbortCode> {
        let illegal = AbortCode::VOLSERILLEGAL_PARTITION;
        let text = std::str::from_utf8(name).map_err(|_| illegal)?;
        let partition: PartitionId = text.parse().map_err(|_| illegal)?;
        if let Some(code) = self.partitions.state(partition).code() {
            return Err(code);
        }
        let store = self.store(partition)?;
        let usage = store.usage().map_err(|error| self.code(afs_wire::ids::VolumeId(0), &error))?;
        Ok((partition.to_string(), usage.free / 1024, usage.total / 1024))
    }
}
