//! Client call: the request's and the reply's byte streams.

use afs_wire::error::AbortCode;
use afs_wire::rpc::{self, Request};
use bytes::Bytes;

use crate::error::CallError;
use crate::rx::stream::Stream;
use crate::sync::OwnedSemaphorePermit;

/// A call in progress: write the rest of the request, [`ClientCall::finish_request`], read the reply.
///
/// Dropped before the reply has been read to its end, it is aborted with `RX_USER_ABORT`.
#[derive(Debug)]
pub struct ClientCall {
    stream: Stream,
    /// The channel. Declared last: it is free for the next call only after the stream is dropped.
    _channel: OwnedSemaphorePermit,
}

impl ClientCall {
    pub(crate) fn new(stream: Stream, channel: OwnedSemaphorePermit) -> Self {
        Self { stream, _channel: channel }
    }

    /// Appends to the request. Waits while the send buffer is full.
    ///
    /// # Errors
    /// The error that ended the call; the server may refuse while the client still writes.
    pub async fn write(&mut self, data: Bytes) -> Result<(), CallError> {
        self.stream.write(data).await
    }

    /// Ends the request.
    ///
    /// # Errors
    /// The error that ended the call.
    pub fn finish_request(&mut self) -> Result<(), CallError> {
        self.stream.finish_send()
    }

    /// Exactly `n` bytes of the reply.
    ///
    /// # Errors
    /// [`CallError::Ended`] if the reply is shorter; otherwise the error that ended the call.
    pub async fn read_exact(&mut self, n: usize) -> Result<Bytes, CallError> {
        self.stream.read_exact(n).await
    }

    /// Bytes of variable length, at most `max`, that precede the rest of a reply: their count, they, and padding up to a word.
    ///
    /// # Errors
    /// [`CallError::TooLong`] for a larger count; otherwise as [`ClientCall::read_exact`].
    pub async fn read_opaque(&mut self, max: usize) -> Result<Bytes, CallError> {
        let word = self.read_exact(4).await?;
        let len = word.iter().fold(0usize, |len, byte| len << 8 | usize::from(*byte));
        if len > max {
            return Err(CallError::TooLong { limit: max });
        }
        let padded = self.read_exact(len.next_multiple_of(4)).await?;
        Ok(padded.slice(..len))
    }

    /// The next bytes of the reply, at least one and at most `max`; `None` at its end.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn read_some(&mut self, max: usize) -> Result<Option<Bytes>, CallError> {
        self.stream.read_some(max).await
    }

    /// As [`ClientCall::read_some`], in the pieces in which they arrived, without copying. Empty at the end of the
    /// reply.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn read_pieces(&mut self, max: usize) -> Result<Vec<Bytes>, CallError> {
        self.stream.read_pieces(max).await
    }

    /// The rest of the reply.
    ///
    /// # Errors
    /// [`CallError::TooLong`] if it is longer than `limit`; otherwise the error that ended the call.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Bytes, CallError> {
        self.stream.read_to_end(limit).await
    }

    /// Reads the results that end a split call, and so ends it.
    ///
    /// # Errors
    /// As [`ClientCall::read_to_end`], or [`CallError::Decode`].
    pub async fn finish<R: Request>(mut self) -> Result<R::Reply, CallError> {
        let limit = self.stream.rx().limits().reply;
        let reply = self.read_to_end(limit).await?;
        Ok(rpc::decode_reply::<R>(&reply)?)
    }

    /// Aborts the call; the server receives `code`.
    pub fn abort(mut self, code: AbortCode) {
        self.stream.abort(code);
    }
}
