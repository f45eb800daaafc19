//! Requests of fallocate(2), and of lseek(2) for holes.

use crate::convert::errno;
use crate::ops::Mount;
use crate::ops::names::done;
use afs_venus::{Allocate, HandleId, Seek};
use fuser::{Errno, INodeNo, ReplyEmpty, ReplyLseek};

impl Mount {
    pub(crate) async fn fallocate(
        &self,
        ino: INodeNo,
        handle: HandleId,
        (pos, len): (u64, u64),
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some(how) = allocation(mode) else { return reply.error(Errno::EOPNOTSUPP) };
        let outcome = self.venus.allocate(handle, how, pos, len).await;
        self.after_change(ino);
        done(outcome, reply);
    }

    pub(crate) async fn lseek(
        &self,
        ino: INodeNo,
        handle: HandleId,
        from: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let wanted = match whence {
            libc::SEEK_DATA => Seek::Data,
            libc::SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(from) = u64::try_from(from) else { return reply.error(Errno::ENXIO) };
        self.have_mappings_written(ino, handle).await;
        match self.venus.seek(handle, from, wanted).await {
            Ok(found) => match found.and_then(|found| i64::try_from(found).ok()) {
                Some(found) => reply.offset(found),
                None => reply.error(Errno::ENXIO),
            },
            Err(error) => reply.error(errno(&error)),
        }
    }

    /// Has the kernel write the pages that a program changed through a mapping: until then only the kernel knows that
    /// there is data in a hole, and a copy made by the result of lseek would lack it. The kernel writes pages before it
    /// drops them.
    async fn have_mappings_written(&self, ino: INodeNo, handle: HandleId) {
        if let Some(node) = self.inodes.node(ino).filter(|_| self.venus.is_written(handle)) {
            self.sink.invalidate_pages(node).await;
        }
    }
}

/// The request that a mode of fallocate(2) makes, if AFS can do it. Space cannot be reserved, so a mode that does only
/// that is refused.
fn allocation(mode: i32) -> Option<Allocate> {
    const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
    match mode & !KEEP {
        0 if mode & KEEP == 0 => Some(Allocate::Extend),
        libc::FALLOC_FL_PUNCH_HOLE => Some(Allocate::Zero { keep_length: true }),
        libc::FALLOC_FL_ZERO_RANGE => Some(Allocate::Zero { keep_length: mode & KEEP != 0 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_supported_modes_of_fallocate() {
        let (keep, punch, zero) =
            (libc::FALLOC_FL_KEEP_SIZE, libc::FALLOC_FL_PUNCH_HOLE, libc::FALLOC_FL_ZERO_RANGE);
        assert_eq!(allocation(0), Some(Allocate::Extend));
        assert_eq!(allocation(punch | keep), Some(Allocate::Zero { keep_length: true }));
        assert_eq!(allocation(zero), Some(Allocate::Zero { keep_length: false }));
        assert_eq!(allocation(zero | keep), Some(Allocate::Zero { keep_length: true }));
        for mode in [keep, libc::FALLOC_FL_COLLAPSE_RANGE, libc::FALLOC_FL_INSERT_RANGE, punch | zero] {
            assert_eq!(allocation(mode), None, "{mode}");
        }
    }
}
