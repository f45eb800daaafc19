//! Objects as the cache knows them.

mod promise;
mod rights;
mod state;
mod table;

pub(crate) use promise::{Breaks, Promise, ServerReset};
pub(crate) use rights::{Known, RightsTable};
pub(crate) use state::{Directory, Vnode, VnodeState, is_mount_point, kind_of};
pub(crate) use table::VnodeTable;
