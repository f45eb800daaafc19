//! Output of a connection: frames that have begun, and when the stream took a byte of them.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use afs_env::io::AsyncWrite;
use afs_env::{ByteStream, Instant};
use bytes::{Buf, Bytes};

use super::{Driver, Role};
use crate::session::Lost;
use crate::session::link::Link;

/// Parts of frames in one write.
const SLICES: usize = 32;
/// Frames of one round.
const FRAMES: usize = 8;

/// The parts of frames that the stream has not taken yet.
pub(super) struct Output {
    pub parts: VecDeque<Bytes>,
    is_unflushed: bool,
    /// When the stream took a byte, or when there was nothing for it.
    moved: Instant,
}

impl Output {
    pub fn new(now: Instant) -> Self {
        Self { parts: VecDeque::new(), is_unflushed: false, moved: now }
    }

    /// Whether the stream has taken no byte for `stall`, of those that are here for it.
    pub fn is_stuck(&self, now: Instant, stall: Duration) -> bool {
        !self.is_empty() && now - self.moved >= stall
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && !self.is_unflushed
    }

    /// Writes all frames that have begun.
    fn write(
        &mut self,
        stream: &mut Box<dyn ByteStream>,
        link: &Link,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.parts.is_empty() {
            let written = ready!(write_parts(stream, &self.parts, cx))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            advance(&mut self.parts, written);
            self.is_unflushed = true;
            self.moved = link.now();
        }
        Poll::Ready(Ok(()))
    }

    fn flush(&mut self, stream: &mut Box<dyn ByteStream>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_unflushed {
            ready!(Pin::new(stream).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl<R: Role> Driver<R> {
    /// Writes frames until the stream takes no more. Whether it took any.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, Lost> {
        let mut has_sent = false;
        for _ in 0..FRAMES {
            if self.output.is_empty() {
                self.output.moved = self.link.now();
            }
            if self.output.parts.is_empty() && !self.next_frames(cx) {
                break;
            }
            let before = self.output.parts.len();
            let written = self.output.write(&mut self.stream, &self.link, cx);
            has_sent |= written.is_ready() || self.output.parts.len() < before;
            if ready_or(written)?.is_none() {
                return Ok(has_sent);
            }
        }
        let _ = ready_or(self.output.flush(&mut self.stream, cx))?;
        Ok(has_sent)
    }

    fn next_frames(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.link.now();
        let bytes = self.link.with(|state| state.next_frames(now, &mut self.output.parts, cx.waker()));
        bytes.inspect(|bytes| self.role.sent(*bytes)).is_some()
    }

    /// Writes and flushes what has begun.
    pub(super) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.output.write(&mut self.stream, &self.link, cx))?;
        self.output.flush(&mut self.stream, cx)
    }
}

fn write_parts(
    stream: &mut Box<dyn ByteStream>,
    out: &VecDeque<Bytes>,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut slices = [IoSlice::new(&[]); SLICES];
    for (slice, part) in slices.iter_mut().zip(out) {
        *slice = IoSlice::new(part);
    }
    Pin::new(stream).poll_write_vectored(cx, &slices[..out.len().min(SLICES)])
}

fn advance(out: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(first) = out.front_mut() {
        if written < first.len() {
            return first.advance(written);
        }
        written -= first.len();
        out.pop_front();
    }
}

/// The value, or `None` if it is pending.
fn ready_or<T, E>(poll: Poll<Result<T, E>>) -> Result<Option<T>, E> {
    match poll {
        Poll::Ready(done) => done.map(Some),
        Poll::Pending => Ok(None),
    }
}
