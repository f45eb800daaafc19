//! Byte streams between a volume and the peer of a call, independent of the transport: file operations, dumps
//! and restores read from a [`Source`] and write to a [`Sink`]. An Rx call is both.
//!
//! Neither buffers more than the window of its transport, and neither has time-outs: how long the peer may be
//! silent is decided by the user of the stream.

mod content;
mod joined;
mod rx;

use std::future::Future;

use bytes::Bytes;

pub(crate) use content::{Content, FileContent, Stopped, pour};
pub(crate) use joined::Joined;

/// The transport ended before the stream did: the peer is gone, or has given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken;

/// Bytes from the peer.
pub(crate) trait Source: Send {
    /// The next bytes, in the pieces in which they arrived: together at least one byte and at most `most`.
    /// None at the end of the stream. Waits for as long as the peer is silent; dropping the future loses no
    /// byte.
    ///
    /// # Errors
    /// [`Broken`] when nothing more can arrive.
    fn next(&mut self, most: usize) -> impl Future<Output = Result<Vec<Bytes>, Broken>> + Send;
}

/// Bytes to the peer.
pub(crate) trait Sink: Send {
    /// Why a piece was not taken.
    type Error: Send;

    /// Sends the next bytes. Waits while the window is full.
    ///
    /// # Errors
    /// The peer's error, or that of its end of the transport; nothing more will be taken.
    fn put(&mut self, piece: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
