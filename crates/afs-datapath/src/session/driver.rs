//! Driver of one connection: moves frames between a byte stream and the state.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use afs_env::io::{AsyncReadExt, AsyncWrite};
use afs_env::{BoxFuture, ByteStream, EnvExt, Instant};
use bytes::{Buf, Bytes, BytesMut};

use super::buffers::Buffers;
use super::link::Link;
use super::{Lost, Patience};
use crate::frame::{Decoder, Event, Message};

/// Parts of frames in one write.
const SLICES: usize = 32;
/// Rounds of one poll, after which other tasks have their turn, and frames of one round.
const ROUNDS: usize = 16;
const FRAMES: usize = 8;
/// How long an end that gives up a connection tries to say so.
const FAREWELL: Duration = Duration::from_secs(2);

/// What an end does with messages. The driver calls it without a lock.
pub(super) trait Role: Send + Unpin + 'static {
    /// A message has arrived.
    fn message(&mut self, link: &Link, message: Message) -> Result<(), Lost>;

    /// Called every [`Patience::tick`].
    fn tick(&mut self, _link: &Link, _now: Instant) -> Result<(), Lost> {
        Ok(())
    }

    /// Bytes of files go into a frame.
    fn sent(&mut self, _bytes: usize) {}

    /// Bytes of files have arrived.
    fn received(&mut self, _bytes: usize) {}
}

/// A future that drives one connection until its end, and then tells why it ended.
pub(super) struct Driver<R: Role> {
    link: Link,
    stream: Box<dyn ByteStream>,
    role: R,
    patience: Patience,
    decoder: Decoder,
    buffers: Buffers,
    out: VecDeque<Bytes>,
    is_unflushed: bool,
    /// When the stream took a byte, or when there was nothing for it.
    moved: Instant,
    tick: BoxFuture<'static, ()>,
    leaving: Option<Leaving>,
}

struct Leaving {
    lost: Lost,
    until: BoxFuture<'static, ()>,
}

