//! Why an operation on a volume was refused.

use afs_drive::{DriveError, DriveId};
use afs_kv::{KvError, UpdateError};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::VnodeId;

/// Why an operation on a volume was refused. [`VolumeError::code`] is what a caller on the wire is told
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
    /// Small stores have scattered a part of the file so much that it must be written anew first, which has begun.
    #[error("this part of the file is being written anew; try again")]
    Scattered,
    /// A dump without holes would be mostly zeros.
    #[error(
        "vnode {vnode} has {length} bytes, nearly all of them a hole, and with it the volume's holes are {holes} bytes: \
         a dump that writes holes as zeros may have 2 TiB of them; make the file shorter, or send the volume to a \
         server that takes dumps with holes"
    )]
    Sparse {
        /// Which vnode.
        vnode: VnodeId,
        /// Its length in bytes.
        length: u64,
        /// Bytes of holes of the volume up to it.
        holes: u64,
    },
    /// The data are of another version than was expected.
    #[error("the file has changed")]
    Changed,
    /// A volume of this number or name exists already.
    #[error("the volume exists already")]
    VolumeExists,
    /// The vnode is free, or its uniquifier is another.
    #[error("no such vnode")]
    NoVnode,
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
    /// Something other than a directory was needed.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// An argument makes no sense.
    #[error("invalid argument")]
    Invalid,
    /// The name is longer than 255 bytes.
    #[error("the name is too long")]
    NameTooLong,
    /// A link or rename between volumes, or of a file with several names between directories.
    #[error("link or rename across directories or volumes")]
    CrossDevice,
    /// A directory would come to lie beneath itself.
    #[error("the directory would be inside itself")]
    Loop,
    /// More than a file or a directory can hold.
    #[error("too large")]
    TooLarge,
    /// The volume's quota does not allow it.
    #[error("over the volume's quota")]
    OverQuota,
    /// There is no room on the partition.
    #[error("the partition is full")]
    DiskFull,
    /// A read that was limited to memory ([`Depth::Memory`](crate::Depth::Memory)) needs the disk.
    #[error("the rows are not in memory")]
    NotInMemory,
    /// What is stored contradicts itself.
    #[error("vnode {vnode} is damaged: {what}")]
    Damaged {
        /// Which vnode.
        vnode: VnodeId,
        /// What was found.
        what: String,
    },
    /// A row names a drive that the store does not have.
    #[error("the data are on drive {drive}, which this store does not have")]
    UnknownDrive {
        /// Which.
        drive: DriveId,
    },
    /// The index failed.
    #[error(transparent)]
    Index(KvError),
    /// The drive failed.
    #[error(transparent)]
    Drive(DriveError),
    /// A refusal by whoever runs inside the transaction, with the code its caller is to be told.
    #[error("{0}")]
    Refused(AbortCode),
}

impl VolumeError {
    /// The abort code that says this to a client.
    pub fn code(&self) -> AbortCode {
        let errno = match self {
            Self::NoVolume => return AbortCode::VNOVOL,
            Self::Offline => return AbortCode::VOFFLINE,
            // Clients ask again, and the second time it is done.
            Self::Busy | Self::Scattered | Self::NotInMemory => return AbortCode::VBUSY,
            Self::Changed => Errno::EAGAIN,
            Self::VolumeExists => return AbortCode::VVOLEXISTS,
            Self::NoVnode => return AbortCode::VNOVNODE,
            Self::Sparse { .. } => Errno::EFBIG,
            Self::OverQuota => return AbortCode::VOVERQUOTA,
            Self::DiskFull => return AbortCode::VDISKFULL,
            Self::Refused(code) => return *code,
            Self::ReadOnly => Errno::EROFS,
            Self::AccessDenied => Errno::EACCES,
            Self::NotPermitted => Errno::EPERM,
            // OpenAFS says EEXIST of a directory that is not empty, and its clients expect it.
            Self::Exists | Self::NotEmpty => Errno::EEXIST,
            Self::NotFound => Errno::ENOENT,
            Self::NotDirectory => Errno::ENOTDIR,
            Self::IsDirectory => Errno::EISDIR,
            Self::Invalid => Errno::EINVAL,
            Self::NameTooLong => Errno::ENAMETOOLONG,
            Self::CrossDevice => Errno::EXDEV,
            Self::Loop => Errno::ELOOP,
            Self::TooLarge => Errno::EFBIG,
            Self::Damaged { .. } | Self::UnknownDrive { .. } | Self::Index(_) | Self::Drive(_) => Errno::EIO,
        };
        errno.to_uae()
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
