//! Notifications to the kernel on the mount's FUSE descriptor.

use crate::inodes::Inodes;
use crate::lengths::Lengths;
use crate::name_queue::NameInvalidation;
use crate::negative_entries::NegativeEntries;
use crate::passthrough::Passthrough;
use afs_venus::{NodeId, Venus};
use fuser::{INodeNo, Notifier};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The kernel's side of a mount: its descriptor, and what the kernel holds.
pub(crate) struct Kernel {
    pub(crate) venus: Weak<Venus>,
    pub(crate) notifier: Notifier,
    /// The same descriptor, for notifications that the binding does not have.
    pub(crate) device: OwnedFd,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) lengths: Arc<Lengths>,
    pub(crate) negatives: Arc<NegativeEntries>,
    pub(crate) passthrough: Arc<Passthrough>,
}

/// Number of FUSE_NOTIFY_INVAL_INODE in the kernel's interface.
const INVAL_INODE: i32 = 2;
/// Number of FUSE_NOTIFY_INVAL_ENTRY in the kernel's interface, which drops a name, and its flag FUSE_EXPIRE_ONLY (7.38, Linux 6.2; older ones do not read it).
const INVAL_ENTRY: i32 = 3;
const EXPIRE_ONLY: u32 = 1;
/// Number of FUSE_NOTIFY_INC_EPOCH in the kernel's interface (7.44, Linux 6.16).
const INC_EPOCH: i32 = 8;

impl Kernel {
    /// Invalidates the attributes of an inode. Returns whether that was too early: the kernel does not know the inode,
    /// although it was handed out.
    pub(crate) fn invalidate_attributes(&self, ino: INodeNo, node: NodeId) -> bool {
        match self.lengths.notify(node, || self.notify_attributes(ino), || self.lookups(node) > 0) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.inodes.is_handed_out(ino, node, self.lookups(node))
            }
            Err(error) => {
                tracing::debug!("the kernel did not take back attributes of {}: {error}", ino.0);
                false
            }
        }
    }

    /// Whether a name led to a directory when it was last looked up. It is not dropped, but looked up at its next use: dropped, it would no
    /// longer be the working directory of its processes, and nothing would be mounted on it, whatever the look-up says. What this takes
    /// is in [`crate::renewals`].
    fn is_directory(&self, directory: INodeNo, name: &[u8]) -> bool {
        let (Some(venus), Some(node)) = (self.venus.upgrade(), self.inodes.node(directory)) else {
            return false;
        };
        venus.node_handed_out(node, name).is_some_and(|node| venus.is_directory(node))
    }

    fn lookups(&self, node: NodeId) -> u64 {
        self.venus.upgrade().map_or(0, |venus| venus.lookups(node))
    }

    /// Sends the notification itself, since the binding's method hides that an inode is not known. A negative offset
    /// leaves the pages alone.
    fn notify_attributes(&self, ino: INodeNo) -> io::Result<()> {
        let mut body = [0; 24];
        body[..8].copy_from_slice(&ino.0.to_ne_bytes());
        body[8..16].copy_from_slice(&(-1i64).to_ne_bytes());
        self.notify(INVAL_INODE, &body)
    }

    /// Writes a notification: its length, the code in place of an error, no request number, the body.
    fn notify(&self, code: i32, body: &[u8]) -> io::Result<()> {
        let length = 16 + body.len() as u32;
        let head = [length.to_ne_bytes(), code.to_ne_bytes(), [0; 4], [0; 4]];
        let message = [head.as_flattened(), body].concat();
        rustix::io::write(&self.device, &message)?;
        Ok(())
    }

    /// Invalidates the pages of an inode. Waits for reads in progress.
    pub(crate) fn invalidate_pages(&self, ino: INodeNo, node: NodeId) {
        self.passthrough.stale(ino);
        let write = || self.notifier.inval_inode(ino, 0, 0);
        if let Err(error) = self.lengths.notify(node, write, || self.lookups(node) > 0) {
            tracing::debug!("the kernel did not take back pages of {}: {error}", ino.0);
        }
    }
}

impl NameInvalidation for Kernel {
    fn invalidate(&self, directory: INodeNo, name: &[u8]) {
        let flags = if self.is_directory(directory, name) { EXPIRE_ONLY } else { 0 };
        match self.notify(INVAL_ENTRY, &body_of_name(directory, name, flags)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::debug!("the kernel did not take back a name of {}: {error}", directory.0);
            }
            _ => {}
        }
    }

    fn revalidate_all(&self) -> bool {
        let done = self.notify(INC_EPOCH, &[]);
        if let Err(error) = &done {
            tracing::debug!("the kernel cannot doubt all names: {error}");
        }
        done.is_ok()
    }
}

/// The body of a notification that a name is no longer valid.
fn body_of_name(directory: INodeNo, name: &[u8], flags: u32) -> Vec<u8> {
    let mut body = Vec::with_capacity(17 + name.len());
    body.extend(directory.0.to_ne_bytes());
    body.extend((name.len() as u32).to_ne_bytes());
    body.extend(flags.to_ne_bytes());
    body.extend(name);
    body.push(0);
    body
}