impl<R: Role> Driver<R> {
    /// A driver of a stream from which `received` was read already.
    pub fn new(
        link: Link,
        stream: Box<dyn ByteStream>,
        received: BytesMut,
        role: R,
        patience: Patience,
    ) -> Self {
        let (moved, tick) = (link.now(), link.env().sleep(patience.tick()));
        Self {
            link,
            stream,
            role,
            patience,
            decoder: Decoder::default(),
            buffers: Buffers::new(received),
            out: VecDeque::new(),
            is_unflushed: false,
            moved,
            tick,
            leaving: None,
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        for _ in 0..ROUNDS {
            match self.round(cx) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(lost) => return Poll::Ready(lost),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether anything moved.
    fn round(&mut self, cx: &mut Context<'_>) -> Result<bool, Lost> {
        self.poll_tick(cx)?;
        let has_received = self.receive(cx)?;
        let has_sent = self.send(cx)?;
        if self.link.with(|state| state.is_closing()) {
            return Err(Lost::Closed);
        }
        Ok(has_received || has_sent)
    }

    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Result<(), Lost> {
        while self.tick.as_mut().poll(cx).is_ready() {
            self.tick = self.link.env().sleep(self.patience.tick());
            let now = self.link.now();
            self.link.with(|state| state.tick(now, &self.patience))?;
            if self.has_output() && now - self.moved >= self.patience.stall {
                return Err(Lost::Stuck);
            }
            self.role.tick(&self.link, now)?;
            if self.decoder.missing() == 0 {
                self.buffers.release();
            }
        }
        Ok(())
    }

    fn has_output(&self) -> bool {
        !self.out.is_empty() || self.is_unflushed
    }

    /// Reads what has arrived, up to a buffer full, and acts on it.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Lost> {
        // What came with the first frames is in the buffer without a read.
        self.decode()?;
        if !self.link.with(|state| state.may_read()) {
            return Ok(false);
        }
        let before = self.buffers.received.len();
        let is_over = self.fill(cx)?;
        let has_received = self.buffers.received.len() > before;
        if has_received {
            let now = self.link.now();
            self.link.with(|state| state.hear(now));
            self.decode()?;
        }
        if is_over { Err(Lost::Cut) } else { Ok(has_received) }
    }

    /// Reads until nothing is left, or the buffer is full. Whether the stream is over.
    fn fill(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        self.buffers.make_space(self.decoder.missing());
        let before = self.buffers.received.len();
        while self.buffers.received.capacity() > self.buffers.received.len() {
            let read = pin!(self.stream.read_buf(&mut self.buffers.received)).poll(cx);
            match read {
                Poll::Ready(Ok(0)) => return Ok(true),
                Poll::Ready(Ok(_)) => {}
                // What came before an error counts: a goodbye may precede a reset.
                Poll::Ready(Err(_)) if self.buffers.received.len() > before => break,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(false)
    }

    fn decode(&mut self) -> Result<(), Lost> {
        while let Some(event) = self.decoder.next(&mut self.buffers.received)? {
            match event {
                Event::Message(Message::Goodbye(goodbye)) => return Err(Lost::Goodbye(goodbye)),
                Event::Message(Message::Alive) => {}
                Event::Message(message) => self.role.message(&self.link, message)?,
                Event::Data(request, piece) => {
                    self.role.received(piece.len());
                    let now = self.link.now();
                    self.link.with(|state| state.take_data(request, piece, now))?;
                }
            }
        }
        Ok(())
    }

    /// Writes frames until the stream takes no more. Whether it took any.
    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, Lost> {
        let mut has_sent = false;
        for _ in 0..FRAMES {
            if !self.has_output() {
                self.moved = self.link.now();
            }
            if self.out.is_empty() && !self.next_frames(cx) {
                break;
            }
            let before = self.out.len();
            let written = self.write_out(cx);
            has_sent |= written.is_ready() || self.out.len() < before;
            if ready_or(written)?.is_none() {
                return Ok(has_sent);
            }
        }
        let _ = ready_or(self.flush(cx))?;
        Ok(has_sent)
    }

    fn next_frames(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.link.now();
        let bytes = self.link.with(|state| state.next_frames(now, &mut self.out, cx.waker()));
        bytes.inspect(|bytes| self.role.sent(*bytes)).is_some()
    }

    /// Writes all frames that have begun.
    fn write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            let written = ready!(write_parts(&mut self.stream, &self.out, cx))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            advance(&mut self.out, written);
            self.is_unflushed = true;
            self.moved = self.link.now();
        }
        Poll::Ready(Ok(()))
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Fails all requests of the connection with the error, and sends a Goodbye if the stream can still carry one.
    fn leave(&mut self, lost: Lost) {
        self.link.lose(lost.clone());
        let until: BoxFuture<'static, ()> = match lost.farewell() {
            Some(goodbye) => {
                self.out.push_back(Message::Goodbye(goodbye).to_frame());
                self.link.env().sleep(FAREWELL)
            }
            None => Box::pin(std::future::ready(())),
        };
        self.leaving = Some(Leaving { lost, until });
    }

    fn poll_leave(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        let said = self.say_farewell(cx);
        let Some(leaving) = &mut self.leaving else { return Poll::Pending };
        if said.is_pending() {
            ready!(leaving.until.as_mut().poll(cx));
        }
        Poll::Ready(leaving.lost.clone())
    }

    fn say_farewell(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_out(cx))?;
        ready!(self.flush(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<R: Role> Future for Driver<R> {
    type Output = Lost;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Lost> {
        let this = self.get_mut();
        if this.leaving.is_none() {
            let lost = ready!(this.run(cx));
            this.leave(lost);
        }
        this.poll_leave(cx)
    }
}

/// Nobody waits for a connection without a driver.
impl<R: Role> Drop for Driver<R> {
    fn drop(&mut self) {
        self.link.lose(Lost::Closed);
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
