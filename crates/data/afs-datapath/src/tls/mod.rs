//! TLS 1.3 with a raw public key (RFC 7250) that the client pins, as a wrapper of byte streams.
//!
//! A drive has an Ed25519 key of its own for each life. Its client knows the key's fingerprint from the file server, and needs no
//! certificate, name or date.

mod client;
mod fingerprint;
mod identity;
mod provider;
pub mod raw;
mod secured;
mod server;
mod wide;

pub use client::Security;
pub use fingerprint::Fingerprint;
pub use identity::{BadKey, Identity};
pub use server::Offer;

pub(crate) use client::secure;
pub(crate) use server::receive;
