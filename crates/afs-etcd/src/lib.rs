//! The shared store of a cell's databases in etcd, version 3.4 or later, by the JSON side of its API.
//!
//! [`Etcd`] keeps the rows of one cell under one prefix of keys. It knows several endpoints: one that does not answer in
//! time is left for the next, and a request that cannot be answered by a majority is an error in bounded time. It has
//! sockets and a thread of its own, so that nobody above it needs to know of them.

mod client;
mod config;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod http;
mod messages;
mod pack;
mod store;
mod tls;
mod watch;

pub use config::{Endpoint, EtcdConfig, Password, TlsFiles};
pub use error::ConfigError;
pub use store::Etcd;
