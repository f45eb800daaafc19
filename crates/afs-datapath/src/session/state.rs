//! State of one connection, without I/O and clock: requests, and what is to be sent.
//!
//! The driver tells it what has arrived and asks it for frames; the futures of requests ask it for what concerns them. Wakers that
//! are due are kept in a list until the lock on the state is released.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};

use afs_env::Instant;
use bytes::Bytes;

use super::request::{Awaited, Reply, Request};
use super::turns::{Candidate, Turns};
use super::{Error, Lost, Patience};
use crate::frame::{Failure, Message, RequestId, encode_data};

/// Bytes of messages that wait to be sent before an end stops reading: a peer that does not read what it is told cannot make it
/// keep more.
const MESSAGES_MAX: usize = 64 << 10;

const TOO_MANY: &str = "more bytes than announced, or than there was credit for";

/// State of one end of a connection.
#[derive(Debug)]
pub(super) struct State {
    side: Side,
    messages: VecDeque<Bytes>,
    messages_len: usize,
    requests: BTreeMap<RequestId, Request>,
    turns: Turns,
    /// Bytes that may still arrive for requests that are over: what the peer had credit for when they ended.
    late: u64,
    /// The latest request of the client.
    latest: RequestId,
    lost: Option<Lost>,
    /// Whether this end wants to close the connection once everything is sent.
    is_closing: bool,
    heard: Instant,
    told: Instant,
    /// When there was a request last.
    asked: Instant,
    driver: Option<Waker>,
    woken: Vec<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Drive,
}

impl State {
    pub fn new(side: Side, now: Instant) -> Self {
        Self {
            side,
            messages: VecDeque::new(),
            messages_len: 0,
            requests: BTreeMap::new(),
            turns: Turns::default(),
            late: 0,
            latest: RequestId::default(),
            lost: None,
            is_closing: false,
            heard: now,
            told: now,
            asked: now,
            driver: None,
            woken: Vec::new(),
        }
    }

