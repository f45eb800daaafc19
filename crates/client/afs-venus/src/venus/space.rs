//! Space in volumes.

use afs_rpc::boxed;
use afs_wire::fs;

use crate::api::{NodeId, Space};
use crate::error::Result;
use crate::key::NodeTarget;
use crate::names::NAME_MAX;
use crate::venus::Venus;

/// Size shown for a volume without quota on a partition of unknown size: a number with which no program overflows.
const BLOCKS_UNKNOWN: u64 = 1 << 40;

impl Venus {
    /// statfs(2): the space that the quota of the node's volume leaves, but at most that of the partition.
    #[boxed]
    pub async fn statfs(&self, node: NodeId) -> Result<Space> {
        let space = |blocks, blocks_free| Space {
            block_bytes: 1024,
            blocks,
            blocks_free,
            name_bytes_max: NAME_MAX as u32,
        };
        let volume = match self.node_target(node)? {
            NodeTarget::Object(key) => self.volume_of(key).await?,
            NodeTarget::Snapshots(cell, volume) => self.volume(cell, volume).await?,
            NodeTarget::Cells => return Ok(space(0, 0)),
            NodeTarget::Unreached(cell, tree) => return Err(self.not_entered(cell, tree).await),
        };
        let reply = self.call(&volume, fs::GetVolumeStatus { volume: volume.id }).await?.value;
        let status = reply.status;
        let partition_free = u64::from(status.partition_blocks_free);
        if !status.writable {
            // A read-only volume never grows.
            return Ok(space(u64::from(status.blocks_used), 0));
        }
        if status.quota_max == 0 {
            let blocks = u64::from(status.partition_blocks).max(u64::from(status.blocks_used));
            let free = if blocks == 0 { BLOCKS_UNKNOWN } else { partition_free };
            return Ok(space(blocks.max(free), free));
        }
        let quota = u64::from(status.quota_max);
        let free = quota.saturating_sub(u64::from(status.blocks_used)).min(partition_free);
        Ok(space(quota, free))
    }
}
