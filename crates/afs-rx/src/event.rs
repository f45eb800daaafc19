//! What the endpoint tells the application.

use crate::error::CallError;
use crate::ids::{CallId, ConnId};

/// Something the application may want to act on. Events come in the order they happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A client called. The connection is authenticated and the start of the request can be read.
    IncomingCall {
        /// The new call; to be released by the application in the end.
        call: CallId,
        /// The service the client addressed.
        service: u16,
        /// The connection it came on.
        connection: ConnId,
    },
    /// Data or the end of the stream can be read, after `read` answered `WouldBlock` (or, on a new client
    /// call, for the first time).
    Readable(CallId),
    /// There is room for data again, after `write` accepted less than it was given.
    Writable(CallId),
    /// Every packet of the request has arrived: reading to its end cannot block. Server calls only.
    RequestDone(CallId),
    /// The call is over: the reply was read to its end (client) or has been delivered (server), or it failed.
    /// Comes once for every call that was not released before.
    Finished(CallId, Result<(), CallError>),
    /// A channel became free after `open_call` answered `NoChannel`.
    ChannelFree(ConnId),
    /// The connection failed with this code. Its calls have their own `Finished`.
    ConnectionFailed(ConnId, i32),
    /// A server connection was forgotten: what the application remembers of it can go.
    ConnectionGone(ConnId),
}

/// What `read` found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Read {
    /// The next bytes of the stream, never empty.
    Data(bytes::Bytes),
    /// Nothing at the moment; `Event::Readable` follows.
    WouldBlock,
    /// The stream is complete and has been read to its end.
    Eof,
}
