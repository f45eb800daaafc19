//! The asking side: a connection to a service, and calls on it.

mod call;
mod connection;
mod security;

pub use call::ClientCall;
pub use connection::{CallOptions, Connection};
pub use security::{Security, SecuritySource};
