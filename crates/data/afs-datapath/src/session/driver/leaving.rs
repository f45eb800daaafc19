//! End of a connection: its requests fail, and a Goodbye with the reason is sent to the peer while the stream can be written.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use afs_env::io::AsyncWrite;
use afs_env::{BoxFuture, EnvExt};

use super::{Driver, Role};
use crate::frame::Message;
use crate::session::Lost;

/// How long an end that gives up a connection tries to say so.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection that has ended here, with a goodbye on its way.
pub(super) struct Leaving {
    lost: Lost,
    until: BoxFuture<'static, ()>,
}

impl<R: Role> Driver<R> {
    /// Fails all requests of the connection with the error, and sends a Goodbye if the stream can still carry one.
    pub(super) fn leave(&mut self, lost: Lost) {
        self.link.lose(lost.clone());
        let until: BoxFuture<'static, ()> = match lost.farewell() {
            Some(goodbye) => {
                self.output.parts.push_back(Message::Goodbye(goodbye).to_frame());
                self.link.env().sleep(FAREWELL)
            }
            None => Box::pin(std::future::ready(())),
        };
        self.leaving = Some(Leaving { lost, until });
    }

    pub(super) fn poll_leave(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        let said = self.say_farewell(cx);
        let Some(leaving) = &mut self.leaving else { return Poll::Pending };
        if said.is_pending() {
            ready!(leaving.until.as_mut().poll(cx));
        }
        Poll::Ready(leaving.lost.clone())
    }

    fn say_farewell(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
