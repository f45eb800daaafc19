//! ChangeList, a call of our own: single calls in one, applied in order as far as they succeed, and once however often the list is sent.
//!
//! Source: `docs/protocol/extensions.md` "ChangeList".

use super::{
    CreateFile, CreateReply, LeaseId, Link, LinkReply, MakeDir, RemoveDir, RemoveFile, RemoveReply, Rename,
    RenameReply, SERVICE, SetStatus, StatusReply, StoreStatus, Symlink, SymlinkReply,
};
use crate::error::AbortCode;
use crate::ids::{DataVersion, Fid, FileTime, VolumeId};
use crate::rpc::Request;
use crate::xdr::{BoundedVec, ByteString, Decode, DecodeError, Encode, Reader};

/// Most changes of one list.
pub const CHANGES_MAX: usize = 64;
/// Most bytes of a file in one change.
pub const SMALL_DATA_MAX: usize = 16 << 10;

/// The bytes of a small file, or of a range of a file.
pub type SmallData = ByteString<SMALL_DATA_MAX>;
/// Changes in the order in which they are made.
pub type Changes = BoundedVec<ListedChange, CHANGES_MAX>;
/// The replies of the changes that were made.
pub type ChangeReplies = BoundedVec<ChangeReply, CHANGES_MAX>;

id! {
    /// A series of lists of one client in one volume, of which each list is made once: a number that the client draws at random, or that of the
    /// lease under which the lists were decided.
    pub struct SeriesId(u64);
}

id! {
    /// Number of a list in its series: 1 for the first, then one more each time.
    pub struct ListNumber(u64);
}

impl ListNumber {
    /// That of the list after this one.
    #[must_use]
    pub fn next(self) -> Self {
        ListNumber(self.0.wrapping_add(1))
    }
}

impl From<LeaseId> for SeriesId {
    fn from(lease: LeaseId) -> Self {
        SeriesId(lease.0)
    }
}

calls! {
    service SERVICE;

    /// Makes several changes of one volume, each as the single call would, in order, until one fails. Those made become
    /// durable and visible together, with the number of the list: the list after the last one is made, and the last one, if it is sent again, is
    /// replied to and not made. EINVAL, with nothing changed and the number not used, for any other number. ENODATA for a number other than 1 of
    /// a series that the server does not know. EXDEV if a fid is of another volume. ESTALE if they were decided under a lease that the
    /// caller does not hold.
    0x414E_443A "ChangeList" ChangeList {
        volume: VolumeId,
        series: SeriesId,
        number: ListNumber,
        /// Whether the changes were decided under the lease of that number.
        under_lease: bool,
        changes: Changes,
    } -> ChangeListReply {
        /// One reply for each change that was made. To a list that was made before, with statuses of the present, and without promises.
        done: ChangeReplies,
        /// Why the next change failed; 0 if all were made.
        code: AbortCode,
    };
}

xdr_struct! {
    /// One change of a list.
    pub struct ListedChange {
        /// The lent fid that the new file, directory or link gets; the zero fid in a change that makes no object, and without a lease.
        pub object: Fid,
        /// When the client made the change, in nanoseconds since 1970 on the wire: the time of the directories that it changes, and of change of
        /// objects; zero: at the server's present.
        pub time: FileTime,
        /// The change.
        pub change: Change,
    }
}

impl From<Change> for ListedChange {
    /// Made now, of an object of whichever number.
    fn from(change: Change) -> Self {
        ListedChange { object: Fid::default(), time: FileTime::default(), change }
    }
}

xdr_struct! {
    /// One range of a file, stored as a change of a list.
    pub struct StoreSmall {
        /// The file.
        pub fid: Fid,
        /// Status to set on the way.
        pub status: SetStatus,
        /// The version that the file must have (EAGAIN), or [`ANY_VERSION`](super::ANY_VERSION).
        pub expected: DataVersion,
        /// Position of the bytes; without bytes, the length to which a shorter file is extended.
        pub position: u64,
        /// Length to which a longer file is truncated before the bytes are written.
        pub file_length: u64,
        /// The bytes.
        pub data: SmallData,
    }
}

xdr_struct! {
    /// A new file with its data.
    pub struct CreateSmall {
        /// The creation.
        pub create: CreateFile,
        /// The file's bytes. With none it has the version of a new file, else the one after.
        pub data: SmallData,
    }
}

/// On the wire: the number of a single call, then its arguments, or its reply.
macro_rules! by_opcode {
    ($(#[$meta:meta])* pub enum $name:ident { $($variant:ident($type:ty) = $opcode:expr),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $(
            #[doc = concat!("(Wire type `", stringify!($type), "`.)")]
            $variant($type),
        )* }

        impl Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                match self { $(
                    Self::$variant(value) => {
                        $opcode.encode(out);
                        value.encode(out);
                    }
                )* }
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let opcode = u32::decode(r)?;
                $( if opcode == $opcode {
                    return Ok(Self::$variant(Decode::decode(r)?));
                } )*
                Err(DecodeError::BadValue { what: "kind of change", value: opcode })
            }
        }
    };
}

