//! What can be wrong with the configuration of a store in etcd.

use std::path::PathBuf;

/// Why a store in etcd cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An endpoint that is none.
    #[error("{0:?} is no etcd endpoint; write http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    /// None was given.
    #[error("no etcd endpoint is given")]
    NoEndpoint,
    /// One is https, and there is nothing to know the servers by.
    #[error("an endpoint is https; say by which certificate authority its servers are known")]
    NoAuthority,
    /// A certificate without its key, or the other way round.
    #[error("a certificate and its key go together")]
    HalfIdentity,
    /// A file that cannot be used.
    #[error("{}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The kernel gives no thread or socket.
    #[error("etcd cannot be called: {0}")]
    System(#[from] std::io::Error),
}
