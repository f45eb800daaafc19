//! Wiring: stores and sockets opened and handed to services and clients. Nothing here decides anything
//! about files or volumes.

mod accounts;
mod audit_log;
mod cache_lock;
mod cell_name;
pub mod client;
mod databases;
mod elsewhere;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod identity;
mod import;
mod import_file;
mod join_file;
mod kept_options;
pub(crate) mod key_store;
pub mod left_open;
mod login_stores;
mod options;
#[cfg(test)]
mod owner_tests;
mod ports;
mod scrubbing;
pub(crate) mod security;
mod security_file;
pub mod server;
mod server_file;
mod shared_rows;
mod stores;

pub use client::{Client, ClientOptions};
pub use identity::CellIdentity;
pub use import::{Collisions, ImportRequest, Imported, ImportedFile};
pub use join_file::{JoinFile, NewServer};
pub use kept_options::KeptOptions;
pub use left_open::LeftOpen;
pub use options::{DatabasePlace, EtcdPlace, PartitionPlace, Roles, ServerOptions};
pub use ports::{BASE_PORT_MAX, BASE_PORT_MIN, Ports};
pub use scrubbing::{Look, PartitionScrub};
pub use security_file::SecurityFile;
pub use server::Servers;
pub use server_file::{DatabaseTable, EtcdTable, RoleName, ServerFile};
