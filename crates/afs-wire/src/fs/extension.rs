//! Calls of our own, which other servers answer with "no such call" (-455). Their numbers begin with "AN".

use super::SERVICE;
use crate::ids::VolumeId;
use crate::vol::Snapshots;

calls! {
    service SERVICE;

    /// Lists the named snapshots of a volume that is on this server, as the call of the volume service with the same
    /// number. For whoever may look up names in the volume's root.
    0x414E_4401 "ListSnapshots" ListSnapshots { volume: VolumeId } -> ListSnapshotsReply { snapshots: Snapshots };
}
