//! What the futures of requests do with the state of a connection.

use std::task::{Context, Poll};

use afs_env::Instant;
use bytes::Bytes;

use super::{Side, State};
use crate::frame::{Failure, Message, RequestId};
use crate::session::Error;
use crate::session::request::{Reply, Request};

impl State {
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
        let reply = request.error.clone().map(Err).or(request.reply.clone().map(Ok));
        request.wait(reply, cx)
    }

    /// Waits until a request is not in progress any more.
    pub fn poll_gone(&mut self, id: RequestId, cx: &Context<'_>) -> Poll<Error> {
        match self.request(id) {
            Ok(request) => request.wait(None, cx),
            Err(error) => Poll::Ready(error),
        }
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

    /// Waits until all bytes that were queued are with the stream.
    pub fn poll_drained(&mut self, id: RequestId, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_sending(id, cx, |request| request.sending.is_drained().then_some(()))
    }

    /// This end has sent all bytes of a stream, and says how many they were. At a drive the request is over.
    pub fn end_stream(&mut self, id: RequestId, now: Instant) -> Result<(), Error> {
        let request = self.request(id)?;
        let length = request.sending.close();
        request.progressed(0, now);
        self.send(&Message::Announce { request: id, length, file_length: 0 });
        if self.side == Side::Drive {
            self.end(id, None, now);
        }
        Ok(())
    }

    /// The client may have so many bytes more under way. Its next step begins now.
    pub fn widen(&mut self, id: RequestId, bytes: u32, now: Instant) {
        if let Some(request) = self.requests.get_mut(&id) {
            request.receiving.widen(bytes);
            request.progressed(0, now);
            self.send(&Message::Credit { request: id, bytes });
        }
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
}
