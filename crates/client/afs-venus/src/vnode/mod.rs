//! Objects of the status cache.

mod allowed;
mod directory;
mod listing;
mod local;
mod removal;
mod state;
mod table;

pub(crate) use allowed::{may, needed_to_see, sees};
pub(crate) use directory::{Directory, DirectoryBytes};
pub(crate) use listing::Listing;
pub(crate) use local::{HiddenName, LocalFile};
pub(crate) use removal::Removal;
pub(crate) use state::{Vnode, VnodeState, is_mount_point, kind_of};
pub(crate) use table::VnodeTable;
