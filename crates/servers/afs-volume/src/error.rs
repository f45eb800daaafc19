//! Errors of operations on volumes.

use afs_drive::{DriveError, DriveId};
use afs_kv::{KvError, UpdateError};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::VnodeId;

/// Why an operation on a volume was refused. [`VolumeError::code`] is the code on the wire
/// (`docs/protocol/fileserver.md` "9.3 Which error when").
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// The volume is not in this store.
    #[error("no such volume")]
    NoVolume,
    /// The volume is offline.
    #[error("the volume is offline")]
    Offline,
    /// The volume is busy for a while.
    #[error("the volume is busy")]
    Busy,
    /// Small stores have scattered a part of the file so much that it must be compacted first, which has
    /// begun.
    #[error("this part of the file is being written anew; try again")]
    Scattered,
    /// A dump without holes would consist mostly of zeros.
    #[error(
        "vnode {vnode} has {length} bytes, nearly all of them a hole, and with it the volume's holes are {holes} bytes: \
         a dump that writes holes as zeros may have 2 TiB of them; make the file shorter, or send the volume to a \
         server that takes dumps with holes"
    )]
    Sparse {
        /// The vnode.
        vnode: VnodeId,
        /// Its length in bytes.
        length: u64,
        /// Bytes of holes in the volume up to this vnode.
        holes: u64,
    },
    /// The data has another version than expected.
    #[error("the file has changed")]
    Changed,
    /// A volume with this id or name exists.
    #[error("the volume exists already")]
    VolumeExists,
    /// The vnode is free, or its uniquifier is another.
    #[error("no such vnode")]
    NoVnode,
    /// The number of a new object was not lent, was used, or was taken back.
    #[error("the number is not lent")]
    NotLent,
    /// The list was made before: it is the last one of its series.
    #[error("the list was made before")]
    MadeBefore,
    /// A list of a series that is not known, and not its first: whether others of it were made cannot be told.
    #[error("the series of the list is not known")]
    UnknownSeries,
    /// Chunks that a client says to have staged are not there, were claimed before, or forgotten.
    #[error("not all chunks are staged at the drive")]
    NotStaged,
    /// A change to a read-only or backup volume.
    #[error("the volume is read-only")]
    ReadOnly,
    /// The caller lacks a right.
    #[error("access denied")]
    AccessDenied,
    /// Only owners or administrators may do this.
    #[error("not permitted")]
    NotPermitted,
    /// The name exists.
    #[error("the name exists already")]
    Exists,
    /// The name does not exist.
    #[error("no such name")]
    NotFound,
    /// A directory was needed.
    #[error("not a directory")]
    NotDirectory,
    /// An object other than a directory was needed.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// An argument is invalid.
    #[error("invalid argument")]
    Invalid,
    /// The name is longer than 255 bytes.
    #[error("the name is too long")]
    NameTooLong,
    /// A link or rename between volumes, or of a file with several names between directories.
    #[error("link or rename across directories or volumes")]
    CrossDevice,
    /// A directory would become its own descendant.
    #[error("the directory would be inside itself")]
    Loop,
    /// Exceeds the capacity of a file or a directory.
    #[error("too large")]
    TooLarge,
    /// Exceeds the volume's quota.
    #[error("over the volume's quota")]
    OverQuota,
    /// The partition is full.
    #[error("the partition is full")]
    DiskFull,
    /// A read restricted to memory ([`Depth::Memory`](crate::Depth::Memory)) needs the disk.
    #[error("the rows are not in memory")]
    NotInMemory,
    /// Stored data is inconsistent.
    #[error("vnode {vnode} is damaged: {what}")]
    Damaged {
        /// The vnode.
        vnode: VnodeId,
        /// The inconsistency.
        what: String,
    },
    /// A row names a drive that the store does not have.
    #[error("the data are on drive {drive}, which this store does not have")]
    UnknownDrive {
        /// Its id.
        drive: DriveId,
    },
    /// The index failed.
    #[error(transparent)]
    Index(KvError),
    /// The drive failed.
    #[error(transparent)]
    Drive(DriveError),
    /// A refusal by the caller's code inside the transaction, with the code for its client.
    #[error("{0}")]
    Refused(AbortCode),
}

