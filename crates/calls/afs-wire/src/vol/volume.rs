//! Calls that create, change and remove volumes.

use super::{NameText, SERVICE, TransactionId, VolumeInfo};
use crate::ids::{KindNumber, PartitionNumber, UnixSeconds, VolumeId};
use crate::rpc::Nothing;
use crate::xdr::ByteString;
use std::net::Ipv4Addr;

xdr_struct! {
    /// A volume's header in the reply of [`GetStatus`]: `volser_status`, 64 bytes.
    #[derive(Copy, Default)]
    pub struct HeaderStatus {
        /// Its number.
        pub id: VolumeId,
        /// The next uniquifier.
        pub next_unique: u32,
        /// Its kind.
        pub kind: KindNumber,
        /// The group's read-write volume.
        pub parent_id: VolumeId,
        /// The group's read-only volume.
        pub clone_id: VolumeId,
        /// The group's backup volume.
        pub backup_id: VolumeId,
        /// The volume it was restored from.
        pub restored_from: VolumeId,
        /// Quota in KiB; 0 is none.
        pub quota_max: i32,
        /// Reserved space, in KiB.
        pub quota_min: i32,
        /// Its owner.
        pub owner: crate::ids::ViceId,
        /// When this instance was made.
        pub creation_date: UnixSeconds,
        /// Last read.
        pub access_date: UnixSeconds,
        /// Last change.
        pub update_date: UnixSeconds,
        /// Not used.
        pub expiration_date: UnixSeconds,
        /// When the backup volume was made.
        pub backup_date: UnixSeconds,
        /// When it came to this server.
        pub copy_date: UnixSeconds,
    }
}

calls! {
    service SERVICE;

    /// Makes a volume, offline and to be destroyed unless it is published, and opens a transaction on it.
    100 "CreateVolume" CreateVolume {
        partition: PartitionNumber,
        name: NameText,
        kind: KindNumber,
        /// The group's read-write volume; 0 for itself. A read-write volume whose own number is given gets no root
        /// directory.
        parent: VolumeId,
        volume: VolumeId,
    } -> CreateVolumeReply { volume: VolumeId, transaction: TransactionId };

    /// Removes the transaction's volume; the transaction must still be ended.
    101 "DeleteVolume" DeleteVolume { transaction: TransactionId } -> Nothing;

    /// Makes a clone of the transaction's volume, offline and to be destroyed unless it is published.
    105 "Clone" Clone {
        transaction: TransactionId,
        /// A volume to remove, or 0.
        purge: VolumeId,
        kind: KindNumber,
        name: NameText,
        volume: VolumeId,
    } -> CloneReply { volume: VolumeId };

    /// Notifies the file server that the volume has moved.
    111 "SetForwarding" SetForwarding { transaction: TransactionId, site: Ipv4Addr } -> Nothing;

    /// Reads the volume's name.
    112 "GetName" GetName { transaction: TransactionId } -> GetNameReply { name: ByteString<256> };

    /// Reads the volume's header.
    113 "GetStatus" GetStatus { transaction: TransactionId } -> GetStatusReply { status: HeaderStatus };

    /// Announces a restore; does nothing.
    114 "SignalRestore" SignalRestore { name: NameText, kind: KindNumber, parent: VolumeId, clone: VolumeId }
        -> Nothing;

    /// Rewrites name, kind and group of the volume.
    117 "SetIdsTypes" SetIdsTypes {
        transaction: TransactionId,
        name: NameText,
        kind: KindNumber,
        parent: VolumeId,
        clone: VolumeId,
        backup: VolumeId,
    } -> Nothing;

    /// Brings a clone up to date with the transaction's volume.
    120 "ReClone" ReClone { transaction: TransactionId, clone: VolumeId } -> Nothing;

    /// Removes a volume, however damaged, without a transaction.
    122 "NukeVolume" NukeVolume { partition: PartitionNumber, volume: VolumeId } -> Nothing;

    /// Sets the volume's creation date.
    123 "SetDate" SetDate { transaction: TransactionId, date: UnixSeconds } -> Nothing;

    /// Sets quota, usage, dates and change counter; see [`VolumeInfo::unchanged`].
    126 "SetInfo" SetInfo { transaction: TransactionId, info: VolumeInfo } -> Nothing;

    /// Makes a read-only volume the read-write volume of its group.
    65536 "ConvertROtoRWvolume" ConvertRoToRw { partition: PartitionNumber, volume: VolumeId } -> Nothing;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn size() {
        assert_eq!(HeaderStatus::default().to_bytes().len(), 64);
    }
}
