//! Server side: the trait of services, and a server call.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::rpc::{self, Opcode, Request, ServiceId};
use afs_wire::xdr::Encode;
use bytes::Bytes;

use crate::BoxFuture;
use crate::caller::Caller;
use crate::error::CallError;
use crate::rx::Rx;
use crate::rx::stream::Stream;

/// Serves the calls of one service number.
///
/// The returned future is polled once by the thread that received the call; it must not block there. After its first
/// wait it is a task of its own. A handler that drops its [`ServerCall`] unfinished, or panics, aborts the call with
/// `RX_USER_ABORT`.
pub trait Service: Send + Sync + 'static {
    /// The number that clients open their connections to.
    fn id(&self) -> ServiceId;

    /// Serves one call, from its first byte.
    fn serve(self: Arc<Self>, call: ServerCall) -> BoxFuture<'static, ()>;
}

/// An incoming call: read the request, then write the reply, then [`ServerCall::finish`]; or [`ServerCall::abort`].
///
/// Memory per call is bounded by the receive and send buffers of the endpoint, whatever the client does; a wait of
/// `afs_rx::Config::idle_time` for the client ends the call with [`CallError::Timeout`].
#[derive(Debug)]
pub struct ServerCall {
    stream: Stream,
    caller: Caller,
    service: ServiceId,
}

impl ServerCall {
    pub(crate) fn new(stream: Stream, caller: Caller, service: ServiceId) -> Self {
        Self { stream, caller, service }
    }

    /// The caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The service number that was called.
    #[must_use]
    pub fn service(&self) -> ServiceId {
        self.service
    }

    /// The transport that it arrived by; calls back to the client use the same one.
    #[must_use]
    pub fn rx(&self) -> &Rx {
        self.stream.rx()
    }

    /// Exactly `n` bytes of the request.
    ///
    /// # Errors
    /// [`CallError::Ended`] if the request is shorter; otherwise the error that ended the call.
    pub async fn read_exact(&mut self, n: usize) -> Result<Bytes, CallError> {
        self.stream.read_exact(n).await
    }

    /// The next bytes of the request, at least one and at most `max`; `None` at its end.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn read_some(&mut self, max: usize) -> Result<Option<Bytes>, CallError> {
        self.stream.read_some(max).await
    }

    /// As [`ServerCall::read_some`], in the pieces in which they arrived, without copying. Empty at the end of the
    /// request.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn read_pieces(&mut self, max: usize) -> Result<Vec<Bytes>, CallError> {
        self.stream.read_pieces(max).await
    }

    /// The rest of the request.
    ///
    /// # Errors
    /// [`CallError::TooLong`] if it is longer than `limit`; otherwise the error that ended the call.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Bytes, CallError> {
        self.stream.read_to_end(limit).await
    }

    /// The opcode, the first word of every request.
    ///
    /// # Errors
    /// As [`ServerCall::read_exact`].
    pub async fn read_opcode(&mut self) -> Result<Opcode, CallError> {
        let word = self.read_exact(4).await?;
        Ok(rpc::split_opcode(&word)?.0)
    }

    /// The arguments of a split call whose arguments take `len` bytes after the opcode; the raw bytes follow.
    ///
    /// # Errors
    /// As [`ServerCall::read_exact`], or [`CallError::Decode`].
    pub async fn read_arguments<R: Request>(&mut self, len: usize) -> Result<R, CallError> {
        let arguments = self.read_exact(len).await?;
        Ok(rpc::decode_arguments(&arguments)?)
    }

    /// Appends to the reply. Waits while the send window is full.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn write(&mut self, data: Bytes) -> Result<(), CallError> {
        self.stream.write(data).await
    }

    /// Sends what has been written even where it does not fill a packet.
    ///
    /// # Errors
    /// The error that ended the call.
    pub fn flush(&mut self) -> Result<(), CallError> {
        self.stream.flush()
    }

    /// Completes with the error that ended the call, such as the abort of a client that has given it up. Sends what has
    /// been written.
    pub async fn ended(&mut self) -> CallError {
        self.stream.ended().await
    }

    /// Ends the reply. Rx delivers the rest after this returns.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn finish(mut self) -> Result<(), CallError> {
        self.stream.finish_send()
    }

    /// Writes a whole reply and ends it.
    ///
    /// # Errors
    /// The error that ended the call.
    pub async fn reply<T: Encode + Sync + ?Sized>(mut self, reply: &T) -> Result<(), CallError> {
        let mut out = Vec::with_capacity(256);
        reply.encode(&mut out);
        self.stream.write_and_leave(Bytes::from(out)).await
    }

    /// Refuses the call, or ends it in the middle: the client gets `code` as its outcome.
    pub fn abort(mut self, code: AbortCode) {
        self.stream.abort(code);
    }
}
