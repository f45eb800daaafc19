//! Bytes between a volume and the other side of a call, whatever carries them: file operations, dumps and restores take them
//! from a [`Source`] and give them to a [`Sink`]. An Rx call is both.
//!
//! Neither keeps more than the window of what carries it, and neither knows of time: how long the other side may be silent is for
//! its user to decide.

mod content;
mod joined;
mod rx;

use std::future::Future;

use bytes::Bytes;

pub(crate) use content::{FileContent, Stopped, pour};
pub(crate) use joined::Joined;

/// What carried the bytes ended before they did: the other side is gone, or has given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Broken;

/// Bytes from the other side.
pub(crate) trait Source: Send {
    /// The next bytes, in the pieces in which they came: together at least one byte and at most `most`. None at the end of the
    /// stream. Waits for as long as the other side is silent; dropping the future loses no byte.
    ///
    /// # Errors
    /// [`Broken`] where nothing more can come.
    fn next(&mut self, most: usize) -> impl Future<Output = Result<Vec<Bytes>, Broken>> + Send;
}

/// Bytes to the other side.
pub(crate) trait Sink: Send {
    /// Why a piece was not taken.
    type Error: Send;

    /// Takes the next bytes. Waits while the window is full.
    ///
    /// # Errors
    /// What the other side, or its end, says; nothing more will be taken.
    fn put(&mut self, piece: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;
}
