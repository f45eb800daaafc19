//! What the making good of one lost lease has in hand: the lease, data that the server has not taken, and copies of directories.

use std::sync::Arc;

use afs_wire::ids::{DataVersion, FileTime};
use bytes::Bytes;

use super::looks::Looks;
use crate::identity::User;
use crate::leases::Lease;
use crate::vnode::Vnode;

/// Data that the server did not take for a file that is there: kept, and stored as that of any file.
pub(in crate::venus::leasing) struct Unstored {
    pub(super) vnode: Arc<Vnode>,
    pub(super) user: User,
    pub(super) version: DataVersion,
    pub(super) data: Bytes,
    pub(super) time: Option<FileTime>,
}

/// The making good of a lost lease.
pub(super) struct Loss<'a> {
    pub lease: &'a Arc<Lease>,
    pub unstored: &'a mut Vec<Unstored>,
    pub looks: Looks,
}
