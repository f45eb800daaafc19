//! Calls that list volumes.

use super::{SERVICE, VolumeInfo, VolumeXInfo};
use crate::ids::{PartitionNumber, VolumeId};
use crate::xdr::BoundedVec;

/// Most volumes of one reply that a client accepts. The protocol has no bound.
pub const VOLUMES_MAX: usize = 1 << 20;

/// Volumes of one reply.
pub type VolumeInfos = BoundedVec<VolumeInfo, VOLUMES_MAX>;
/// Volumes of one reply, with statistics.
pub type VolumeXInfos = BoundedVec<VolumeXInfo, VOLUMES_MAX>;

calls! {
    service SERVICE;

    /// Reads a volume by index; servers always refuse it.
    110 "GetNthVolume" GetNthVolume { index: i32 }
        -> GetNthVolumeReply { volume: VolumeId, partition: PartitionNumber };

    /// Lists the volumes of a partition.
    116 "ListVolumes" ListVolumes {
        partition: PartitionNumber,
        /// 0: numbers only.
        flags: i32,
    } -> ListVolumesReply { volumes: VolumeInfos };

    /// Lists one volume: exactly one element, or the error ENODEV.
    121 "ListOneVolume" ListOneVolume { partition: PartitionNumber, volume: VolumeId } -> ListVolumesReply;

    /// Lists the volumes of a partition with statistics.
    124 "XListVolumes" XListVolumes {
        partition: PartitionNumber,
        /// 0: numbers only.
        flags: i32,
    } -> XListVolumesReply { volumes: VolumeXInfos };

    /// Lists one volume with statistics: exactly one element, or the error ENODEV.
    125 "XListOneVolume" XListOneVolume { partition: PartitionNumber, volume: VolumeId } -> XListVolumesReply;
}
