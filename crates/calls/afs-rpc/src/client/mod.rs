//! Client side: connections to a service, and calls on them.

mod call;
mod connection;
mod security;

pub use call::ClientCall;
pub(crate) use connection::CallLimits;
pub use connection::{CallOptions, Connection};
pub use security::{Security, SecuritySource};
