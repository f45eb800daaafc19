//! Driver of one connection: moves frames between a byte stream and the state.

mod input;
mod leaving;
mod output;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use afs_env::{BoxFuture, ByteStream, EnvExt, Instant};
use bytes::BytesMut;

use self::leaving::Leaving;
use self::output::Output;
use super::buffers::Buffers;
use super::link::Link;
use super::{Lost, Patience};
use crate::frame::{Decoder, Message};

/// Rounds of one poll, after which other tasks have their turn.
const ROUNDS: usize = 16;

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
    output: Output,
    tick: BoxFuture<'static, ()>,
    leaving: Option<Leaving>,
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
        let (output, tick) = (Output::new(link.now()), link.env().sleep(patience.tick()));
        Self {
            link,
            stream,
            role,
            patience,
            decoder: Decoder::default(),
            buffers: Buffers::new(received),
            output,
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
            if self.output.is_stuck(now, self.patience.stall) {
                return Err(Lost::Stuck);
            }
            self.role.tick(&self.link, now)?;
            if self.decoder.missing() == 0 {
                self.buffers.release();
            }
        }
        Ok(())
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
