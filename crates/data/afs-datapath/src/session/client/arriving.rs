//! Bytes of a read, as they arrive from a drive.

use bytes::Bytes;

use super::Begun;
use crate::session::Error;

/// Bytes that arrive from a drive. Dropping it cancels the request.
pub struct Arriving {
    request: Begun,
    length: u64,
    file_length: u64,
}

impl Arriving {
    pub(super) fn new(request: Begun, length: u64, file_length: u64) -> Self {
        Self { request, length, file_length }
    }

    /// Bytes that arrive in all: those of the range that lie in the file. Of a stream it is not known.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Length of the file in that version.
    #[must_use]
    pub fn file_length(&self) -> u64 {
        self.file_length
    }

    /// The next bytes, in pieces as they arrive (of up to 256 KiB); `None` after the last. At most 1 MiB is taken in advance, of
    /// a stream 2 MiB. Dropping the future loses no byte.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Stalled`], [`Error::Lost`]. What came before is part of the version, but no more will come.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.request.client.0.link.take(self.request.id).await
    }
}
