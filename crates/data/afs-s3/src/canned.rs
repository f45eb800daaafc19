//! Stream whose other end replies the same bytes to the first thing that it gets, and then closes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};

pub(crate) struct CannedStream {
    reply: Bytes,
    /// Whether a request has begun: a store says nothing before.
    is_asked: bool,
    reader: Option<Waker>,
}

impl CannedStream {
    pub(crate) fn new(reply: Bytes) -> Self {
        Self { reply, is_asked: false, reader: None }
    }
}

impl Read for CannedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_asked {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = into.remaining().min(self.reply.len());
        into.put_slice(&self.reply[..len]);
        self.reply.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl Write for CannedStream {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        self.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