impl VolumeError {
    /// Whether the disk of the partition fails, or its index is damaged: other volumes there may be unusable too.
    #[must_use]
    pub fn is_of_partition(&self) -> bool {
        match self {
            Self::Index(error) => {
                matches!(error, KvError::Io(_) | KvError::Corrupt(_) | KvError::NeedsReopen)
            }
            Self::Drive(error) => {
                matches!(error, DriveError::Io(_) | DriveError::Unreadable { .. } | DriveError::NeedsReopen)
            }
            _ => false,
        }
    }

    /// The abort code for a client.
    pub fn code(&self) -> AbortCode {
        let errno = match self {
            Self::NoVolume => return AbortCode::VNOVOL,
            Self::Offline => return AbortCode::VOFFLINE,
            // Clients retry, and the second time it is done.
            Self::Busy | Self::Scattered | Self::NotInMemory => return AbortCode::VBUSY,
            Self::Changed => Errno::EAGAIN,
            Self::VolumeExists => return AbortCode::VVOLEXISTS,
            Self::NoVnode => return AbortCode::VNOVNODE,
            Self::Sparse { .. } => Errno::EFBIG,
            Self::OverQuota => return AbortCode::VOVERQUOTA,
            Self::DiskFull => return AbortCode::VDISKFULL,
            Self::Refused(code) => return *code,
            Self::NotLent | Self::NotStaged => Errno::ESTALE,
            Self::ReadOnly => Errno::EROFS,
            Self::AccessDenied => Errno::EACCES,
            Self::NotPermitted => Errno::EPERM,
            // OpenAFS replies EEXIST for a directory that is not empty, and its clients expect it.
            Self::Exists | Self::NotEmpty => Errno::EEXIST,
            Self::NotFound => Errno::ENOENT,
            Self::NotDirectory => Errno::ENOTDIR,
            Self::IsDirectory => Errno::EISDIR,
            Self::Invalid | Self::MadeBefore => Errno::EINVAL,
            Self::UnknownSeries => Errno::ENODATA,
            Self::NameTooLong => Errno::ENAMETOOLONG,
            Self::CrossDevice => Errno::EXDEV,
            Self::Loop => Errno::ELOOP,
            Self::TooLarge => Errno::EFBIG,
            Self::Damaged { .. } | Self::UnknownDrive { .. } | Self::Index(_) | Self::Drive(_) => Errno::EIO,
        };
        errno.to_uae()
    }
}

impl VolumeError {
    /// Whether it says nothing of a change, but that the volume takes none at present.
    pub fn is_of_the_volume(&self) -> bool {
        let of_volume = [AbortCode::VBUSY, AbortCode::VOFFLINE, AbortCode::VMOVED, AbortCode::VNOVOL];
        of_volume.contains(&self.code()) || self.code() == Errno::ESTALE.to_uae()
    }
}

impl From<VolumeError> for AbortCode {
    fn from(error: VolumeError) -> Self {
        error.code()
    }
}

impl From<AbortCode> for VolumeError {
    fn from(code: AbortCode) -> Self {
        Self::Refused(code)
    }
}

impl From<KvError> for VolumeError {
    fn from(error: KvError) -> Self {
        match error {
            KvError::NoSpace => Self::DiskFull,
            KvError::NotInMemory => Self::NotInMemory,
            other => Self::Index(other),
        }
    }
}

impl From<DriveError> for VolumeError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::NoSpace => Self::DiskFull,
            // The drive has started again: the client stores once more, and it is done.
            DriveError::Forgotten => Self::Busy,
            other => Self::Drive(other),
        }
    }
}

impl From<UpdateError<VolumeError>> for VolumeError {
    fn from(error: UpdateError<VolumeError>) -> Self {
        match error {
            UpdateError::Refused(error) => error,
            UpdateError::Kv(error) => error.into(),
        }
    }
}
