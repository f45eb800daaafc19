//! Configuration of a bucket, and why it cannot be used.

use std::io;
use std::path::PathBuf;

use crate::address::{BucketAddress, Endpoint};
use crate::credentials::CredentialsError;

/// A bucket, how it is reached, and as whom.
#[derive(Clone, Debug)]
pub struct S3Config {
    /// The bucket, and the prefix of the drive in it.
    pub address: BucketAddress,
    /// The store.
    pub endpoint: Endpoint,
    /// Its region, which the signatures name. `us-east-1` for most stores of one's own.
    pub region: String,
    /// File of secrets with the credentials. It is read for every request, so that renewed ones are used at once.
    pub credentials: PathBuf,
    /// Certificates (PEM) of the authorities that the store's certificate is verified by. Default: those of the system.
    pub authority: Option<PathBuf>,
    /// Whether requests may go to another machine without encryption. Default: no.
    pub allow_clear: bool,
}

/// Why a bucket cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An invalid address of a bucket.
    #[error("{0:?} is no address of a drive in a bucket; write s3://BUCKET/PREFIX")]
    Address(String),
    /// An invalid endpoint.
    #[error("{0:?} is no endpoint of an object store; write https://HOST[:PORT]")]
    Endpoint(String),
    /// http to another machine.
    #[error(
        "{0} is another machine, and http is not encrypted: use https, or allow clear requests explicitly"
    )]
    Clear(Endpoint),
    /// The file of credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A file of certificates cannot be used.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        why: String,
    },
    /// No certificate authorities are known.
    #[error("no file of certificate authorities was found on this system; name one")]
    NoAuthority,
    /// The configuration cannot be used.
    #[error("the bucket cannot be used: {0}")]
    Store(String),
    /// The kernel provides no thread or socket.
    #[error("the store cannot be called: {0}")]
    System(#[from] io::Error),
}
