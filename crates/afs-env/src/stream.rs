//! Byte streams between hosts, as TCP gives them.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};

/// One connection: reliable and ordered in each direction, with bounded buffers in between.
///
/// - A read of 0 bytes is the end: the peer has shut its direction down, or closed with nothing unread.
/// - [`std::io::ErrorKind::ConnectionReset`] is the end of both directions: the peer closed with data unread, or lost its
///   state. What had arrived before may be lost.
/// - A peer whose machine or network is gone is silent. A read then waits for ever, and writes fill the buffers: wait
///   within [`EnvExt::timeout`](crate::EnvExt::timeout).
/// - A write is done when the bytes are buffered here, not when the peer has them.
/// - `poll_shutdown` ends this direction after all buffered bytes; the other one goes on.
/// - Dropping a stream with nothing unread sends what is buffered and ends it; with data unread it resets the connection.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static {
    /// The address of this end.
    fn local_addr(&self) -> SocketAddr;

    /// The address of the other end.
    fn peer_addr(&self) -> SocketAddr;
}

/// Takes connections. Dropping it frees the address; connections not yet accepted are reset, others go on.
pub trait ByteListener: Send + Sync + 'static {
    /// The address it listens at, with the port that was chosen where the wanted one was 0.
    fn local_addr(&self) -> SocketAddr;

    /// The next connection.
    ///
    /// # Errors
    /// What the system is short of, descriptors for example. The listener stays of use; pause before asking again.
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
