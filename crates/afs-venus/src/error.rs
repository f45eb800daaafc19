//! What can go wrong, and the one table from it to errno.

use std::fmt;
use std::net::SocketAddr;

use afs_wire::error::AbortCode;
use afs_wire::ids::Fid;

/// The result of an operation of Venus.
pub type Result<T> = std::result::Result<T, VenusError>;

/// What kind of failure it was. The number which an application sees follows from it alone ([`ErrorKind::errno`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such name.
    NotFound,
    /// The object is gone from the server, though its name may still be held.
    Stale,
    /// The name exists.
    Exists,
    /// A directory was needed.
    NotDirectory,
    /// Something else than a directory was needed.
    IsDirectory,
    /// The directory still has entries.
    NotEmpty,
    /// The access list, or the owner's mode bits, do not allow it.
    AccessDenied,
    /// Likewise, for one whose token has expired: it will be possible again when he has logged in.
    TokenExpired,
    /// Only for the owner or an administrator.
    NotPermitted,
    /// The request makes no sense.
    Invalid,
    /// A name longer than 255 bytes.
    NameTooLong,
    /// A link or rename between two volumes, or a link between two directories.
    CrossDevice,
    /// A read-only volume, or the synthetic root.
    ReadOnly,
    /// The volume's quota is used up.
    OverQuota,
    /// The server's partition is full.
    NoSpace,
    /// The local cache cannot take the data.
    CacheFull,
    /// Larger than can be.
    TooBig,
    /// Too many symbolic links or mount points, or a directory moved below itself.
    Loop,
    /// Too many links.
    TooManyLinks,
    /// The location service does not know the volume or the cell.
    NoVolume,
    /// All sites of the volume say that it is off line.
    VolumeOffline,
    /// The volume stayed busy for longer than we wait.
    VolumeBusy,
    /// No server that could answer did.
    ServerUnreachable,
    /// The process that waited for a server is being killed.
    Interrupted,
    /// Somebody else holds a lock in the way.
    WouldBlock,
    /// No lock can be had.
    NoLock,
    /// A lock on the file was lost: what was written since it was opened is not stored any more.
    LockLost,
    /// Not a thing this file system does.
    NotSupported,
    /// No such extended attribute.
    NoAttribute,
    /// The buffer for the answer is too small, or the value too long.
    Range,
    /// Not a handle, or not one opened for this.
    BadHandle,
    /// The local cache failed.
    Cache,
    /// A server sent what makes no sense.
    Protocol,
    /// The operation was ended, because Venus shuts down.
    ShutDown,
    /// The server refused with a code that has an errno of its own.
    Refused(i32),
}

impl ErrorKind {
    /// The Linux errno an application sees. This is the only place where it is decided.
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
            ErrorKind::IsDirectory => 21,
            ErrorKind::Invalid => 22,
            ErrorKind::TooBig => 27,
            ErrorKind::NoSpace | ErrorKind::CacheFull => 28,
            ErrorKind::ReadOnly => 30,
            ErrorKind::TooManyLinks => 31,
            ErrorKind::Range => 34,
            ErrorKind::NameTooLong => 36,
            ErrorKind::NoLock => 37,
            ErrorKind::NotEmpty => 39,
            ErrorKind::Loop => 40,
            ErrorKind::NoAttribute => 61,
            ErrorKind::Protocol => 71,
            ErrorKind::NotSupported => 95,
            ErrorKind::ShutDown => 108,
            ErrorKind::ServerUnreachable => 110,
            ErrorKind::Stale => 116,
            ErrorKind::OverQuota => 122,
            ErrorKind::Refused(errno) => errno,
        }
    }

    /// The kind behind a server's abort, for an object that had been there.
    ///
    /// Codes of volumes and servers (VNOVOL, VBUSY, ...) come here only after the retry ladder has given up on them
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
            // The kernel would never make that call again in the whole mount, for whichever server.
            ENOSYS => return ErrorKind::NotSupported,
            // Only the kernel can say these: programs would try for ever, or take the mount for dead.
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

/// A failure: what was tried, on what, why it failed, and whose answer (or silence) it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VenusError {
    /// Why.
    pub kind: ErrorKind,
    /// What was tried: the name of the call or of the operation.
    pub operation: &'static str,
    /// On what, where it is known.
    pub fid: Option<Fid>,
    /// The name of its volume, where that is what stands in the way.
    pub volume: Option<std::sync::Arc<str>>,
    /// The server whose answer or silence this is.
    pub server: Option<SocketAddr>,
    /// The server's own code.
    pub code: Option<AbortCode>,
}

impl VenusError {
    /// A failure found here, without a server.
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        VenusError { kind, operation, fid: None, volume: None, server: None, code: None }
    }

    /// The same, of this object.
    pub fn of(mut self, fid: Fid) -> Self {
        self.fid = Some(fid);
        self
    }

    /// The same, from or about this server.
    pub fn at(mut self, server: SocketAddr) -> Self {
        self.server = Some(server);
        self
    }

    /// What an application sees.
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
            ErrorKind::NotEmpty => "the directory is not empty",
            ErrorKind::AccessDenied => "access denied",
            ErrorKind::TokenExpired => "access denied, the token has expired",
            ErrorKind::NotPermitted => "not permitted",
            ErrorKind::Invalid => "invalid argument",
            ErrorKind::NameTooLong => "the name is longer than 255 bytes",
            ErrorKind::CrossDevice => "links and renames stay within one volume, links within one directory",
            ErrorKind::ReadOnly => "the volume is read-only",
            ErrorKind::OverQuota => "the volume's quota is used up",
            ErrorKind::NoSpace => "the server's partition is full",
            ErrorKind::CacheFull => "the local cache is full of unsaved data",
            ErrorKind::TooBig => "too large",
            ErrorKind::Loop => "too many links to follow, or a directory below itself",
            ErrorKind::TooManyLinks => "too many links",
            ErrorKind::NoVolume => "no such volume or cell",
            ErrorKind::VolumeOffline => "the volume is off line",
            ErrorKind::VolumeBusy => "the volume stayed busy",
            ErrorKind::ServerUnreachable => "no answer",
            ErrorKind::Interrupted => "the process that waited is being killed",
            ErrorKind::WouldBlock => "locked by somebody else",
            ErrorKind::NoLock => "no lock can be had",
            ErrorKind::LockLost => "a lock on the file was lost",
            ErrorKind::NotSupported => "not supported",
            ErrorKind::NoAttribute => "no such attribute",
            ErrorKind::Range => "too long for the buffer",
            ErrorKind::BadHandle => "not an open file, or not opened for this",
            ErrorKind::Cache => "the local cache failed",
            ErrorKind::Protocol => "an answer that makes no sense",
            ErrorKind::ShutDown => "the cache manager is shutting down",
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
