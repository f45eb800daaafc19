//! The kernel's ear: notifications on the mount's FUSE descriptor.

use crate::inodes::Inodes;
use crate::names::Tell;
use crate::negative::Negatives;
use crate::passthrough::Passthrough;
use fuser::{INodeNo, Notifier};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// What is known of the kernel's side of a mount.
pub(crate) struct Kernel {
    pub(crate) notifier: Notifier,
    /// The same descriptor, for what the binding cannot say.
    pub(crate) device: OwnedFd,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) negatives: Arc<Negatives>,
    pub(crate) passthrough: Arc<Passthrough>,
}

/// Number of FUSE_NOTIFY_INC_EPOCH in the kernel's interface (7.44, Linux 6.16).
const INC_EPOCH: i32 = 8;

impl Kernel {
    /// Takes attributes back. A negative offset leaves the pages alone.
    pub(crate) fn attributes(&self, ino: INodeNo) {
        if let Err(error) = self.notifier.inval_inode(ino, -1, 0) {
            tracing::debug!("the kernel did not take back attributes of {}: {error}", ino.0);
        }
    }

    /// Takes pages back. Waits for reads that are under way.
    pub(crate) fn pages(&self, ino: INodeNo) {
        self.passthrough.stale(ino);
        if let Err(error) = self.notifier.inval_inode(ino, 0, 0) {
            tracing::debug!("the kernel did not take back pages of {}: {error}", ino.0);
        }
    }
}

impl Tell for Kernel {
    fn forget(&self, directory: INodeNo, name: &[u8]) {
        // ENOTEMPTY and EBUSY: a mount point or working directory of somebody; it is looked up anew all the same.
        if let Err(error) = self.notifier.inval_entry(directory, OsStr::from_bytes(name)) {
            tracing::debug!("the kernel did not take back a name of {}: {error}", directory.0);
        }
    }

    fn doubt_all(&self) {
        // A notification without a body: its length, the code in the place of an error, no request number.
        let mut message = [0; 16];
        message[..4].copy_from_slice(&16u32.to_ne_bytes());
        message[4..8].copy_from_slice(&INC_EPOCH.to_ne_bytes());
        if let Err(error) = rustix::io::write(&self.device, &message) {
            tracing::debug!("the kernel cannot doubt all names: {error}");
        }
    }
}
