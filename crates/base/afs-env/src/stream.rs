//! Traits of byte streams between hosts, with the semantics of TCP.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

/// One connection: reliable and ordered in each direction, with bounded buffers in between.
///
/// - A read of 0 bytes is the end: the peer has shut its direction down, or closed with nothing unread.
/// - [`std::io::ErrorKind::ConnectionReset`] is the end of both directions: the peer closed with data unread, or lost
///   its state. Data that had arrived before may be lost.
/// - A peer whose machine or network has failed is silent. A read then waits for ever, and writes fill the buffers:
///   wait within [`EnvExt::timeout`](crate::EnvExt::timeout).
/// - A write is done when the bytes are buffered locally, not when the peer has them.
/// - `poll_shutdown` ends this direction after all buffered bytes; the other one continues.
/// - Dropping a stream with nothing unread sends the buffered data and ends it; with data unread it resets the
///   connection.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static {
    /// The local address.
    fn local_addr(&self) -> SocketAddr;

    /// The peer's address.
    fn peer_addr(&self) -> SocketAddr;
}

/// Accepts connections. Dropping it frees the address; connections not yet accepted are reset, others continue.
pub trait ByteListener: Send + Sync + 'static {
    /// The address it listens at, with the chosen port where the requested one was 0.
    fn local_addr(&self) -> SocketAddr;

    /// The next connection.
    ///
    /// # Errors
    /// A shortage of the system, descriptors for example. The listener stays usable; pause before the next attempt.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Box<dyn ByteStream>>>;
}

impl dyn ByteListener {
    /// The next connection. Dropping the future loses none.
    ///
    /// # Errors
    /// As [`ByteListener::poll_accept`].
    pub async fn accept(&mut self) -> io::Result<Box<dyn ByteStream>> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }
}

impl fmt::Debug for dyn ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteStream({} > {})", self.local_addr(), self.peer_addr())
    }
}

impl fmt::Debug for dyn ByteListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteListener({})", self.local_addr())
    }
}
