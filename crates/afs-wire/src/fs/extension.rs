//! Calls of our own, which other servers answer with "no such call" (-455). Their numbers begin with "AN".

use super::{LockKind, LockReply, SERVICE};
use crate::ids::{Fid, VolumeId};
use crate::vol::Snapshots;

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server, as the call of the volume service with the same
    /// number. For whoever may look up names in the volume's root.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };

    /// Changes the caller's lock on a file to another kind without giving it up in between. A shared lock becomes an
    /// exclusive one only if nobody else holds one: EAGAIN otherwise, and the shared lock stays. EINVAL where there is no
    /// lock any more. For whoever may take a lock of that kind.
    0x414E_4411 "ChangeLock" ChangeLock { fid: Fid, kind: LockKind } -> LockReply;
}
