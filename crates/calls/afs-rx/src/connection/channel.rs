//! One of a connection's four channels: at most one call at a time, with rising numbers.

use crate::Instant;
use crate::slab::Key;

/// State of a channel. Small, since it outlives its calls for as long as the connection exists: with it a repeated
/// request is recognised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    /// Number of the current or latest call; 0 before the first.
    pub(crate) number: u32,
    pub(crate) call: Option<Key>,
    /// Outcome of the latest call, when there is no current one.
    pub(crate) ended: Ended,
    /// Client: when the reply that was read is acked, unless a new call does that first.
    pub(crate) final_ack_at: Instant,
    /// Client: the server replied BUSY on the channel, or a call on it timed out.
    pub(crate) busy: bool,
}

/// Outcome of a channel's latest call, as far as late packets are answered with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// There was no call, or late packets are not answered.
    Silent,
    /// Everything was received; `first` is the packet number after the last.
    Received { first: u32 },
    /// It was aborted by this side with this code.
    Aborted(i32),
}

impl Default for Channel {
    fn default() -> Self {
        Channel {
            number: 0,
            call: None,
            ended: Ended::Silent,
            final_ack_at: Instant::FAR_FUTURE,
            busy: false,
        }
    }
}

impl Channel {
    /// Assigns the channel to a new call.
    pub(crate) fn begin(&mut self, number: u32, call: Key) {
        *self = Channel { number, call: Some(call), ..Channel::default() };
    }

    /// Removes the call from the channel.
    pub(crate) fn end(&mut self, ended: Ended) {
        self.call = None;
        self.ended = ended;
    }
}
