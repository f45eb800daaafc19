//! Input of a connection: what the stream has is read, decoded and acted on.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};

use afs_env::io::AsyncReadExt;

use super::{Driver, Role};
use crate::frame::{Event, Message};
use crate::session::Lost;

impl<R: Role> Driver<R> {
    /// Reads what has arrived, up to a buffer full, and acts on it.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, Lost> {
        // What came with the first frames is in the buffer without a read.
        self.decode()?;
        if !self.link.with(|state| state.may_read()) {
            return Ok(false);
        }
        let before = self.buffers.received.len();
        let lost = self.fill(cx);
        let has_received = self.buffers.received.len() > before;
        if has_received {
            let now = self.link.now();
            self.link.with(|state| state.hear(now));
            self.decode()?;
        }
        // What came before counts: a goodbye may precede a reset.
        lost.map_or(Ok(has_received), Err)
    }

    /// Reads until nothing is left, or the buffer is full. Why the stream is over, if it is.
    fn fill(&mut self, cx: &mut Context<'_>) -> Option<Lost> {
        self.buffers.make_space(self.decoder.missing());
        while self.buffers.received.capacity() > self.buffers.received.len() {
            let read = pin!(self.stream.read_buf(&mut self.buffers.received)).poll(cx);
            match read {
                Poll::Ready(Ok(0)) => return Some(Lost::Cut),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Some(error.into()),
                Poll::Pending => break,
            }
        }
        None
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
}
