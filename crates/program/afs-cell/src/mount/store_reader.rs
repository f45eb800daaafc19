//! Reads of object stores, as the cache manager has them done.

use afs_env::BoxFuture;
use afs_s3::{ConfigError, Endpoint, ReadError, ReaderOptions};
use afs_venus::{ObjectError, ObjectReader};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

/// Which object stores a mount reads, beside those of other hosts over TLS.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// Endpoints (`http://HOST:PORT` or `https://HOST:PORT`) that may be read without TLS, or at an address of this machine.
    pub allowed: BTreeSet<String>,
    /// Certificates (PEM) of the authorities that the stores' certificates are verified by. Default: those of the system.
    pub authority: Option<PathBuf>,
}

impl StoreOptions {
    /// An endpoint in its usual form.
    ///
    /// # Errors
    /// The text is none.
    pub fn endpoint(text: &str) -> Result<String, ConfigError> {
        text.parse().map(|endpoint: Endpoint| endpoint.to_string())
    }
}

/// Reads object stores over HTTP.
pub(super) struct StoreReader(afs_s3::ObjectReader);

impl StoreReader {
    /// # Errors
    /// An option that cannot be used.
    pub(super) fn new(options: &StoreOptions) -> Result<Self, ConfigError> {
        let allowed = options.allowed.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
        let options = ReaderOptions { authority: options.authority.clone(), allowed };
        afs_s3::ObjectReader::new(options).map(Self)
    }
}

impl ObjectReader for StoreReader {
    fn read(&self, address: &str, range: Range<u64>) -> BoxFuture<'static, Result<Bytes, ObjectError>> {
        let reading = self.0.read(address, range);
        Box::pin(async move {
            reading.await.map_err(|error| {
                tracing::debug!(%error, "a range of an object was not read");
                told(&error)
            })
        })
    }
}

fn told(error: &ReadError) -> ObjectError {
    match error {
        ReadError::Forbidden => ObjectError::Forbidden,
        ReadError::Unreachable(_) => ObjectError::Unreachable,
        ReadError::Status(status) => ObjectError::Status(*status),
        ReadError::Length(_) => ObjectError::Length,
        _ => ObjectError::Broken,
    }
}
