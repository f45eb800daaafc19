//! Transactions, which hold volumes. Source: `docs/protocol/volserver.md` "4. Transactions".

use super::SERVICE;
use crate::ids::{PartitionNumber, UnixSeconds, VolumeId};
use crate::rpc::Nothing;
use crate::xdr::{BoundedVec, Chars};

id! {
    /// A transaction's number; not bound to a connection.
    pub struct TransactionId(i32);
}

id! {
    /// Mode in which a transaction attaches its volume. Tested in the order of the constants; none is an error.
    pub struct AttachFlags(i32);
}

impl AttachFlags {
    /// The file server is not notified.
    pub const CREATE: Self = Self(0x10);
    /// Clients of a read-write volume wait; read-only and backup volumes stay online.
    pub const BUSY: Self = Self(0x02);
    /// The volume stays online.
    pub const READ_ONLY: Self = Self(0x08);
    /// The volume goes offline.
    pub const OFFLINE: Self = Self(0x01);

    /// Whether every bit of `wanted` is set.
    pub const fn contains(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

id! {
    /// State of a volume that a transaction sets.
    pub struct VolumeFlags(i32);
}

impl VolumeFlags {
    /// The volume is deleted unless it is published.
    pub const DELETE_ON_SALVAGE: Self = Self(1);
    /// The volume stays offline.
    pub const OUT_OF_SERVICE: Self = Self(2);
    /// The volume was deleted; the server sets this.
    pub const DELETED: Self = Self(4);

    /// Whether every bit of `wanted` is set.
    pub const fn contains(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// How long a transaction may be idle before the server ends it, in seconds.
pub const IDLE_SECONDS_MAX: u64 = 600;

xdr_struct! {
    /// A transaction as tools list it: `transDebugInfo`, 176 bytes.
    #[derive(Copy, Default)]
    pub struct TransactionInfo {
        /// Its number.
        pub id: TransactionId,
        /// Its last activity.
        pub active: UnixSeconds,
        /// Its start.
        pub created: UnixSeconds,
        /// Its return code.
        pub return_code: i32,
        /// The volume it holds.
        pub volume: VolumeId,
        /// The partition of that volume.
        pub partition: PartitionNumber,
        /// Mode in which it attached the volume.
        pub attach_flags: i16,
        /// State of the volume that it set.
        pub volume_flags: i8,
        /// 1 when it was ended while a call used it.
        pub transaction_flags: i8,
        /// The last procedure that used it.
        pub last_procedure: Chars<30>,
        /// Whether the rest is valid.
        pub call_valid: bool,
        /// Rx: next packet to read.
        pub read_next: i32,
        /// Rx: next packet to send.
        pub transmit_next: i32,
        /// Rx: last time something was sent.
        pub last_send: UnixSeconds,
        /// Rx: last time something was received.
        pub last_receive: UnixSeconds,
    }
}

calls! {
    service SERVICE;

    /// Ends a transaction; the volume is returned to the file server.
    104 "EndTrans" EndTrans { transaction: TransactionId }
        -> EndTransReply {
            /// In practice always 0.
            return_code: i32,
        };

    /// Sets the state of the transaction's volume.
    106 "SetFlags" SetFlags { transaction: TransactionId, flags: VolumeFlags } -> Nothing;

    /// Reads the state the transaction set.
    107 "GetFlags" GetFlags { transaction: TransactionId } -> GetFlagsReply { flags: VolumeFlags };

    /// Begins a transaction on a volume. Fails with VOLSERVOLBUSY if there is another.
    108 "TransCreate" TransCreate { volume: VolumeId, partition: PartitionNumber, flags: AttachFlags }
        -> TransCreateReply { transaction: TransactionId };

    /// Lists the transactions.
    118 "Monitor" Monitor {} -> MonitorReply { transactions: BoundedVec<TransactionInfo, 65536> };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn size() {
        assert_eq!(TransactionInfo::default().to_bytes().len(), 176);
    }
}
