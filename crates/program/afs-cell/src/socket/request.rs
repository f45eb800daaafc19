//! Traits of the messages of a socket, and the exchange of a request and its reply.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// A request that is one frame.
pub(crate) trait RequestFrame: Sized + 'static {
    /// Writes the frame.
    fn write(&self, to: &mut impl Write) -> io::Result<()>;

    /// Reads the next request; `None` at the end of the stream.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>>;
}

/// A reply that is one frame.
pub(crate) trait ReplyFrame: Sized + 'static {
    /// Reply that refuses a client: one line for the user.
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