by_opcode! {
    /// One change of a list.
    pub enum Change {
        CreateFile(CreateSmall) = CreateFile::OPCODE,
        MakeDir(MakeDir) = MakeDir::OPCODE,
        Symlink(Symlink) = Symlink::OPCODE,
        Link(Link) = Link::OPCODE,
        Store(StoreSmall) = super::StoreData64::OPCODE,
        StoreStatus(StoreStatus) = StoreStatus::OPCODE,
        RemoveFile(RemoveFile) = RemoveFile::OPCODE,
        RemoveDir(RemoveDir) = RemoveDir::OPCODE,
        Rename(Rename) = Rename::OPCODE,
    }
}

by_opcode! {
    /// The reply of a change that was made.
    pub enum ChangeReply {
        CreateFile(CreateReply) = CreateFile::OPCODE,
        MakeDir(CreateReply) = MakeDir::OPCODE,
        Symlink(SymlinkReply) = Symlink::OPCODE,
        Link(LinkReply) = Link::OPCODE,
        Store(StatusReply) = super::StoreData64::OPCODE,
        StoreStatus(StatusReply) = StoreStatus::OPCODE,
        RemoveFile(RemoveReply) = RemoveFile::OPCODE,
        RemoveDir(RemoveReply) = RemoveDir::OPCODE,
        Rename(RenameReply) = Rename::OPCODE,
    }
}

impl Change {
    /// Whether the change makes a new object.
    pub fn makes_object(&self) -> bool {
        matches!(self, Self::CreateFile(_) | Self::MakeDir(_) | Self::Symlink(_))
    }

    /// The objects that the change names: the second one of a rename or a link, or the first again.
    pub fn fids(&self) -> [Fid; 2] {
        match self {
            Self::CreateFile(change) => [change.create.dir; 2],
            Self::MakeDir(change) => [change.dir; 2],
            Self::Symlink(change) => [change.dir; 2],
            Self::Link(change) => [change.dir, change.existing],
            Self::Store(change) => [change.fid; 2],
            Self::StoreStatus(change) => [change.fid; 2],
            Self::RemoveFile(change) => [change.dir; 2],
            Self::RemoveDir(change) => [change.dir; 2],
            Self::Rename(change) => [change.old_dir, change.new_dir],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Name;
    use crate::ids::{Uniquifier, UnixSeconds, VnodeId};

    fn remove(name: &str) -> Change {
        Change::RemoveFile(RemoveFile { dir: Fid::default(), name: Name::truncated(name.as_bytes()) })
    }

    #[test]
    fn a_change_is_the_number_of_its_call_and_the_arguments() {
        let change = remove("f");
        let bytes = change.to_bytes();
        assert_eq!(bytes[..4], 136u32.to_be_bytes());
        assert_eq!(bytes.len(), 4 + Fid::WIRE_LEN + 8);
        assert_eq!(Change::from_bytes(&bytes), Ok(change));
    }

    #[test]
    fn a_list_has_a_bounded_number_of_changes_of_known_kinds() {
        let changes = Changes::first_of(std::iter::repeat_with(|| remove("f").into()).take(CHANGES_MAX + 1));
        assert_eq!(changes.len(), CHANGES_MAX);
        let (series, number) = (LeaseId(1 << 40).into(), ListNumber(3));
        let list = ChangeList { volume: VolumeId(7), series, number, under_lease: true, changes };
        let mut bytes = list.to_bytes();
        assert_eq!(ChangeList::from_bytes(&bytes), Ok(list));
        bytes[27] += 1;
        assert!(matches!(ChangeList::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
        bytes[27] -= 2;
        assert!(matches!(ChangeList::from_bytes(&bytes), Err(DecodeError::Trailing { .. })));
        bytes[27] += 1;
        bytes[51] = 131;
        assert!(matches!(ChangeList::from_bytes(&bytes), Err(DecodeError::BadValue { .. })));
    }

    #[test]
    fn a_listed_change_is_the_fid_of_what_it_makes_its_time_and_the_change() {
        let time = FileTime::new(UnixSeconds(7), 9);
        let object = Fid { volume: VolumeId(7), vnode: VnodeId(3), unique: Uniquifier(9) };
        let change = ListedChange { object, time, change: remove("f") };
        let bytes = change.to_bytes();
        assert_eq!(bytes[..12], object.to_bytes());
        assert_eq!(bytes[12..20], 7_000_000_009u64.to_be_bytes());
        assert_eq!(bytes[20..24], 136u32.to_be_bytes());
        let mut later = bytes.clone();
        later[12..20].copy_from_slice(&u64::MAX.to_be_bytes());
        assert!(matches!(ListedChange::from_bytes(&later), Err(DecodeError::BadValue { .. })));
        assert_eq!(ListedChange::from_bytes(&bytes), Ok(change));
    }

    #[test]
    fn the_data_of_a_change_is_bounded() {
        let store = StoreSmall {
            fid: Fid::default(),
            status: SetStatus::default(),
            expected: DataVersion(3),
            position: 0,
            file_length: 0,
            data: SmallData::truncated(&[7; SMALL_DATA_MAX + 1]),
        };
        let mut bytes = Change::Store(store).to_bytes();
        assert!(Change::from_bytes(&bytes).is_ok());
        let at = bytes.len() - SMALL_DATA_MAX - 1;
        bytes[at] += 1;
        assert!(matches!(Change::from_bytes(&bytes), Err(DecodeError::TooLong { .. })));
    }
}
