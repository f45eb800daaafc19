//! Traits of the messages of a socket, and the exchange of one request and its reply.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// A request that is one frame.
pub(crate) trait RequestFrame: Sized + 'static {
    /// Writes the frame.
    fn write(&self, to: &mut impl Write) -> io::Result<()>;

    /// The next request, or `None` when the client is done.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>>;
}

/// A reply that is one frame.
pub(crate) trait ReplyFrame: Sized + 'static {
    /// The reply to a client that is not served: a line for a person.
    fn refused(line: String) -> Self;

    /// Writes the frame.
    fn write(&self, to: &mut impl Write) -> io::Result<()>;

    /// Reads the reply.
    fn read(from: &mut impl Read) -> io::Result<Self>;
}

/// Sends a request and waits for its reply, as long as the time-outs of the stream allow.
pub(crate) fn ask<A: ReplyFrame>(stream: &UnixStream, request: &impl RequestFrame) -> io::Result<A> {
    // A server that refuses the client may have closed the connection before it read the request.
    let sent = request.write(&mut &*stream);
    A::read(&mut &*stream).or_else(|error| sent.and(Err(error)))
}
