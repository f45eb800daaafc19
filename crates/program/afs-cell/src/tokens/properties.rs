//! Client for properties of objects: the kernel resolves the path, and the mount that has the object is asked by inode number.
//!
//! So links, `..`, bind mounts and other mount namespaces lead where they lead every program, with the rights of this one. The object is
//! held open meanwhile: the kernel keeps it, and its number.

use super::client::{Mounts, PATH_PATIENCE, ask_within};
use super::messages::{TokenReply, TokenRequest};
use super::session::SessionId;
use crate::mounts;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::path::Path;

/// A property of what is at a path, following symbolic links ([`afs_venus::Venus::property`]).
///
/// # Errors
/// Those of the path and of the property, and: NOTSUP, it is in no mount of Andrew's; NOTCONN, the program of the mount has died;
/// CONNREFUSED, the mount is another user's; PROTO, it is of another version; AGAIN, it has no connection left.
pub fn get(path: &Path, name: impl AsRef<[u8]>) -> Result<Vec<u8>, Errno> {
    asked(&held(path, OFlags::empty())?, name.as_ref(), None)
}

/// As [`get`], of a symbolic link itself.
///
/// # Errors
/// As [`get`].
pub fn get_of_link(path: &Path, name: impl AsRef<[u8]>) -> Result<Vec<u8>, Errno> {
    asked(&held(path, OFlags::NOFOLLOW)?, name.as_ref(), None)
}

/// Sets a property of what is at a path, following symbolic links.
///
/// # Errors
/// As [`get`].
pub fn set(path: &Path, name: impl AsRef<[u8]>, value: &[u8]) -> Result<(), Errno> {
    asked(&held(path, OFlags::empty())?, name.as_ref(), Some(value.to_vec())).map(drop)
}

/// An object, so that the kernel keeps it. The mount is not told, so that nothing is opened there.
fn held(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    open(path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())
}

fn asked(held: &OwnedFd, name: &[u8], value: Option<Vec<u8>>) -> Result<Vec<u8>, Errno> {
    // Numbers that the kernel has: the mount's servers may be away.
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let seen = statx(held, c"", flags, StatxFlags::INO)?;
    let device = format!("{}:{}", seen.stx_dev_major, seen.stx_dev_minor);
    let mounts = mounts::list().map_err(|_| Errno::NOTSUP)?;
    let mount = mounts.iter().rev().find(|mount| mount.device == device).ok_or(Errno::NOTSUP)?;
    // Outside of all sessions if the variable has no valid value, as the mount has it of other programs.
    let session = SessionId::current().ok().flatten();
    let request = TokenRequest::Property { session, inode: seen.stx_ino, name: name.to_vec(), value };
    let running = Mounts::running();
    let reply = match running.socket_of(&device) {
        Some(socket) => ask_within(socket, &request, PATH_PATIENCE),
        None => Ok(None),
    };
    match reply {
        Ok(Some(reply)) => of_reply(reply),
        Ok(None) | Err(_) if mounts::is_dead(&mount.directory) => Err(Errno::NOTCONN),
        Ok(None) => Err(Errno::CONNREFUSED),
        Err(error) => Err(of_failure(&error)),
    }
}

fn of_reply(reply: TokenReply) -> Result<Vec<u8>, Errno> {
    match reply {
        TokenReply::Value(value) => Ok(value),
        TokenReply::Done => Ok(Vec::new()),
        TokenReply::Errno(error) => Err(Errno::from_raw_os_error(error)),
        // The mount knows no other refusal of this request.
        TokenReply::Refused(_) => Err(Errno::AGAIN),
        _ => Err(Errno::PROTO),
    }
}

fn of_failure(error: &io::Error) -> Errno {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Errno::TIMEDOUT,
        // A mount that does not know the request closes the connection.
        _ => Errno::PROTO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_of_all_mounts_has_no_properties() {
        assert_eq!(get(Path::new("/proc/self/status"), "afs.fid"), Err(Errno::NOTSUP));
        assert_eq!(set(Path::new("/"), "afs.flush", b""), Err(Errno::NOTSUP));
        assert_eq!(get(Path::new("/no/such"), "afs.fid"), Err(Errno::NOENT));
    }

    #[test]
    fn each_reply_is_a_value_or_an_error_of_the_system() {
        assert_eq!(of_reply(TokenReply::Value(b"7.1.1".to_vec())), Ok(b"7.1.1".to_vec()));
        assert_eq!(of_reply(TokenReply::Done), Ok(Vec::new()));
        assert_eq!(of_reply(TokenReply::Errno(13)), Err(Errno::ACCESS));
        assert_eq!(of_reply(TokenReply::Refused("too many".into())), Err(Errno::AGAIN));
        assert_eq!(of_reply(TokenReply::Cells(Vec::new())), Err(Errno::PROTO));
        assert_eq!(of_failure(&ErrorKind::WouldBlock.into()), Errno::TIMEDOUT);
        assert_eq!(of_failure(&ErrorKind::UnexpectedEof.into()), Errno::PROTO);
    }
}
