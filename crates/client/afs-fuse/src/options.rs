//! Options of a mount.

use crate::accounts::Accounts;
use crate::inodes::Inodes;
use afs_wire::ids::ViceId;
use std::sync::Arc;

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Source in the kernel's mount table: the cell's name.
    pub source: String,
    /// Other users of this machine may use the mount. Default no: the kernel admits only the user who mounted. An
    /// ordinary user also needs `user_allow_other` in /etc/fuse.conf.
    pub allow_other: bool,
    /// The kernel may read and write complete cache files itself. Default yes; if the kernel refuses it, the mount
    /// works without.
    pub passthrough: bool,
    /// The cache is on a stacked file system such as overlayfs: the kernel has to know that this mount is one level
    /// deeper. Default no.
    pub cache_is_stacked: bool,
    /// A user of the cell that is shown as the user who mounted, if `accounts` is not given. Default none.
    pub owner: Option<Owner>,
    /// Map of the users of the cell. Default: [`NumericAccounts`](crate::accounts::NumericAccounts).
    pub accounts: Option<Arc<dyn Accounts>>,
    /// The table of inode numbers of this one mount, for who is to find nodes by them. Default: an empty one.
    pub inodes: Arc<Inodes>,
}

/// A Vice id that is shown as a user of this machine, in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Owner of files at the servers.
    pub vice: ViceId,
    /// User id shown.
    pub uid: u32,
    /// Group id shown.
    pub gid: u32,
}

impl MountOptions {
    /// The defaults, for a cell with this name.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            allow_other: false,
            passthrough: true,
            cache_is_stacked: false,
            owner: None,
            accounts: None,
            inodes: Arc::default(),
        }
    }
}
