//! Errors of Venus, and their translation to errno.

use std::fmt;
use std::net::SocketAddr;

use afs_wire::error::AbortCode;
use afs_wire::ids::Fid;

/// Result of an operation of Venus.
pub type Result<T> = std::result::Result<T, VenusError>;

/// Kind of an error. It alone determines the errno that an application gets ([`ErrorKind::errno`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such name.
    NotFound,
    /// The object does not exist at the server any more.
    Stale,
    /// The name exists.
    Exists,
    /// The object is not a directory.
    NotDirectory,
    /// The object is a directory.
    IsDirectory,
    /// A process runs the file as a program.
    Executed,
    /// The directory still has entries.
    NotEmpty,
    /// Not permitted by the access list or the owner's mode bits.
    AccessDenied,
    /// The same for a user whose token has expired or was removed: logging in again helps.
    TokenExpired,
    /// Permitted only to the owner or an administrator.
    NotPermitted,
    /// Invalid argument.
    Invalid,
    /// A name longer than 255 bytes.
    NameTooLong,
    /// A link or rename between two volumes, or a link between two directories.
    CrossDevice,
    /// The volume is read-only, or the directory is synthetic.
    ReadOnly,
    /// The volume's quota is used up.
    OverQuota,
    /// The server's partition is full.
    NoSpace,
    /// The local cache cannot take the data.
    CacheFull,
    /// This process has no descriptor left for a file of the cache.
    NoDescriptor,
    /// Larger than a file can be.
    TooBig,
    /// Too many symbolic links or mount points, or a directory moved below itself.
    Loop,
    /// Too many links.
    TooManyLinks,
    /// The location service does not know the volume, or Venus not the cell.
    NoVolume,
    /// All sites report the volume as off line.
    VolumeOffline,
    /// The volume stayed busy beyond the time limit.
    VolumeBusy,
    /// No server that has the object replied.
    ServerUnreachable,
    /// The process that waited for a server is being killed.
    Interrupted,
    /// Another owner holds a conflicting lock.
    WouldBlock,
    /// The owner of the lock waits for one that this process holds.
    Deadlock,
    /// No lock is available.
    NoLock,
    /// A lock on the file was lost: data written since the file was opened is not stored.
    LockLost,
    /// An operation that this file system does not support.
    NotSupported,
    /// No such property.
    NoProperty,
    /// The buffer for the result is too small, or the value too long.
    Range,
    /// Not an open handle, or not opened for this operation.
    BadHandle,
    /// I/O error of the local cache.
    Cache,
    /// A malformed reply of a server.
    Protocol,
    /// Venus is shutting down, or an earlier one with this cache has ended.
    ShutDown,
    /// The server returned a code that has an errno of its own.
    Refused(i32),
}

impl ErrorKind {
    /// The Linux errno that an application gets. No other function determines it.
    ///
    /// A missing volume is ENODEV and never ENOENT, or programs would create files anew
    /// (docs/protocol/client.md "11. Traps").
    pub fn errno(self) -> i32 {
        match self {
            ErrorKind::NotPermitted => 1,
            ErrorKind::NotFound => 2,
            ErrorKind::Interrupted => EINTR,
            ErrorKind::Cache | ErrorKind::LockLost => 5,
            ErrorKind::BadHandle => 9,
            ErrorKind::WouldBlock => 11,
            ErrorKind::AccessDenied | ErrorKind::TokenExpired => 13,
            ErrorKind::VolumeBusy => 16,
            ErrorKind::Exists => 17,
            ErrorKind::CrossDevice => 18,
            ErrorKind::NoVolume | ErrorKind::VolumeOffline => 19,
            ErrorKind::NotDirectory => 20,
            ErrorKind::NoDescriptor => 23,
            ErrorKind::IsDirectory => 21,
            ErrorKind::Invalid => 22,
            ErrorKind::Executed => 26,
            ErrorKind::TooBig => 27,
            ErrorKind::NoSpace | ErrorKind::CacheFull => 28,
            ErrorKind::ReadOnly => 30,
            ErrorKind::TooManyLinks => 31,
            ErrorKind::Range => 34,
            ErrorKind::NameTooLong => 36,
            ErrorKind::Deadlock => 35,
            ErrorKind::NoLock => 37,
            ErrorKind::NotEmpty => 39,
            ErrorKind::Loop => 40,
            ErrorKind::NoProperty => 61,
            ErrorKind::Protocol => 71,
            ErrorKind::NotSupported => 95,
            ErrorKind::ShutDown => 108,
            ErrorKind::ServerUnreachable => 110,
            ErrorKind::Stale => 116,
            ErrorKind::OverQuota => 122,
            ErrorKind::Refused(errno) => errno,
        }
    }

