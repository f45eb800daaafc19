//! Limits of one endpoint on calls, connections and bytes.

use std::time::Duration;

use afs_wire::error::AbortCode;

/// Bounds of one [`Rx`](crate::Rx). The defaults suit a server with thousands of clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Incoming calls being served at one time, all peers together. Default 4096. A quarter of these, and of
    /// [`Limits::waiting`], is reserved for authenticated callers.
    pub calls: usize,
    /// Incoming calls being served at one time for one host (IP address, all ports); its authenticated callers are
    /// counted apart from its anonymous ones. Default 256.
    pub calls_per_host: usize,
    /// Incoming calls waiting to be served, all peers together. One more is aborted with [`Limits::busy`]. Default 4096.
    pub waiting: usize,
    /// Incoming calls waiting to be served for one host, counted as [`Limits::calls_per_host`]. Default 1024.
    pub waiting_per_host: usize,
    /// Calls of anonymous callers that are served before their requests are complete, in addition to
    /// [`Limits::calls`]. With one more the oldest is aborted with [`Limits::busy`]. Default 1024.
    pub incomplete: usize,
    /// Abort code of a call over the bounds. Default `VBUSY`: clients wait and retry.
    pub busy: AbortCode,
    /// Bytes of one request that a plain (not split) call may have. Default 64 KiB.
    pub request: usize,
    /// Bytes of one reply that a plain call may have. Default 1 MiB.
    pub reply: usize,
    /// Rx connections that one [`Connection`](crate::Connection) opens; each carries four calls at a time, more wait. Default 8.
    pub connections: usize,
    /// Peers and services together to which unused client connections are kept; beyond it, unused ones are closed.
    /// Default 16384.
    pub idle_pools: usize,
    /// How long an unused client connection is kept. Default 10 min, below the 700 s after which servers remove it.
    pub connection_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 4096,
            calls_per_host: 256,
            waiting: 4096,
            waiting_per_host: 1024,
            incomplete: 1024,
            busy: AbortCode::VBUSY,
            request: 64 << 10,
            reply: 1 << 20,
            connections: 8,
            idle_pools: 16_384,
            connection_idle: Duration::from_secs(600),
        }
    }
}
