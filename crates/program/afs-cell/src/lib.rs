//! Wiring of a cell: stores and sockets are opened and passed to services and clients, and the owner of a cell and the
//! users of a mount reach their process over local sockets. Nothing here decides about files or volumes.
//!
//! [`configuration`] has the files of a state directory; the servers are [`Servers`], a mount is a [`Client`]. The
//! owner of a running cell uses [`control`], the users of a mount hand in their tokens through [`tokens`].

pub mod cells;
pub mod configuration;
pub mod connections;
pub mod control;
pub mod drives;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod mount;
pub mod mounts;
mod operation_file;
pub mod person;
pub mod process;
mod reserve;
mod servers;
pub mod socket;
pub mod state;
pub mod stores;
pub mod tokens;

pub use afs_venus::BypassLimits;
pub use configuration::{
    BASE_PORT_MAX, BASE_PORT_MIN, CellIdentity, DataPathUse, DatabaseLocation, DnsUse, EtcdOptions,
    FileError, HARD_SERVER_WAIT, Inventory, JoinFile, KeptCells, KeptDataPath, KeptOptions, MissingFile,
    NewServer, PartitionDirectory, Ports, RoleName, Roles, ServerFile, ServerOptions, key_store,
};
pub use error::{CellError, CellResult};
pub use mount::{CACHE_BYTES_MIN, Client, ClientError, ClientOptions, LeftOpen, NotStored, StoreOptions};
pub use operation_file::OperationFile;
pub use servers::{
    ADMIN_NAME, Collisions, DataPathState, DataPathTable, DriveCounts, ImportRequest, Imported, ImportedFile,
    PartitionReport, PartitionScrub, ScrubPass, Servers, StartError,
};
