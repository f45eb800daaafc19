//! One request in progress, on either end.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_env::Instant;

use super::Error;
use super::receiving::Receiving;
use super::sending::Sending;
use crate::capability::TicketId;
use crate::frame::ChunkReply;

/// A drive's reply to a request of this client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    Announced { length: u64, file_length: u64 },
    Stored(TicketId),
    Performed(ChunkReply),
}

/// What a client waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Awaited {
    /// At a drive: nothing.
    Nothing,
    /// The announcement of at most so many bytes.
    Announcement(u64),
    /// A ticket, after all bytes were sent.
    Ticket,
    /// The outcome of a request for chunks, after all bytes were sent.
    Outcome,
}

/// A request: its bytes in either direction, the reply, and the one future that waits for any of them.
#[derive(Debug)]
pub(super) struct Request {
    pub sending: Sending,
    pub receiving: Receiving,
    pub awaited: Awaited,
    pub reply: Option<Reply>,
    pub error: Option<Error>,
    /// Whether it is a stream of a volume, whose pace and end a call decides.
    is_stream: bool,
    waiting: Option<Waker>,
    began: Instant,
    /// Since when nothing happened.
    quiet_since: Instant,
    /// Bytes so far, in either direction.
    moved: u64,
}

/// Time that a request has in any case, and bytes in a second that it must move after that: as for stores by calls.
const GRACE: Duration = Duration::from_secs(60);
const RATE_MIN: u64 = 4096;

impl Request {
    pub fn new(sending: Sending, receiving: Receiving, awaited: Awaited, now: Instant) -> Self {
        Self {
            sending,
            receiving,
            awaited,
            reply: None,
            error: None,
            is_stream: false,
            waiting: None,
            began: now,
            quiet_since: now,
            moved: 0,
        }
    }

    /// The same for a stream of a volume: it is never too slow.
    pub fn of_stream(self) -> Self {
        Self { is_stream: true, ..self }
    }

    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Something happened: so many bytes moved, or a message came or went.
    pub fn progressed(&mut self, bytes: u64, now: Instant) {
        self.moved += bytes;
        self.quiet_since = now;
    }

    /// `ready`, or pending with the waker kept.
    pub fn wait<T>(&mut self, ready: Option<T>, cx: &Context<'_>) -> Poll<T> {
        match ready {
            Some(value) => Poll::Ready(value),
            None => {
                self.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub fn take_waker(&mut self) -> Option<Waker> {
        self.waiting.take()
    }

    /// Whether a client has nothing more to expect from the drive.
    pub fn is_over(&self) -> bool {
        let is_complete = match self.awaited {
            Awaited::Nothing => false,
            Awaited::Announcement(_) => self.reply.is_some() && self.receiving.left() == 0,
            Awaited::Ticket | Awaited::Outcome => self.reply.is_some(),
        };
        self.error.is_some() || is_complete
    }

    /// Bytes that may still arrive when nobody wants them any more.
    pub fn outstanding(&self) -> u64 {
        let is_announced = !matches!(self.awaited, Awaited::Announcement(_)) || self.reply.is_some();
        if self.error.is_some() { 0 } else { self.receiving.outstanding(is_announced) }
    }

    /// Whether the peer has not done its next step for `stall`.
    pub fn is_stalled(&self, now: Instant, stall: Duration) -> bool {
        !self.is_stream && self.error.is_none() && self.is_peers_turn() && now - self.quiet_since >= stall
    }

    /// Whether it has moved fewer bytes than it must have by now.
    pub fn is_too_slow(&self, now: Instant) -> bool {
        !self.is_stream && now - self.began > GRACE + Duration::from_secs(self.moved / RATE_MIN)
    }

    fn is_peers_turn(&self) -> bool {
        let awaits_reply = match self.awaited {
            Awaited::Nothing => false,
            Awaited::Announcement(_) => self.reply.is_none(),
            Awaited::Ticket | Awaited::Outcome => self.reply.is_none() && self.sending.left() == 0,
        };
        awaits_reply || self.receiving.wants_bytes() || self.sending.wants_credit()
    }
}
