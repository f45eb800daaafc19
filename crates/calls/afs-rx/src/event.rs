//! Events that an endpoint reports to the application.

use crate::error::CallError;
use crate::ids::{CallId, ConnId};

/// An event for the application. Events are ordered by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A client began a call. The connection is authenticated and the start of the request can be read.
    IncomingCall {
        /// The new call; the application must release it.
        call: CallId,
        /// The service that the client addressed.
        service: u16,
        /// Its connection.
        connection: ConnId,
    },
    /// Data or the end of the stream can be read, after `read` returned `WouldBlock` (or, on a new client call, for
    /// the first time).
    Readable(CallId),
    /// There is room for data again, after `write` accepted less than it was given.
    Writable(CallId),
    /// Every packet of the request has arrived: reading to its end cannot block. Server calls only.
    RequestDone(CallId),
    /// The call is over: the reply was read to its end (client) or has been delivered (server), or it failed.
    /// Reported once for every call that was not released before.
    Finished(CallId, Result<(), CallError>),
    /// A channel became free after `open_call` returned `NoChannel`.
    ChannelFree(ConnId),
    /// The connection failed with this code. Its calls have their own `Finished`.
    ConnectionFailed(ConnId, i32),
    /// A server connection was removed: the application can drop its state.
    ConnectionGone(ConnId),
}

/// Result of `read`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// The next bytes of the stream, never empty.
    Data(bytes::Bytes),
    /// Nothing at the moment; `Event::Readable` follows.
    WouldBlock,
    /// The stream is complete and has been read to its end.
    Eof,
}
