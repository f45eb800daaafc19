//! Wiring: stores and sockets opened and handed to services and clients. Nothing here decides anything
//! about files or volumes.

mod audit_log;
pub mod client;
mod identity;
pub(crate) mod key_store;
mod login_stores;
mod ports;
pub(crate) mod secret_file;
pub(crate) mod security;
mod security_file;
pub mod server;
mod stores;

pub use client::{Client, ClientOptions};
pub use identity::CellIdentity;
pub use ports::{BASE_PORT_MAX, BASE_PORT_MIN, Ports};
pub use security_file::SecurityFile;
pub use server::{ServerOptions, Servers};
