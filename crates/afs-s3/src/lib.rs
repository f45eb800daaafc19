//! Buckets of S3-compatible object stores over HTTP, for the drives of `afs-bucket`.
//!
//! [`S3Bucket`] implements [`afs_bucket::Bucket`] with the crate `object_store`, which makes and signs the requests; they go over
//! hyper and rustls, as those of `afs-etcd` do. Each request is one attempt: what is tried again, and when, is decided in `afs-bucket`.
//! The crate has sockets and a thread of its own, so the layers above need none.

mod address;
mod config;
mod credentials;
mod failure;
mod http;
mod store;
mod tls;

pub use address::{BucketAddress, Endpoint};
pub use config::{ConfigError, S3Config};
pub use credentials::CredentialsError;
pub use store::S3Bucket;