    /// Wakers to be called without the lock.
    pub fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }

    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    pub fn latest(&self) -> RequestId {
        self.latest
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    // What requests do.

    /// A number for a new request of this client; `None` when all are used up.
    pub fn issue(&mut self) -> Option<RequestId> {
        self.latest = RequestId(self.latest.0.checked_add(1)?);
        Some(self.latest)
    }

    /// Adds a request, the latest one.
    pub fn begin(&mut self, id: RequestId, request: Request, now: Instant) {
        self.latest = id;
        self.asked = now;
        self.requests.insert(id, request);
    }

    /// Sends a message. After the connection has ended nobody gets it.
    pub fn send(&mut self, message: &Message) {
        if self.lost.is_none() {
            let frame = message.to_frame();
            self.messages_len += frame.len();
            self.messages.push_back(frame);
            self.wake_driver();
        }
    }

    /// The drive's reply.
    pub fn poll_reply(&mut self, id: RequestId, cx: &Context<'_>) -> Poll<Result<Reply, Error>> {
        let request = match self.request(id) {
            Ok(request) => request,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let reply = request.error.clone().map(Err).or(request.reply.map(Ok));
        request.wait(reply, cx)
    }

    /// The next bytes of a request; `None` after the last.
    pub fn poll_take(
        &mut self,
        id: RequestId,
        now: Instant,
        cx: &Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Error>> {
        let request = match self.request(id) {
            Ok(request) => request,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if let Some(error) = request.error.clone() {
            return Poll::Ready(Err(error));
        }
        let Some(piece) = request.receiving.take() else {
            let end = request.receiving.is_over().then_some(Ok(None));
            return request.wait(end, cx);
        };
        if let Some(bytes) = request.receiving.credit_due() {
            request.progressed(0, now);
            self.send(&Message::Credit { request: id, bytes });
        }
        Poll::Ready(Ok(Some(piece)))
    }

    /// How many bytes the peer would take now, at least one.
    pub fn poll_wanted(&mut self, id: RequestId, cx: &Context<'_>) -> Poll<Result<usize, Error>> {
        self.poll_sending(id, cx, |request| Some(request.sending.wanted()).filter(|wanted| *wanted > 0))
    }

    /// Waits until more bytes may be queued.
    pub fn poll_room(&mut self, id: RequestId, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_sending(id, cx, |request| request.sending.has_room().then_some(()))
    }

    /// Waits until all bytes of a request are with the stream: at a drive it is removed then.
    pub fn poll_sent(&mut self, id: RequestId, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_sending(id, cx, |request| (request.sending.left() == 0).then_some(()))
    }

    fn poll_sending<T>(
        &mut self,
        id: RequestId,
        cx: &Context<'_>,
        ready: impl FnOnce(&Request) -> Option<T>,
    ) -> Poll<Result<T, Error>> {
        let request = match self.request(id) {
            Ok(request) => request,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let ready = request.error.clone().map(Err).or_else(|| ready(request).map(Ok));
        request.wait(ready, cx)
    }

    /// Queues bytes of a request.
    ///
    /// # Errors
    /// [`Error::Length`] if they are more than the request has.
    pub fn push(&mut self, id: RequestId, piece: Bytes) -> Result<(), Error> {
        let request = self.request(id)?;
        if piece.len() as u64 > request.sending.missing() {
            return Err(Error::Length);
        }
        if !piece.is_empty() {
            request.sending.push(piece);
            self.wake_driver();
        }
        Ok(())
    }

    /// Bytes of a request that were not queued yet.
    pub fn missing(&mut self, id: RequestId) -> Result<u64, Error> {
        self.request(id).map(|request| request.sending.missing())
    }

    /// A request that fails at once. So many of its bytes may be on their way.
    pub fn reject(&mut self, id: RequestId, failure: Failure, late: u64) {
        self.latest = id;
        self.late = self.late.saturating_add(late);
        self.send(&Message::Failed { request: id, failure });
    }

    /// Whether all bytes of a request have arrived and were taken.
    pub fn is_taken(&mut self, id: RequestId) -> Result<bool, Error> {
        self.request(id).map(|request| request.receiving.is_over())
    }

    /// A drive announces the bytes of a read.
    pub fn announce(
        &mut self,
        id: RequestId,
        length: u64,
        file_length: u64,
        now: Instant,
    ) -> Result<(), Error> {
        let request = self.request(id)?;
        request.sending.announce(length);
        request.progressed(0, now);
        self.send(&Message::Announce { request: id, length, file_length });
        Ok(())
    }

    /// A drive has ended a request: it is removed, and the client gets the message. Nothing is said of one that was cancelled.
    pub fn end(&mut self, id: RequestId, message: Option<&Message>, now: Instant) {
        self.asked = now;
        if self.remove(id).is_some()
            && let Some(message) = message
        {
            self.send(message);
        }
    }

    /// A client has no more use for a request.
    pub fn release(&mut self, id: RequestId) {
        if self.remove(id).is_some_and(|request| !request.is_over()) {
            self.send(&Message::Cancel { request: id });
        }
    }

    fn request(&mut self, id: RequestId) -> Result<&mut Request, Error> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone().into());
        }
        // Only a drive's requests are removed while a task uses them: the client has cancelled it, or made no progress.
        self.requests.get_mut(&id).ok_or(Error::Stalled)
    }

    // What the driver does.

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
    fn remove(&mut self, id: RequestId) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        self.late = self.late.saturating_add(request.outstanding());
        Some(request)
    }

    /// A request of this client has failed.
    fn set_error(&mut self, id: RequestId, error: Error) {
        if let Some(request) = self.requests.get_mut(&id) {
            self.late = self.late.saturating_add(request.outstanding());
            request.error.get_or_insert(error);
        }
        self.wake(id);
    }

    /// The peer takes more bytes of a request.
    pub fn take_credit(&mut self, id: RequestId, bytes: u32, now: Instant) -> Result<(), Lost> {
        let Some(request) = self.requests.get_mut(&id) else { return self.check_known(id) };
        request.sending.add_credit(bytes);
        request.progressed(0, now);
        self.wake(id);
        self.wake_driver();
        Ok(())
    }

    /// The drive has replied.
    pub fn take_reply(&mut self, id: RequestId, reply: Reply, now: Instant) -> Result<(), Lost> {
        let Some(request) = self.requests.get_mut(&id) else { return self.check_known(id) };
        let is_right = match (request.awaited, reply) {
            (Awaited::Announcement(most), Reply::Announced { length, .. }) => length <= most,
            (Awaited::Ticket, Reply::Stored(_)) => request.sending.left() == 0,
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
    fn check_known(&self, id: RequestId) -> Result<(), Lost> {
        if id <= self.latest { Ok(()) } else { Err(Lost::Violation("a request that never began")) }
    }

    /// Adds what is to be sent next to `out`: all messages, and at most one frame of bytes. Returns the number of those bytes;
    /// `None` if there is nothing, and then `waker` is called when there is.
    pub fn next_frames(&mut self, now: Instant, out: &mut VecDeque<Bytes>, waker: &Waker) -> Option<usize> {
        if self.lost.is_some() {
            return None;
        }
        let had = out.len();
        out.extend(self.messages.drain(..));
        self.messages_len = 0;
        let bytes = self.next_data(now, out);
        if out.len() == had {
            self.driver = Some(waker.clone());
            return None;
        }
        self.told = now;
        Some(bytes)
    }

    fn next_data(&mut self, now: Instant, out: &mut VecDeque<Bytes>) -> usize {
        let ready = self.requests.iter().filter(|(_, request)| request.sending.is_ready());
        let candidates = ready.map(|(id, request)| Candidate { request: *id, left: request.sending.left() });
        let Some(id) = self.turns.next(candidates) else { return 0 };
        let Some(request) = self.requests.get_mut(&id) else { return 0 };
        let mut body = Vec::new();
        let bytes = request.sending.next_frame(&mut body);
        request.progressed(bytes as u64, now);
        out.push_back(encode_data(id, bytes));
        out.extend(body);
        let is_sent = request.sending.left() == 0;
        self.wake(id);
        if is_sent && self.side == Side::Drive {
            // The client may begin another one as soon as it has the bytes.
            self.remove(id);
            self.asked = now;
        }
        bytes
    }

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

    fn wake(&mut self, id: RequestId) {
        let waker = self.requests.get_mut(&id).and_then(Request::take_waker);
        self.woken.extend(waker);
    }

    fn wake_driver(&mut self) {
        let driver = self.driver.take();
        self.woken.extend(driver);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DATA_MAX;
    use crate::session::receiving::Receiving;
    use crate::session::sending::Sending;

    const NOW: Instant = Instant(1);

    /// A drive in the middle of a read of `left` bytes, with all of a piece queued.
    fn sending(state: &mut State, id: u32, left: u64, piece: usize) {
        let sending = Sending::new(left, u64::MAX);
        let request = Request::new(sending, Receiving::default(), Awaited::Nothing, NOW);
        state.begin(RequestId(id), request, NOW);
        state.push(RequestId(id), vec![id as u8; piece].into()).unwrap();
    }

    /// The first word behind the header of the next data frame, and its length.
    fn next(state: &mut State) -> (u8, usize) {
        let mut out = VecDeque::new();
        let bytes = state.next_frames(NOW, &mut out, Waker::noop()).unwrap();
        (out[1][0], bytes)
    }

    #[test]
    fn a_small_read_waits_for_one_frame_of_a_stream() {
        let mut state = State::new(Side::Drive, NOW);
        sending(&mut state, 1, 1 << 30, 2 * DATA_MAX);
        sending(&mut state, 2, 1 << 30, 2 * DATA_MAX);
        assert_eq!(next(&mut state), (1, DATA_MAX));
        sending(&mut state, 3, 100, 100);
        assert_eq!(next(&mut state), (3, 100));
        assert_eq!((next(&mut state).0, next(&mut state).0), (2, 1));
    }

    #[test]
    fn messages_precede_bytes() {
        let mut state = State::new(Side::Drive, NOW);
        sending(&mut state, 1, 1 << 20, DATA_MAX);
        state.send(&Message::Alive);
        let mut out = VecDeque::new();
        state.next_frames(NOW, &mut out, Waker::noop());
        assert_eq!(out[0], Message::Alive.to_frame());
        assert_eq!(out.len(), 3, "the message, a header, its bytes");
    }

    #[test]
    fn late_bytes_are_those_that_had_credit() {
        let mut state = State::new(Side::Client, NOW);
        let id = state.issue().unwrap();
        let receiving = Receiving::new(0, 1000);
        state.begin(id, Request::new(Sending::default(), receiving, Awaited::Announcement(5000), NOW), NOW);
        state.take_reply(id, Reply::Announced { length: 5000, file_length: 5000 }, NOW).unwrap();
        state.take_data(id, vec![0; 300].into(), NOW).unwrap();
        state.release(id);
        assert_eq!(state.take_data(id, vec![0; 700].into(), NOW), Ok(()));
        assert!(state.take_data(id, vec![0; 1].into(), NOW).is_err());
        assert!(state.take_data(RequestId(2), vec![0; 1].into(), NOW).is_err(), "a request that never began");
    }

    #[test]
    fn what_the_peer_does_not_do_is_given_up() {
        let patience = Patience::default();
        let mut state = State::new(Side::Drive, NOW);
        let request = Request::new(Sending::new(10, 0), Receiving::default(), Awaited::Nothing, NOW);
        state.begin(RequestId(1), request, NOW);
        state.tick(NOW + patience.stall / 2, &patience).unwrap();
        assert_eq!(state.requests(), 1);
        state.tick(NOW + patience.stall, &patience).unwrap();
        assert_eq!(state.requests(), 0);
        assert_eq!(state.tick(NOW + patience.silence, &patience), Err(Lost::Silent));
    }
}
