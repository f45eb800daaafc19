//! The shared store of a cell's databases in etcd, version 3.4 or later, through its JSON API.
//!
//! [`Etcd`] keeps the rows of one cell under one prefix of keys. With several endpoints, one that does not
//! reply in time is left for the next, and a request that no majority can serve is an error in bounded time.
//! The crate has sockets and a thread of its own, so the layers above need none.

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
