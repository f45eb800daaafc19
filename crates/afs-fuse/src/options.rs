//! How a mount behaves.

use crate::accounts::Accounts;
use afs_wire::ids::ViceId;
use std::sync::Arc;

/// How a mount behaves.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// What the kernel's mount table shows as the source: the cell's name.
    pub source: String,
    /// Other users of this machine may use the mount. Default no: the kernel lets in only the one who
    /// mounted. An ordinary user also needs `user_allow_other` in /etc/fuse.conf.
    pub allow_other: bool,
    /// The kernel may read and write complete cache files by itself. Default yes; where the kernel
    /// refuses it, the mount goes on without.
    pub passthrough: bool,
    /// The cache lies on a stacked file system such as overlayfs: the kernel then has to be told that
    /// this mount is one level deeper. Default no.
    pub cache_is_stacked: bool,
    /// A user of the cell who is shown as the user who mounted, if `accounts` is not given. Default nobody.
    pub owner: Option<Owner>,
    /// As whom the users of the cell are shown. Default: ids are shown as they are, but for `owner`.
    pub accounts: Option<Arc<dyn Accounts>>,
}

/// A Vice id that is shown as a user of this machine, both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Owner of files as the servers know it.
    pub vice: ViceId,
    /// User id shown.
    pub uid: u32,
    /// Group id shown.
    pub gid: u32,
}

impl MountOptions {
    /// The defaults, for a cell of this name.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            allow_other: false,
            passthrough: true,
            cache_is_stacked: false,
            owner: None,
            accounts: None,
        }
    }
}
