//! Leases of directories, calls of our own: to take one, to send a numbered list of changes under it, to return it.
//!
//! Source: `docs/protocol/extensions.md` "Leases of directories". The server's recall is
//! [`cb::RecallLease`](crate::cb::RecallLease).

use super::{CHANGES_MAX, CallBack, Change, ChangeListReply, SERVICE, Status, VolSync};
use crate::ids::{Fid, FileTime};
use crate::rpc::Nothing;
use crate::xdr::BoundedVec;

/// Most numbers of objects that are lent in one call.
pub const LENT_MAX: usize = 256;

id! {
    /// A lease of one file server. The server never uses a number for two leases, not after a restart either.
    pub struct LeaseId(u64);
}

id! {
    /// Number of a list of a lease: 1 for the first, then one more each time.
    pub struct ListNumber(u64);
}

/// Fids that are lent, those for files and links first.
pub type LentFids = BoundedVec<Fid, LENT_MAX>;
/// Changes under a lease, in the order in which they are made.
pub type LeasedChanges = BoundedVec<LeasedChange, CHANGES_MAX>;

xdr_struct! {
    /// One change under a lease.
    pub struct LeasedChange {
        /// The lent fid that the new file, directory or link gets; the zero fid in a change that makes no object.
        pub object: Fid,
        /// When the holder made the change, in nanoseconds since 1970 on the wire: the time of the directories that it changes, and of change of
        /// objects.
        pub time: FileTime,
        /// The change.
        pub change: Change,
    }
}

impl Change {
    /// Whether the change makes a new object.
    pub fn makes_object(&self) -> bool {
        matches!(self, Self::CreateFile(_) | Self::MakeDir(_) | Self::Symlink(_))
    }
}

calls! {
    service SERVICE;

    /// Asks for the lease of a directory, and for fids for `files` files and links and `directories` directories (1 to
    /// [`LENT_MAX`] in all). EAGAIN where the server lends the directory to nobody at present, or to somebody else.
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

    /// Makes changes under a lease, in order, until one fails. The list after the last one is applied; the last one, if it is
    /// sent again, is replied to as before. ESTALE if the caller does not hold the lease; EINVAL, with nothing changed and the
    /// number not used, for any other number, or a change that the lease does not cover.
    0x414E_4439 "LeaseList" LeaseList {
        dir: Fid,
        lease: LeaseId,
        number: ListNumber,
        changes: LeasedChanges,
    } -> ChangeListReply;

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

    /// Ends a lease: nothing more is sent under it. ESTALE if the caller does not hold it.
    0x414E_4415 "ReturnLease" ReturnLease { dir: Fid, lease: LeaseId } -> Nothing;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cb::RecallLease;
    use crate::fs::{MakeDir, Name, RemoveFile, SetStatus};
    use crate::ids::{Uniquifier, UnixSeconds, VnodeId, VolumeId};
    use crate::xdr::{Decode, DecodeError, Encode};

    const DIR: Fid = Fid { volume: VolumeId(7), vnode: VnodeId(1), unique: Uniquifier(1) };
    const NEW: Fid = Fid { volume: VolumeId(7), vnode: VnodeId(3), unique: Uniquifier(9) };

    fn make_dir() -> Change {
        Change::MakeDir(MakeDir { dir: DIR, name: Name::truncated(b"d"), status: SetStatus::default() })
    }

    #[test]
    fn a_leased_change_is_the_fid_of_what_it_makes_and_the_change() {
        let time = FileTime::new(UnixSeconds(7), 9);
        let change = LeasedChange { object: NEW, time, change: make_dir() };
        let bytes = change.to_bytes();
        assert_eq!(bytes[..12], NEW.to_bytes());
        assert_eq!(bytes[12..20], 7_000_000_009u64.to_be_bytes());
        assert_eq!(bytes[20..24], 141u32.to_be_bytes());
        let mut later = bytes.clone();
        later[12..20].copy_from_slice(&u64::MAX.to_be_bytes());
        assert!(matches!(LeasedChange::from_bytes(&later), Err(DecodeError::BadValue { .. })));
        assert_eq!(LeasedChange::from_bytes(&bytes), Ok(change));
        assert!(make_dir().makes_object());
        let remove = Change::RemoveFile(RemoveFile { dir: DIR, name: Name::truncated(b"f") });
        assert!(!remove.makes_object());
    }

    #[test]
    fn lists_and_lent_fids_are_bounded() {
        let change = LeasedChange { object: NEW, time: FileTime::default(), change: make_dir() };
        let changes = LeasedChanges::first_of(vec![change; CHANGES_MAX + 1]);
        let list = LeaseList { dir: DIR, lease: LeaseId(1 << 40), number: ListNumber(1), changes };
        let mut bytes = list.to_bytes();
        assert_eq!(LeaseList::from_bytes(&bytes), Ok(list));
        bytes[31] += 1;
        assert!(matches!(LeaseList::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));

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
