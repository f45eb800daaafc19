//! Venus' nouns as FUSE's, and back.

use crate::options::Owner;
use afs_venus::{Attr, Kind, NewTime, NodeId, OpenFlags, SetAttr, VenusError};
use afs_wire::ids::{Mode, UnixSeconds, ViceId};
use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may keep names and attributes: until told otherwise. The kernel turns anything
/// this large into its own idea of forever.
pub(crate) const FOREVER: Duration = Duration::from_secs(1 << 40);

/// Bytes that `st_blksize` advises for reads and writes.
const PREFERRED_IO_BYTES: u32 = 64 * 1024;

/// The errno of a failed operation, logged where it tells of trouble rather than of a wrong request.
pub(crate) fn errno(error: &VenusError) -> Errno {
    let errno = error.errno();
    if matches!(errno, libc::EIO | libc::ETIMEDOUT | libc::EPROTO | libc::ENODEV) {
        tracing::warn!("{error}");
    } else {
        tracing::debug!("{error}");
    }
    Errno::from_i32(errno)
}

/// Venus' kind as the kernel's.
pub(crate) fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
    }
}

/// Attributes as the kernel takes them, under the inode number `ino`.
pub(crate) fn attributes(attr: &Attr, ino: INodeNo, owner: Option<Owner>) -> FileAttr {
    let mtime = time(attr.mtime);
    let mine = owner.filter(|o| o.vice == attr.owner);
    FileAttr {
        ino,
        size: attr.size,
        blocks: attr.size.div_ceil(512),
        // AFS keeps no time of last access (docs/protocol/client.md "2. Name space: /afs").
        atime: mtime,
        mtime,
        ctime: time(attr.ctime),
        crtime: UNIX_EPOCH,
        kind: file_type(attr.kind),
        perm: (attr.mode.0 & 0o7777) as u16,
        nlink: attr.nlink,
        uid: mine.map_or(attr.owner.0 as u32, |o| o.uid),
        gid: mine.map_or(attr.group, |o| o.gid),
        rdev: 0,
        blksize: PREFERRED_IO_BYTES,
        flags: 0,
    }
}

/// Attributes of something of which only name, kind and number are known, for a listing.
pub(crate) fn placeholder(kind: Option<Kind>, ino: INodeNo) -> FileAttr {
    FileAttr {
        ino,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: file_type(kind.unwrap_or(Kind::File)),
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: PREFERRED_IO_BYTES,
        flags: 0,
    }
}

fn time(seconds: UnixSeconds) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::from(seconds.0))
}

/// A time to set. AFS-3 times are 32 bits of seconds: outside them the nearest one is taken.
fn new_time(time: TimeOrNow) -> NewTime {
    match time {
        TimeOrNow::Now => NewTime::Now,
        TimeOrNow::SpecificTime(time) => {
            let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            NewTime::At(UnixSeconds(u32::try_from(seconds).unwrap_or(u32::MAX)))
        }
    }
}

/// The attributes a SETATTR request asks to change. Times of access are not kept and so not set.
pub(crate) fn changes(
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    size: Option<u64>,
    mtime: Option<TimeOrNow>,
    owner: Option<Owner>,
) -> SetAttr {
    // Giving a file to whom it already seems to belong, as `tar` and `cp -p` do, asks nothing.
    let mine = |id: u32, pick: fn(&Owner) -> u32| owner.is_some_and(|o| pick(&o) == id);
    SetAttr {
        mode: mode.map(|m| Mode(m & 0o7777)),
        owner: uid.filter(|uid| !mine(*uid, |o| o.uid)).map(|uid| ViceId(uid as i32)),
        group: gid.filter(|gid| !mine(*gid, |o| o.gid)),
        size,
        mtime: mtime.map(new_time),
    }
}

/// Open flags of the kernel as those of Venus.
pub(crate) fn open_flags(flags: i32, passthrough: bool) -> OpenFlags {
    let mode = flags & libc::O_ACCMODE;
    OpenFlags {
        read: mode != libc::O_WRONLY,
        write: mode == libc::O_WRONLY || mode == libc::O_RDWR,
        append: flags & libc::O_APPEND != 0,
        truncate: flags & libc::O_TRUNC != 0,
        passthrough,
    }
}

/// A node's own inode number.
pub(crate) fn ino(node: NodeId) -> INodeNo {
    INodeNo(node.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_flags_keep_their_meaning() {
        let flags = open_flags(libc::O_WRONLY | libc::O_APPEND | libc::O_TRUNC, true);
        assert_eq!((flags.read, flags.write, flags.append, flags.truncate), (false, true, true, true));
        let flags = open_flags(libc::O_RDONLY, false);
        assert_eq!((flags.read, flags.write, flags.append, flags.passthrough), (true, false, false, false));
    }

    #[test]
    fn times_outside_32_bits_are_the_nearest_ones() {
        let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(new_time(TimeOrNow::SpecificTime(far)), NewTime::At(UnixSeconds(u32::MAX)));
        let before = UNIX_EPOCH - Duration::from_secs(9);
        assert_eq!(new_time(TimeOrNow::SpecificTime(before)), NewTime::At(UnixSeconds(0)));
    }

    #[test]
    fn giving_a_file_to_its_owner_asks_nothing() {
        let owner = Owner { vice: ViceId(1), uid: 1000, gid: 100 };
        let change = changes(None, Some(1000), Some(100), None, None, Some(owner));
        assert_eq!(change, SetAttr::default());
        let change = changes(None, Some(7), None, None, None, Some(owner));
        assert_eq!(change.owner, Some(ViceId(7)));
    }
}
