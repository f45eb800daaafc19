//! Conversion between the types of Venus and those of the FUSE binding.

use crate::accounts::{Account, shown_group};
use afs_venus::{Attr, Kind, NewTime, NodeId, OpenFlags, VenusError};
use afs_wire::ids::{FileTime, UnixSeconds};
use fuser::{Errno, FileAttr, FileType, INodeNo, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may keep names and attributes: until it is notified. The kernel takes any duration as long as
/// this as unlimited.
pub(crate) const FOREVER: Duration = Duration::from_secs(1 << 40);

/// Bytes that `st_blksize` advises for reads and writes.
const PREFERRED_IO_BYTES: u32 = 64 * 1024;

/// The errno of a failed operation. Logs errors that are not the fault of the request.
pub(crate) fn errno(error: &VenusError) -> Errno {
    let errno = error.errno();
    if matches!(errno, libc::EIO | libc::ETIMEDOUT | libc::EPROTO | libc::ENODEV) {
        tracing::warn!("{error}");
    } else {
        tracing::debug!("{error}");
    }
    Errno::from_i32(errno)
}

/// The kernel's file type of a kind.
pub(crate) fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
    }
}

/// Attributes in the kernel's form, under the inode number `ino`.
pub(crate) fn attributes(attr: &Attr, ino: INodeNo, owner: Account) -> FileAttr {
    let mtime = time(attr.mtime);
    FileAttr {
        ino,
        size: attr.size,
        blocks: attr.data_bytes.div_ceil(512),
        // AFS keeps no time of last access (docs/protocol/client.md "2. Name space: /afs").
        atime: mtime,
        mtime,
        ctime: time(attr.ctime),
        crtime: UNIX_EPOCH,
        kind: file_type(attr.kind),
        perm: (attr.mode.0 & 0o7777) as u16,
        nlink: attr.nlink,
        uid: owner.uid,
        gid: shown_group(attr.group, owner),
        rdev: 0,
        blksize: PREFERRED_IO_BYTES,
        flags: 0,
    }
}

/// Attributes of an entry in a listing of which only name, kind and number are known.
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

fn time(time: FileTime) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(time.as_nanos())
}

/// A time to set. AFS-3 times have 32 bits of seconds; a time outside of their range becomes the nearest one.
pub(crate) fn new_time(time: TimeOrNow) -> NewTime {
    match time {
        TimeOrNow::Now => NewTime::Now,
        TimeOrNow::SpecificTime(time) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            let last = || FileTime::new(UnixSeconds(u32::MAX), 0);
            NewTime::At(
                u64::try_from(since.as_nanos()).ok().and_then(FileTime::from_nanos).unwrap_or_else(last),
            )
        }
    }
}

/// The kernel's own flag of an open by execve(2).
const FMODE_EXEC: i32 = 0x20;

/// The kernel's open flags in the form of Venus.
pub(crate) fn open_flags(flags: i32, passthrough: bool) -> OpenFlags {
    let mode = flags & libc::O_ACCMODE;
    OpenFlags {
        read: mode != libc::O_WRONLY,
        write: mode == libc::O_WRONLY || mode == libc::O_RDWR,
        append: flags & libc::O_APPEND != 0,
        truncate: flags & libc::O_TRUNC != 0,
        passthrough,
        execute: flags & FMODE_EXEC != 0,
    }
}

/// Whether each write is to be durable when it returns: an open with O_SYNC or O_DSYNC for writing, or the flags of such a write.
pub(crate) fn writes_durably(flags: i32) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY && flags & libc::O_DSYNC != 0
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
        let durable =
            [libc::O_RDWR | libc::O_DSYNC, libc::O_WRONLY | libc::O_SYNC, libc::O_RDONLY | libc::O_SYNC];
        assert_eq!(durable.map(writes_durably), [true, true, false]);
        let flags = open_flags(libc::O_RDONLY, false);
        assert_eq!((flags.read, flags.write, flags.append, flags.passthrough), (true, false, false, false));
        let executed =
            [libc::O_RDONLY, libc::O_RDONLY | FMODE_EXEC].map(|flags| open_flags(flags, false).execute);
        assert_eq!(executed, [false, true]);
    }

    #[test]
    fn times_outside_32_bits_are_the_nearest_ones() {
        let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
        assert_eq!(new_time(TimeOrNow::SpecificTime(far)), NewTime::At(UnixSeconds(u32::MAX).into()));
        let before = UNIX_EPOCH - Duration::from_secs(9);
        assert_eq!(new_time(TimeOrNow::SpecificTime(before)), NewTime::At(FileTime::default()));
        let fine = UNIX_EPOCH + Duration::new(7, 30_000_000);
        assert_eq!(time(FileTime::new(UnixSeconds(7), 30_000_000)), fine);
        assert_eq!(
            new_time(TimeOrNow::SpecificTime(fine)),
            NewTime::At(FileTime::new(UnixSeconds(7), 30_000_000))
        );
    }
}
