//! What time ends: silence, requests without progress, the connection itself.

use afs_env::Instant;

use super::{Side, State};
use crate::frame::{Failure, Message, RequestId};
use crate::session::request::Request;
use crate::session::{Error, Lost, Patience};

impl State {
    /// Looks at what this end waits for, and at how long the peer has heard nothing.
    ///
    /// # Errors
    /// [`Lost::Silent`].
    pub fn tick(&mut self, now: Instant, patience: &Patience) -> Result<(), Lost> {
        if now - self.heard >= patience.silence {
            return Err(Lost::Silent);
        }
        if now - self.told >= patience.alive {
            self.told = now;
            self.send(&Message::Alive);
        }
        let late =
            |(id, request): (&RequestId, &Request)| self.is_late(request, now, patience).then_some(*id);
        let late: Vec<_> = self.requests.iter().filter_map(late).collect();
        late.into_iter().for_each(|id| self.give_up(id));
        Ok(())
    }

    fn is_late(&self, request: &Request, now: Instant, patience: &Patience) -> bool {
        request.is_stalled(now, patience.stall) || self.side == Side::Drive && request.is_too_slow(now)
    }

    fn give_up(&mut self, id: RequestId) {
        self.wake(id);
        match self.side {
            Side::Client => {
                self.set_error(id, Error::Stalled);
                self.send(&Message::Cancel { request: id });
            }
            Side::Drive => {
                self.remove(id);
                self.send(&Message::Failed { request: id, failure: Failure::Stalled });
            }
        }
    }

    /// Whether nobody has asked for anything for long.
    pub fn is_idle(&self, now: Instant, patience: &Patience) -> bool {
        self.requests.is_empty() && now - self.asked >= patience.idle
    }

    /// This end wants no more of the connection.
    pub fn close(&mut self) {
        self.is_closing = true;
        self.wake_driver();
    }

    /// The connection has ended. The first reason counts.
    pub fn lose(&mut self, lost: Lost) {
        self.lost.get_or_insert(lost);
        self.messages.clear();
        self.messages_len = 0;
        let wakers = self.requests.values_mut().filter_map(Request::take_waker);
        self.woken.extend(wakers);
        if self.side == Side::Drive {
            self.requests.clear();
        }
        self.wake_driver();
    }
}
