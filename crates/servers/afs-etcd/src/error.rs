//! Errors in the configuration of a store in etcd.

use std::path::PathBuf;

/// Why a store in etcd cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An invalid endpoint.
    #[error("{0:?} is no etcd endpoint; write http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    /// No endpoint was given.
    #[error("no etcd endpoint is given")]
    NoEndpoint,
    /// An endpoint is https, and no authority is given.
    #[error("an endpoint is https; say by which certificate authority its servers are known")]
    NoAuthority,
    /// A certificate without its key, or the other way round.
    #[error("a certificate and its key go together")]
    HalfIdentity,
    /// An unusable file.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        why: String,
    },
    /// The kernel provides no thread or socket.
    #[error("etcd cannot be called: {0}")]
    System(#[from] std::io::Error),
}
