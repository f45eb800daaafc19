//! Sink that joins small pieces before they are sent: a count, a few bytes and a status then share one
//! packet.

use bytes::Bytes;

use super::Sink;

/// Pieces below this size are copied together.
const SMALL: usize = 4096;

/// A sink in front of another, which joins small pieces. Held bytes are lost unless [`Joined::flush`] is
/// called at the end.
pub(crate) struct Joined<'s, S> {
    sink: &'s mut S,
    /// At most twice [`SMALL`].
    held: Vec<u8>,
}

impl<'s, S: Sink> Joined<'s, S> {
    pub(crate) fn new(sink: &'s mut S) -> Self {
        Joined { sink, held: Vec::new() }
    }

    /// Sends the held bytes.
    pub(crate) async fn flush(&mut self) -> Result<(), S::Error> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.sink.put(Bytes::from(std::mem::take(&mut self.held))).await
    }
}

impl<S: Sink> Sink for Joined<'_, S> {
    type Error = S::Error;

    async fn put(&mut self, piece: Bytes) -> Result<(), S::Error> {
        if piece.len() <= SMALL && self.held.len() <= SMALL {
            self.held.extend_from_slice(&piece);
            return Ok(());
        }
        self.flush().await?;
        self.sink.put(piece).await
    }
}
