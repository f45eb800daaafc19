//! What arrives on a connection.

use afs_env::Instant;
use bytes::Bytes;

use super::{MESSAGES_MAX, State};
use crate::frame::{Failure, RequestId};
use crate::session::request::{Awaited, Reply, Request};
use crate::session::{Error, Lost};

const TOO_MANY: &str = "more bytes than announced, or than there was credit for";

impl State {
    /// Bytes have arrived.
    pub fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Whether more input may be read.
    pub fn may_read(&self) -> bool {
        self.messages_len < MESSAGES_MAX
    }

    /// Bytes of a request have arrived. Those of a request that is over are dropped.
    pub fn take_data(&mut self, id: RequestId, piece: Bytes, now: Instant) -> Result<(), Lost> {
        let bytes = piece.len() as u64;
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.error.is_none()) else {
            return self.drop_late(id, bytes);
        };
        if !request.receiving.arrived(piece) {
            return Err(Lost::Violation(TOO_MANY));
        }
        request.progressed(bytes, now);
        self.wake(id);
        Ok(())
    }

    /// Bytes of a request that is over.
    fn drop_late(&mut self, id: RequestId, bytes: u64) -> Result<(), Lost> {
        self.check_known(id)?;
        self.late = self.late.checked_sub(bytes).ok_or(Lost::Violation(TOO_MANY))?;
        Ok(())
    }

    /// Removes a request. What is on its way may still arrive.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        self.late = self.late.saturating_add(request.outstanding());
        Some(request)
    }

    /// A request of this client has failed.
    pub(super) fn set_error(&mut self, id: RequestId, error: Error) {
        if let Some(request) = self.requests.get_mut(&id) {
            self.late = self.late.saturating_add(request.outstanding());
            request.error.get_or_insert(error);
        }
        self.wake(id);
    }

    /// The peer takes more bytes of a request. That is progress only where they wait for it: a peer that gives credit instead of
    /// what it is asked for does not keep the request alive.
    pub fn take_credit(&mut self, id: RequestId, bytes: u32, now: Instant) -> Result<(), Lost> {
        let Some(request) = self.requests.get_mut(&id) else { return self.check_known(id) };
        if request.sending.wants_credit() && bytes > 0 {
            request.progressed(0, now);
        }
        request.sending.add_credit(bytes);
        self.wake(id);
        self.wake_driver();
        Ok(())
    }

    /// The drive has replied.
    pub fn take_reply(&mut self, id: RequestId, reply: Reply, now: Instant) -> Result<(), Lost> {
        let Some(request) = self.requests.get_mut(&id) else { return self.check_known(id) };
        if let Reply::Announced { length, .. } = reply
            && request.is_stream()
            && request.reply.is_some()
        {
            return self.take_end(id, length, now);
        }
        let is_right = match (request.awaited, &reply) {
            (Awaited::Announcement(all), Reply::Announced { length, .. }) if request.is_stream() => {
                *length == all
            }
            (Awaited::Announcement(most), Reply::Announced { length, .. }) => *length <= most,
            (Awaited::Ticket, Reply::Stored(_)) => request.sending.left() == 0,
            (Awaited::Outcome, Reply::Performed(_)) => request.sending.left() == 0,
            _ => false,
        };
        if !is_right || request.reply.is_some() {
            return Err(Lost::Violation("a reply that the request cannot have"));
        }
        if let Reply::Announced { length, .. } = reply {
            request.receiving.announce(length);
        }
        request.reply = Some(reply);
        request.progressed(0, now);
        self.wake(id);
        Ok(())
    }

    /// The peer says that a stream has ended, and how many bytes it had.
    pub fn take_end(&mut self, id: RequestId, total: u64, now: Instant) -> Result<(), Lost> {
        let Some(request) = self.requests.get_mut(&id) else { return self.check_known(id) };
        if request.error.is_some() {
            return Ok(());
        }
        if !request.is_stream() || !request.receiving.end(total) {
            return Err(Lost::Violation("an end that the stream does not have"));
        }
        request.progressed(0, now);
        self.wake(id);
        Ok(())
    }

    /// The drive says that a request has failed.
    pub fn take_failure(&mut self, id: RequestId, failure: Failure) -> Result<(), Lost> {
        self.check_known(id)?;
        self.set_error(id, failure.into());
        Ok(())
    }

    /// The client has cancelled a request.
    pub fn take_cancel(&mut self, id: RequestId) -> Result<(), Lost> {
        self.check_known(id)?;
        self.wake(id);
        self.remove(id);
        Ok(())
    }

    /// A request that is over may still be named by what was sent before the peer knew that.
    pub(super) fn check_known(&self, id: RequestId) -> Result<(), Lost> {
        if id <= self.latest { Ok(()) } else { Err(Lost::Violation("a request that never began")) }
    }
}
