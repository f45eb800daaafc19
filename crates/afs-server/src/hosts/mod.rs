//! Table and state of the client machines.

mod conduct;
mod host;
mod id;
mod room;
mod table;

pub(crate) use conduct::{Addresses, Conduct};
pub(crate) use host::ADDRESSES_MAX;
pub use host::{Host, HostIdentity};
pub use id::HostId;
pub use table::HostTable;
pub(crate) use table::Newcomer;
