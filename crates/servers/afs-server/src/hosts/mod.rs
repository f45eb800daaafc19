//! Table and state of the client machines.

mod host;
mod id;
mod misses;
mod occupancy;
mod table;

pub(crate) use host::ADDRESSES_MAX;
pub use host::{Host, HostIdentity};
pub use id::HostId;
pub(crate) use misses::{AddressMisses, Misses};
pub use table::HostTable;
pub(crate) use table::{NewHost, Seeded};
