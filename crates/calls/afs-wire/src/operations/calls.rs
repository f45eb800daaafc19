//! Calls of the journal of operations, and of the snapshot schedule.

use super::{Detail, OpenOperation, OperationHolder, Operations, SERVICE, SnapshotSchedule, Text};
use crate::ids::VolumeId;
use crate::rpc::Nothing;

calls! {
    service SERVICE;

    /// Begins an operation and gives its caller the lease on it. EBUSY while another operation on the volume is in
    /// progress, ENOSPC when the journal is full.
    1 "BeginOperation" BeginOperation {
        /// Kind of operation.
        word: Text,
        /// Number of the group's read-write volume.
        volume: VolumeId,
        /// The volume's name.
        name: Text,
        /// The caller.
        holder: OperationHolder,
        /// Its first step.
        step: Text,
        /// Data needed to resume it.
        detail: Detail,
    } -> BeginOperationReply {
        /// Its number.
        id: u64,
        /// Lease, to be presented with every further call.
        holding: u64,
    };

    /// Records the next step, and extends the lease. ESTALE when another caller holds the operation, or it has ended.
    2 "StepOperation" StepOperation { id: u64, holding: u64, step: Text, detail: Detail } -> Nothing;

    /// Extends the lease. ESTALE as above.
    3 "HeartbeatOperation" HeartbeatOperation { id: u64, holding: u64 } -> Nothing;

    /// Removes an operation that is done or undone. ESTALE as above.
    4 "EndOperation" EndOperation { id: u64, holding: u64 } -> Nothing;

    /// Lists operations in progress, by number, after a number; as many as fit.
    5 "ListOperations" ListOperations {
        /// 0, or the last number of the previous reply.
        after: u64,
    } -> ListOperationsReply { operations: Operations };

    /// Takes over an operation whose lease has expired. EBUSY while it has not, ENOENT when the operation has ended.
    6 "TakeOverOperation" TakeOverOperation { id: u64, holder: OperationHolder } -> TakeOverOperationReply {
        /// Lease, to be presented with every further call.
        holding: u64,
        /// The operation.
        operation: OpenOperation,
    };

    /// The cell's schedule of snapshots; ENOENT when none was ever set.
    7 "GetSnapshotSchedule" GetSnapshotSchedule {} -> GetSnapshotScheduleReply { schedule: SnapshotSchedule };

    /// Sets the cell's schedule of snapshots. EINVAL when it keeps more than a volume may have.
    8 "SetSnapshotSchedule" SetSnapshotSchedule { schedule: SnapshotSchedule } -> Nothing;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, DecodeError, Encode};

    #[test]
    fn what_is_too_long_is_refused() {
        let call = HeartbeatOperation { id: 7, holding: 1 };
        assert_eq!(call.to_bytes(), [0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]);
        let bytes = [&[0, 0, 0, 200][..], &[b'a'; 200]].concat();
        assert_eq!(BeginOperation::from_bytes(&bytes), Err(DecodeError::TooLong { limit: 128, got: 200 }));
    }

    #[test]
    fn a_page_of_the_longest_operations_fits_into_a_reply() {
        let longest = OpenOperation {
            word: Text::truncated(&[b'w'; 128]),
            detail: Detail::truncated(&vec![0; super::super::DETAIL_MAX]),
            ..OpenOperation::default()
        };
        let page = Operations::first_of(vec![longest; super::super::PAGE_MAX]);
        assert!(page.to_bytes().len() < 1 << 20);
    }
}
