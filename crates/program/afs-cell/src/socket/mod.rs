//! Unix-domain sockets with paths of any length, and a server and a client of framed requests over them.

mod connections;
pub(crate) mod frame;
mod request;
mod server;

pub(crate) use connections::Limits;
pub(crate) use request::{ReplyFrame, RequestFrame, ask};
pub(crate) use server::{Audience, Settings, SocketServer};

use rustix::fs::{Mode, OFlags, open};
use std::ffi::OsStr;
use std::fs::{Permissions, set_permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Listens at a socket that only its owner may connect to.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let (_held, short) = short(path)?;
    // Connections are also checked one by one, so that the time before the mode is set does no harm.
    let listener = UnixListener::bind(short)?;
    set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to a socket.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_held, short) = short(path)?;
    UnixStream::connect(short)
}

/// A short name for a path: socket addresses hold 108 bytes, and a directory's descriptor makes any path short. The
/// descriptor has to stay open while the name is used.
fn short(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let parent = path.parent().filter(|p| *p != OsStr::new("")).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok((directory, short))
}

/// The process that connected, or that listens, as the kernel names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    /// Its user.
    pub(crate) uid: u32,
    /// Its number. It may have ended since, and the number be another's.
    pub(crate) pid: u32,
}

pub(crate) fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(Peer { uid: peer.uid.as_raw(), pid: peer.pid.as_raw_nonzero().get().unsigned_abs() })
}
