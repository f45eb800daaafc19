//! Leases of directories, calls of our own: to take one, to borrow more, to return it. Changes under it are sent as
//! [`ChangeList`](super::ChangeList)s.
//!
//! Source: `docs/protocol/extensions.md` "Leases of directories". The server's recall is
//! [`cb::RecallLease`](crate::cb::RecallLease).

use super::{CallBack, SERVICE, Status, VolSync};
use crate::ids::Fid;
use crate::rpc::Nothing;
use crate::xdr::BoundedVec;

/// Most numbers of objects that are lent in one call.
pub const LENT_MAX: usize = 256;

id! {
    /// A lease of one file server. The server never uses a number for two leases, not after a restart either.
    pub struct LeaseId(u64);
}

/// Fids that are lent, those for files and links first.
pub type LentFids = BoundedVec<Fid, LENT_MAX>;
calls! {
    service SERVICE;

    /// Asks for the lease of a directory, and for fids for `files` files and links and `directories` directories (1 to
    /// [`LENT_MAX`] in all). EAGAIN where the server lends the directory to no client at present, or to another one.
    0x414E_4438 "TakeLease" TakeLease {
        dir: Fid,
        files: u32,
        directories: u32,
        /// Bytes of quota to be reserved.
        space: u64,
    } -> TakeLeaseReply {
        /// The lease.
        lease: LeaseId,
        /// The directory's status when the lease began.
        status: Status,
        /// A promise on it.
        callback: CallBack,
        sync: VolSync,
        /// What new objects become.
        fids: LentFids,
        /// Bytes of quota that are reserved, perhaps fewer than were asked for.
        space: u64,
    };

    /// Asks for more fids and quota for the lease of a directory that the caller holds, with the bounds of TakeLease, and gives fids back.
    /// EAGAIN where the server lends no more with it; ESTALE if the caller does not hold it.
    0x414E_4417 "LendMore" LendMore {
        dir: Fid,
        lease: LeaseId,
        files: u32,
        directories: u32,
        /// Bytes of quota that the caller still needs of what is reserved; what is above that is released.
        left: u64,
        /// Bytes of quota to be reserved besides.
        space: u64,
        /// Fids that are lent no more: what was made with them is as any other object, what was not used is taken back. Others that are
        /// not lent with this lease are left alone.
        returned: LentFids,
    } -> LendMoreReply {
        /// What new objects become, too.
        fids: LentFids,
        /// Bytes of quota that are reserved besides.
        space: u64,
    };

    /// Ends a lease: nothing more is sent in its series. ESTALE if the caller does not hold it.
    0x414E_4415 "ReturnLease" ReturnLease { dir: Fid, lease: LeaseId } -> Nothing;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cb::RecallLease;
    use crate::ids::{Uniquifier, VnodeId, VolumeId};
    use crate::xdr::{Decode, DecodeError, Encode};

    const DIR: Fid = Fid { volume: VolumeId(7), vnode: VnodeId(1), unique: Uniquifier(1) };
    const NEW: Fid = Fid { volume: VolumeId(7), vnode: VnodeId(3), unique: Uniquifier(9) };

    #[test]
    fn lent_fids_are_bounded() {
        let fids = LentFids::first_of(vec![NEW; LENT_MAX + 1]);
        let mut bytes = fids.to_bytes();
        assert_eq!(bytes.len(), 4 + LENT_MAX * Fid::WIRE_LEN);
        bytes[3] += 1;
        assert!(matches!(LentFids::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }

    #[test]
    fn a_recall_names_directory_and_lease() {
        let bytes = RecallLease { dir: DIR, lease: LeaseId(5) }.to_bytes();
        assert_eq!(bytes.len(), Fid::WIRE_LEN + 8);
        assert_eq!(bytes[12..], 5u64.to_be_bytes());
    }
}
