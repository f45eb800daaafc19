//! Errors of calls and commands, and Rx's own abort codes.

use thiserror::Error;

/// Rx's own abort codes: docs/protocol/rx.md "8.2 Rx codes".
pub mod code {
    /// Nothing was received within the dead time.
    pub const CALL_DEAD: i32 = -1;
    /// Unknown service or security index, or misuse of a call.
    pub const INVALID_OPERATION: i32 = -2;
    /// The hard or the idle time limit was exceeded.
    pub const CALL_TIMEOUT: i32 = -3;
    /// The peer violated the protocol.
    pub const PROTOCOL_ERROR: i32 = -5;
    /// The application aborted the call.
    pub const USER_ABORT: i32 = -6;
    /// The server is starting or stopping; retry later.
    pub const RESTARTING: i32 = -100;
    /// The server cannot take another call (the file server's VBUSY).
    pub const BUSY: i32 = 110;
}

/// Why a call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer aborted this call with this code.
    #[error("the peer aborted the call with code {0}")]
    RemoteAbort(i32),
    /// This side aborted the call with this code.
    #[error("the call was aborted here with code {0}")]
    LocalAbort(i32),
    /// Nothing valid was received from the peer within the dead time, or within a shorter one after the network
    /// reported it unreachable.
    #[error("the peer is silent")]
    Unreachable,
    /// The call's hard or idle time limit was exceeded.
    #[error("the call took too long")]
    Timeout,
    /// The peer aborted the whole connection with this code; open another one.
    #[error("the peer aborted the connection with code {0}")]
    ConnectionAborted(i32),
    /// This side failed the whole connection with this code: a broken packet, or failed security.
    #[error("the connection failed here with code {0}")]
    ConnectionFailed(i32),
    /// The client began its next call on the channel before this one had a reply.
    #[error("the client replaced the call by a newer one")]
    Superseded,
    /// The operation does not fit the call's direction: writing after the reply has begun, for example.
    #[error("the operation does not fit the state of the call")]
    InvalidOperation,
    /// The id names no call: it was released.
    #[error("no such call")]
    Unknown,
}

impl CallError {
    /// The code that Rx programs report for this error.
    pub fn code(self) -> i32 {
        match self {
            CallError::RemoteAbort(code)
            | CallError::LocalAbort(code)
            | CallError::ConnectionAborted(code)
            | CallError::ConnectionFailed(code) => code,
            CallError::Unreachable | CallError::Superseded => code::CALL_DEAD,
            CallError::Timeout => code::CALL_TIMEOUT,
            CallError::InvalidOperation | CallError::Unknown => code::INVALID_OPERATION,
        }
    }
}

/// Why a call was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// All four channels carry a call. `Event::ChannelFree` follows when one ends.
    #[error("all four channels of the connection are busy")]
    NoChannel,
    /// The connection is unusable; open another one.
    #[error("the connection has failed with code {0}")]
    ConnectionFailed(i32),
    /// The id names no client connection of this endpoint.
    #[error("no such connection")]
    Unknown,
}

/// Why a service was not offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The service id is offered already.
    #[error("service {0} is offered already")]
    Duplicate(u16),
    /// More services than `Config::services_max`.
    #[error("too many services on one endpoint")]
    TooMany,
    /// Service id 0 does not exist, and a service needs at least one security class, each with its own index.
    #[error("service {0} cannot be offered like that")]
    Invalid(u16),
}
