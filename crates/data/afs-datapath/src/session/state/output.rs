//! What leaves on a connection: messages, and frames of bytes in turns.

use std::collections::VecDeque;
use std::task::Waker;

use afs_env::Instant;
use bytes::Bytes;

use super::{Side, State};
use crate::frame::encode_data;
use crate::session::turns::Candidate;

impl State {
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
}
