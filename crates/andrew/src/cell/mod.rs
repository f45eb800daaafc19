//! Wiring: stores and sockets opened and handed to services and clients. Nothing here decides anything
//! about files or volumes.

pub mod client;
mod identity;
pub(crate) mod key_store;
mod ports;
pub(crate) mod secret_file;
mod security_file;
pub mod server;

pub use client::{Client, ClientOptions};
pub use identity::CellIdentity;
pub use ports::{BASE_PORT_MAX, BASE_PORT_MIN, Ports};
pub use security_file::{Requirement, SecurityFile};
pub use server::{ServerOptions, Servers};