    /// The kind for a server's abort code, for an object that existed before.
    ///
    /// Codes of volumes and servers (VNOVOL, VBUSY, ...) reach this function only after the retry ladder has ended
    /// (docs/protocol/fileserver.md "9. Error codes").
    pub fn of_abort(code: AbortCode) -> ErrorKind {
        match code {
            AbortCode::VNOVNODE => ErrorKind::Stale,
            AbortCode::VNOVOL | AbortCode::VMOVED => ErrorKind::NoVolume,
            AbortCode::VOFFLINE | AbortCode::VSALVAGE => ErrorKind::VolumeOffline,
            AbortCode::VBUSY | AbortCode::VRESTARTING | AbortCode::VSALVAGING => ErrorKind::VolumeBusy,
            AbortCode::VDISKFULL => ErrorKind::NoSpace,
            AbortCode::VOVERQUOTA => ErrorKind::OverQuota,
            AbortCode::RXGEN_OPCODE => ErrorKind::NotSupported,
            other => match other.to_errno() {
                Some(errno) => ErrorKind::of_errno(errno),
                None => ErrorKind::Refused(EIO),
            },
        }
    }

    fn of_errno(errno: i32) -> ErrorKind {
        match errno {
            // With ENOSYS the kernel would never send that request again in the whole mount, for any server.
            ENOSYS => return ErrorKind::NotSupported,
            // Only the kernel may return these: programs would retry for ever, or consider the mount dead.
            EINTR | NOT_CONNECTED => return ErrorKind::Refused(EIO),
            _ => {}
        }
        const NAMED: [ErrorKind; 19] = [
            ErrorKind::NotPermitted,
            ErrorKind::NotFound,
            ErrorKind::WouldBlock,
            ErrorKind::AccessDenied,
            ErrorKind::Exists,
            ErrorKind::CrossDevice,
            ErrorKind::NotDirectory,
            ErrorKind::IsDirectory,
            ErrorKind::Invalid,
            ErrorKind::TooBig,
            ErrorKind::NoSpace,
            ErrorKind::ReadOnly,
            ErrorKind::TooManyLinks,
            ErrorKind::NameTooLong,
            ErrorKind::NotEmpty,
            ErrorKind::Loop,
            ErrorKind::ServerUnreachable,
            ErrorKind::Stale,
            ErrorKind::OverQuota,
        ];
        NAMED.into_iter().find(|kind| kind.errno() == errno).unwrap_or(ErrorKind::Refused(errno))
    }
}

const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENOSYS: i32 = 38;
const NOT_CONNECTED: i32 = 107;

/// An error: operation, object, cause, and the server concerned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VenusError {
    /// The cause.
    pub kind: ErrorKind,
    /// Name of the call or of the operation.
    pub operation: &'static str,
    /// The object, if known.
    pub fid: Option<Fid>,
    /// Name of the volume, if the error concerns the whole volume.
    pub volume: Option<std::sync::Arc<str>>,
    /// The server that replied or did not reply.
    pub server: Option<SocketAddr>,
    /// Abort code of the server.
    pub code: Option<AbortCode>,
}

impl VenusError {
    /// An error found locally, without a server.
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        VenusError { kind, operation, fid: None, volume: None, server: None, code: None }
    }

    /// Sets the object.
    pub fn of(mut self, fid: Fid) -> Self {
        self.fid = Some(fid);
        self
    }

    /// Sets the server.
    pub fn at(mut self, server: SocketAddr) -> Self {
        self.server = Some(server);
        self
    }

    /// The errno that an application gets.
    pub fn errno(&self) -> i32 {
        self.kind.errno()
    }
}

