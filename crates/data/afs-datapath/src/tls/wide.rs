//! Read buffer below TLS, which asks the stream for many records at once.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use afs_env::ByteStream;
use afs_env::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read at once. rustls asks for 4 KiB at a time.
const BUFFER: usize = 256 << 10;

/// A stream that is read in large parts; writes go through.
pub(super) struct Wide {
    stream: Box<dyn ByteStream>,
    buffer: Vec<u8>,
    /// The bytes in the buffer that were not taken: from here up to `end`.
    at: usize,
    end: usize,
}

impl Wide {
    /// A stream of which the first bytes were read already.
    pub fn new(stream: Box<dyn ByteStream>, first: &[u8]) -> Self {
        let mut buffer = vec![0; BUFFER];
        buffer[..first.len()].copy_from_slice(first);
        Self { stream, buffer, at: 0, end: first.len() }
    }
}

impl AsyncRead for Wide {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.at == this.end {
            let mut filled = ReadBuf::new(&mut this.buffer);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut filled))?;
            (this.at, this.end) = (0, filled.filled().len());
        }
        let len = buf.remaining().min(this.end - this.at);
        buf.put_slice(&this.buffer[this.at..this.at + len]);
        this.at += len;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wide {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
