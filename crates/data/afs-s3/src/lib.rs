//! Buckets of S3-compatible object stores over HTTP, for the drives of `afs-bucket`.
//!
//! [`S3Bucket`] implements [`afs_bucket::Bucket`] with the crate `object_store`, which makes and signs the requests; they go over
//! hyper and rustls, as those of `afs-etcd` do. Each request is one attempt: what is tried again, and when, is decided in `afs-bucket`.
//! [`ObjectReader`] reads ranges by addresses that such a bucket signed, for clients that have no credentials.
//! The crate has sockets and a thread of its own, so the layers above need none.

mod address;
#[cfg(feature = "fuzzing")]
mod canned;
mod config;
mod credentials;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod reader;
mod signing;
mod store;
mod tls;
mod worker;

pub use address::{BucketAddress, Endpoint};
pub use config::{ConfigError, S3Config};
pub use credentials::CredentialsError;
#[cfg(feature = "fuzzing")]
pub use reader::read_any_address;
pub use reader::{ObjectReader, ReadError, ReaderOptions};
pub use store::S3Bucket;
