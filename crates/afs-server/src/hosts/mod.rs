//! Who the clients are, and how each of them stands.

mod host;
mod id;
mod table;

pub(crate) use host::ADDRESSES_MAX;
pub use host::{Host, HostIdentity};
pub use id::HostId;
pub use table::HostTable;
