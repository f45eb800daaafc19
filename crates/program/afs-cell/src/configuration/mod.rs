//! Files of a state directory, and the options of servers that they hold.

mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub(crate) mod identity;
pub(crate) mod inventory;
mod join_file;
mod kept_cells;
mod kept_data_path;
mod kept_options;
pub mod key_store;
pub(crate) mod options;
pub(crate) mod partition_identity;
pub(crate) mod ports;
pub(crate) mod security_file;
mod server_file;

pub use error::FileError;
pub use identity::CellIdentity;
pub use inventory::{Inventory, MissingFile};
pub use join_file::{JoinFile, NewServer};
pub use kept_cells::{DnsUse, KeptCells};
pub use kept_data_path::{DataPathUse, KeptDataPath};
pub use kept_options::{HARD_SERVER_WAIT, KeptOptions};
pub use options::{DatabaseLocation, EtcdOptions, PartitionDirectory, RoleName, Roles, ServerOptions};
pub use ports::{BASE_PORT_MAX, BASE_PORT_MIN, Ports};
pub use security_file::SecurityFile;
pub use server_file::{DatabaseTable, EtcdTable, PartitionTable, ServerFile};
