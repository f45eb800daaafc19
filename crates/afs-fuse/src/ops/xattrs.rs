//! Requests for extended attributes `afs.*`, through which tools reach the cache manager.

use crate::convert::errno;
use crate::ops::Operation;
use crate::ops::names::done;
use fuser::{Errno, INodeNo, ReplyEmpty, ReplyXattr};

/// Prefix of the names served here. Others fail at once: the kernel often asks for `security.*`.
const OURS: &[u8] = b"afs.";

impl Operation {
    pub(crate) async fn getxattr(&self, ino: INodeNo, name: &[u8], size: u32, reply: ReplyXattr) {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        if !name.starts_with(OURS) {
            return reply.error(Errno::ENODATA);
        }
        match self.venus.getxattr(node, name).await {
            Ok(value) => sized(&value, size, reply),
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn listxattr(&self, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        match self.venus.listxattr(node).await {
            Ok(names) => {
                let list: Vec<u8> =
                    names.into_iter().flat_map(|n| n.into_bytes().into_iter().chain([0])).collect();
                sized(&list, size, reply);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    pub(crate) async fn setxattr(&self, ino: INodeNo, name: &[u8], value: &[u8], reply: ReplyEmpty) {
        let _entered = self.sink.enter(ino);
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(error) => return reply.error(error),
        };
        if !name.starts_with(OURS) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        done(self.venus.setxattr(node, name, value).await, reply);
    }
}

/// Replies the length if no size was given, otherwise the value if it fits.
fn sized(value: &[u8], size: u32, reply: ReplyXattr) {
    match (u32::try_from(value.len()), size) {
        (Ok(length), 0) => reply.size(length),
        (Ok(length), room) if length <= room => reply.data(value),
        _ => reply.error(Errno::ERANGE),
    }
}