impl fmt::Display for VenusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        if let Some(fid) = self.fid {
            write!(f, " of {fid}")?;
        }
        if let Some(volume) = &self.volume {
            write!(f, " in volume {volume}")?;
        }
        write!(f, ": {}", self.kind)?;
        if let Some(server) = self.server {
            write!(f, ", server {server}")?;
        }
        if let Some(code) = self.code {
            write!(f, " answered {code}")?;
        }
        Ok(())
    }
}

impl std::error::Error for VenusError {}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            ErrorKind::NotFound => "no such name",
            ErrorKind::Stale => "the object is gone from the server",
            ErrorKind::Exists => "the name exists",
            ErrorKind::NotDirectory => "not a directory",
            ErrorKind::IsDirectory => "is a directory",
            ErrorKind::Executed => "a program that is running",
            ErrorKind::NotEmpty => "the directory is not empty",
            ErrorKind::AccessDenied => "access denied",
            ErrorKind::TokenExpired => "access denied, the token has expired or was removed",
            ErrorKind::NotPermitted => "not permitted",
            ErrorKind::Invalid => "invalid argument",
            ErrorKind::NameTooLong => "the name is longer than 255 bytes",
            ErrorKind::CrossDevice => "links and renames stay within one volume, links within one directory",
            ErrorKind::ReadOnly => "the volume is read-only",
            ErrorKind::OverQuota => "the volume's quota is used up",
            ErrorKind::NoSpace => "the server's partition is full",
            ErrorKind::CacheFull => "the local cache is full of unsaved data, or its disk is full",
            ErrorKind::NoDescriptor => "too many files are open in the mount",
            ErrorKind::TooBig => "too large",
            ErrorKind::Loop => "too many links to follow, or a directory below itself",
            ErrorKind::TooManyLinks => "too many links",
            ErrorKind::NoVolume => "no such volume or cell",
            ErrorKind::VolumeOffline => "the volume is off line",
            ErrorKind::VolumeBusy => "the volume stayed busy",
            ErrorKind::ServerUnreachable => "no answer",
            ErrorKind::Interrupted => "the process that waited is being killed",
            ErrorKind::WouldBlock => "locked by somebody else",
            ErrorKind::Deadlock => "its holder waits for a lock that this process holds",
            ErrorKind::NoLock => "no lock can be had",
            ErrorKind::LockLost => "a lock on the file was lost",
            ErrorKind::NotSupported => "not supported",
            ErrorKind::NoProperty => "no such property",
            ErrorKind::Range => "too long for the buffer",
            ErrorKind::BadHandle => "not an open file, or not opened for this",
            ErrorKind::Cache => "the local cache failed",
            ErrorKind::Protocol => "an answer that makes no sense",
            ErrorKind::ShutDown => "the mount is ending, or has ended",
            ErrorKind::Refused(errno) => return write!(f, "refused (errno {errno})"),
        };
        f.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_of_a_server_turns_a_call_of_the_kernel_off() {
        const UAE: i32 = 49_733_376;
        for code in (-1000..2000).chain(UAE..UAE + 600).chain([i32::MIN, i32::MAX]) {
            let errno = ErrorKind::of_abort(AbortCode(code)).errno();
            assert!((1..512).contains(&errno), "{code}: {errno}");
            assert!(![EINTR, ENOSYS, NOT_CONNECTED].contains(&errno), "{code}: {errno}");
        }
    }

    #[test]
    fn abort_codes_become_the_errno_the_field_knows() {
        let table = [
            (AbortCode::VNOVNODE, 116),
            (AbortCode::VNOVOL, 19),
            (AbortCode::VOFFLINE, 19),
            (AbortCode::VDISKFULL, 28),
            (AbortCode::VOVERQUOTA, 122),
            (AbortCode::VBUSY, 16),
            (AbortCode(30), 30),
            (AbortCode(49733376), 1),
            (AbortCode(49733377), 2),
            (AbortCode(49733388), 13),
            (AbortCode(49733392), 17),
            (AbortCode(49733393), 18),
            (AbortCode(49733415), 40),
            (AbortCode(987_654), 5),
        ];
        for (code, errno) in table {
            assert_eq!(ErrorKind::of_abort(code).errno(), errno, "{code:?}");
        }
    }
}
