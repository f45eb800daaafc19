//! One of a connection's four channels: at most one call at a time, with rising numbers.

use crate::Instant;
use crate::slab::Key;

/// What a channel remembers. Small, since it outlives its calls for as long as the connection lives: that
/// is how a repeated request is told from a new one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    /// Number of the current or latest call; 0 before the first.
    pub(crate) number: u32,
    pub(crate) call: Option<Key>,
    /// How the latest call ended, when there is none at present.
    pub(crate) ended: Ended,
    /// Client: when the reply that was read is acked, unless a new call does that.
    pub(crate) final_ack_at: Instant,
    /// Client: the server said that it was busy with the channel, or a call on it timed out here.
    pub(crate) busy: bool,
}

/// The end of a channel's latest call, as far as a late packet needs to be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// There was none, or nothing is answered.
    Silent,
    /// Everything was received; `first` is the packet number after the last.
    Received { first: u32 },
    /// It was aborted from here with this code.
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
    /// Gives the channel to a new call.
    pub(crate) fn begin(&mut self, number: u32, call: Key) {
        *self = Channel { number, call: Some(call), ..Channel::default() };
    }

    /// Takes the call off the channel.
    pub(crate) fn end(&mut self, ended: Ended) {
        self.call = None;
        self.ended = ended;
    }
}
