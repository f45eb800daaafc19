//! Calls on many objects at once.

use super::{CallBack, FIDS_MAX, SERVICE, Status, VolSync};
use crate::ids::Fid;
use crate::rpc::Nothing;
use crate::xdr::BoundedVec;

/// Up to 50 fids.
pub type Fids = BoundedVec<Fid, FIDS_MAX>;
/// Up to 50 promises.
pub type Promises = BoundedVec<CallBack, FIDS_MAX>;
/// Up to 50 statuses.
pub type Statuses = BoundedVec<Status, FIDS_MAX>;

calls! {
    service SERVICE;

    /// Gives up promises. The list of promises may be empty.
    147 "GiveUpCallBacks" GiveUpCallBacks { fids: Fids, callbacks: Promises } -> Nothing;

    /// Reads many statuses; one failure fails the call.
    155 "BulkStatus" BulkStatus { fids: Fids }
        -> BulkStatusReply { statuses: Statuses, callbacks: Promises, sync: VolSync };

    /// Reads many statuses, each of which may carry an error instead.
    65536 "InlineBulkStatus" InlineBulkStatus { fids: Fids } -> BulkStatusReply;
}
