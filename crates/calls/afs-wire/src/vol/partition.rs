//! Calls on partitions.

use super::SERVICE;
use crate::ids::{PartitionId, PartitionNumber};
use crate::xdr::{BoundedVec, ByteString, Chars};

/// Name of a partition as an argument, such as `/vicepa`.
pub type PartitionText = ByteString<4096>;

xdr_struct! {
    /// Size of a partition: `diskPartition`. Sizes are in KiB and saturate at 2^31 - 1.
    #[derive(Copy, Default)]
    pub struct DiskPartition {
        /// Its name.
        pub name: Chars<32>,
        /// Its device.
        pub device: Chars<32>,
        /// Not used.
        pub lock: i32,
        /// Left 0 by OpenAFS.
        pub total_usable: i32,
        /// Free space.
        pub free: i32,
        /// The partition's size, in spite of the name.
        pub total: i32,
    }
}

xdr_struct! {
    /// Size of a partition: `diskPartition64`. Sizes are in KiB.
    #[derive(Copy, Default)]
    pub struct DiskPartition64 {
        /// Its name.
        pub name: Chars<256>,
        /// Its device.
        pub device: Chars<256>,
        /// Not used.
        pub lock: i32,
        /// Left 0 by OpenAFS.
        pub total_usable: i64,
        /// Free space.
        pub free: i64,
        /// The partition's size, in spite of the name.
        pub total: i64,
    }
}

/// The reply to [`ListPartitions`]: slot n holds n when the n-th partition exists, else -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSlots(pub [i32; 26]);

impl PartitionSlots {
    /// The slots for these partitions; those after `/vicepz` have none.
    pub fn of(partitions: impl IntoIterator<Item = PartitionId>) -> Self {
        let mut slots = [-1; 26];
        for partition in partitions {
            if let Some(slot) = slots.get_mut(usize::from(partition.0)) {
                *slot = partition.0.into();
            }
        }
        Self(slots)
    }
}

impl crate::xdr::Encode for PartitionSlots {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl crate::xdr::Decode for PartitionSlots {
    fn decode(r: &mut crate::xdr::Reader<'_>) -> Result<Self, crate::xdr::DecodeError> {
        crate::xdr::Decode::decode(r).map(Self)
    }
}

calls! {
    service SERVICE;

    /// Lists the first 26 partitions.
    115 "ListPartitions" ListPartitions {} -> ListPartitionsReply { partitions: PartitionSlots };

    /// Reads a partition's size.
    119 "PartitionInfo" PartitionInfo { name: PartitionText } -> PartitionInfoReply { partition: DiskPartition };

    /// Lists the partitions.
    127 "XListPartitions" XListPartitions {}
        -> XListPartitionsReply { partitions: BoundedVec<PartitionNumber, 256> };

    /// Reads a partition's size in 64 bits.
    65539 "PartitionInfo64" PartitionInfo64 { name: PartitionText }
        -> PartitionInfo64Reply { partition: DiskPartition64 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn sizes() {
        assert_eq!(DiskPartition::default().to_bytes().len(), 272);
        assert_eq!(DiskPartition64::default().to_bytes().len(), 2076);
        let slots = PartitionSlots::of([PartitionId(1), PartitionId(30)]);
        assert_eq!(slots.to_bytes().len(), 104);
        assert_eq!(slots.to_bytes()[..8], [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
    }
}
