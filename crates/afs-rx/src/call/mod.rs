//! One call: a request in one direction, then a reply in the other.

mod ack;
mod receive;
mod send;

pub(crate) use ack::PendingAck;
pub(crate) use receive::{Arrival, KEPT_COST, ReceiveStream, Received, ack_delay, final_ack_at};
pub(crate) use send::{Freshness, Outgoing, Pick, SendStream, Timeout};

use crate::Instant;
use crate::endpoint::Share;
use crate::error::CallError;
use crate::ids::{CallId, Side};
use crate::slab::Key;
use core::time::Duration;

/// Lives from its first packet (or `open_call`) until it is both over and released.
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) connection: Key,
    pub(crate) channel: usize,
    pub(crate) number: u32,
    pub(crate) side: Side,
    pub(crate) send: SendStream,
    pub(crate) receive: ReceiveStream,
    pub(crate) ack: PendingAck,
    pub(crate) phase: Phase,
    /// Why it failed; set once.
    pub(crate) error: Option<CallError>,
    pub(crate) released: bool,
    /// Server: where it is counted, once it is admitted.
    pub(crate) share: Option<Share>,
    /// In the endpoint's list of calls with something to transmit.
    pub(crate) queued: bool,
    /// What it sends is on its way out: it has no turn until that has left.
    pub(crate) leaving: bool,
    /// A ping is to be sent.
    pub(crate) ping: bool,
    /// When to look whether a ping is due.
    pub(crate) ping_check_at: Instant,
    /// The code that late packets are answered with.
    pub(crate) abort_code: Option<i32>,
    pub(crate) read_blocked: bool,
    pub(crate) write_blocked: bool,
    pub(crate) request_done_told: bool,
    /// Packets of the peer that did not open.
    pub(crate) rejected: u32,
    /// Until when one that did not open must have come again.
    pub(crate) mend_by: Instant,
    pub(crate) last_sent: Instant,
    pub(crate) last_heard: Instant,
    /// When the network said that the peer cannot be reached; means something until the peer is heard.
    doubted_at: Instant,
    /// Since when the peer has given no data and taken none.
    pub(crate) last_progress: Instant,
    pub(crate) limits: Limits,
}

/// Where a call stands. A client call is `Active` from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Server: waits for authentication or for the peer to prove reachable.
    Waiting,
    /// The application has it.
    Active,
    /// Over, well or badly; its channel has another or none.
    Over,
}

/// A call's time limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) dead: Duration,
    /// Dead time with the peer's fudge.
    pub(crate) dead_with_fudge: Duration,
    /// The dead time that the connection began with.
    base: Duration,
    pub(crate) idle: Duration,
    pub(crate) deadline: Instant,
}

impl Limits {
    /// Without a deadline, and before anything is known of the peer's fudge.
    pub(crate) fn new(dead: Duration, idle: Duration) -> Self {
        Limits { dead, dead_with_fudge: dead, base: dead, idle, deadline: Instant::FAR_FUTURE }
    }

    /// Keepalive interval.
    fn ping(&self) -> Duration {
        self.base / PINGS_IN_DEAD_TIME
    }

    /// How long a peer that is there may take to send a packet again.
    pub(crate) fn mend(&self) -> Duration {
        self.base + self.fudge()
    }

    fn fudge(&self) -> Duration {
        self.dead_with_fudge.saturating_sub(self.dead)
    }

    /// The peer may be silent for this long at least, with as many pings a second as before.
    pub(crate) fn outlast(&mut self, dead: Duration) {
        let fudge = self.fudge();
        self.dead = self.dead.max(dead);
        self.dead_with_fudge = self.dead + fudge;
    }
}

/// A limit that a call has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expired {
    Dead,
    Idle,
    Deadline,
}

/// Streams end here, with room for arithmetic: terabytes even in the smallest packets.
pub(crate) const SEQ_MAX: u32 = u32::MAX - (1 << 16);
/// Keepalive interval: the dead time divided by this.
const PINGS_IN_DEAD_TIME: u32 = 6;
/// Keepalive interval while it is doubted that the peer can be reached.
const DOUBT_PINGS: Duration = Duration::from_millis(500);
/// A peer in doubt is given up after this and its fudge.
const DOUBT_PATIENCE: Duration = Duration::from_secs(1);

impl Call {
    pub(crate) fn new() -> Self {
        Call {
            id: CallId(Key { slot: u32::MAX, generation: 0 }),
            connection: Key { slot: u32::MAX, generation: 0 },
            channel: 0,
            number: 0,
            side: Side::Client,
            send: SendStream::new(),
            receive: ReceiveStream::new(),
            ack: PendingAck::default(),
            phase: Phase::Over,
            error: None,
            released: false,
            queued: false,
            leaving: false,
            ping: false,
            ping_check_at: Instant::FAR_FUTURE,
            abort_code: None,
            share: None,
            read_blocked: false,
            write_blocked: false,
            request_done_told: false,
            rejected: 0,
            mend_by: Instant::FAR_FUTURE,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            doubted_at: Instant::ZERO,
            last_progress: Instant::ZERO,
            limits: Limits::new(Duration::ZERO, Duration::MAX),
        }
    }

    /// Makes a used (or new) structure into a fresh call. Keeps the buffers' memory.
    pub(crate) fn begin(&mut self, now: Instant, side: Side, limits: Limits) {
        self.side = side;
        self.ack = PendingAck::default();
        self.phase = if side == Side::Client { Phase::Active } else { Phase::Waiting };
        self.error = None;
        self.released = false;
        self.queued = false;
        self.leaving = false;
        self.ping = false;
        self.ping_check_at = now + limits.ping();
        self.abort_code = None;
        self.share = None;
        self.read_blocked = side == Side::Client;
        self.write_blocked = false;
        self.request_done_told = false;
        self.rejected = 0;
        self.mend_by = Instant::FAR_FUTURE;
        self.last_sent = now;
        self.last_heard = now;
        self.doubted_at = Instant::ZERO;
        self.last_progress = now;
        self.limits = limits;
    }

    /// True while the call's direction is towards the peer: a server has begun to reply, or a client has
    /// not yet been answered.
    pub(crate) fn is_sending(&self) -> bool {
        match self.side {
            Side::Client => !self.receive.has_begun(),
            Side::Server => self.send.has_begun(),
        }
    }

    /// A server's reply that is complete and delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.side == Side::Server && self.send.is_delivered()
    }

    /// Something can be sent right now.
    pub(crate) fn has_output(&self, capacity: usize) -> bool {
        self.ping || self.ack.is_due() || self.send.can_send(capacity)
    }

    /// The peer can know of the call. Until then its silence means nothing.
    fn is_known_to_peer(&self) -> bool {
        self.side == Side::Server || self.send.was_sent()
    }

    /// The network says that the peer cannot be reached: asks it.
    pub(crate) fn doubt(&mut self, now: Instant) {
        if self.phase == Phase::Over || !self.is_known_to_peer() {
            return;
        }
        if !self.is_doubted() {
            self.doubted_at = now;
        }
        self.ping = true;
        self.ping_check_at = self.ping_check_at.min(now + DOUBT_PINGS);
    }

    /// Nothing was heard of the peer since the network said that it cannot be reached.
    fn is_doubted(&self) -> bool {
        self.last_heard < self.doubted_at
    }

    /// When the peer's silence has lasted too long.
    fn dead_at(&self) -> Instant {
        let dead_at = self.last_heard + self.limits.dead_with_fudge;
        match self.is_doubted() {
            true => dead_at.min(self.doubted_at + DOUBT_PATIENCE + self.limits.fudge()),
            false => dead_at,
        }
    }

    /// Owes the peer a ping if nothing was sent for an interval: docs/protocol/rx.md "9. Keepalive".
    pub(crate) fn check_keepalive(&mut self, now: Instant) {
        if now < self.ping_check_at {
            return;
        }
        let interval = match self.is_doubted() {
            true => DOUBT_PINGS,
            false => self.limits.ping(),
        };
        let quiet_until = self.last_sent + interval;
        self.ping |= now >= quiet_until && self.is_known_to_peer();
        self.ping_check_at = if now >= quiet_until { now + interval } else { quiet_until };
    }

    /// True when the call cannot go on without the peer, and the application wants it to.
    fn waits_for_peer(&self) -> bool {
        match (self.side, self.is_sending()) {
            (Side::Server, true) => self.send.has_unacked() || self.write_blocked,
            (Side::Server, false) => self.read_blocked && !self.receive.is_complete(),
            (Side::Client, true) => self.send.has_unacked(),
            (Side::Client, false) => !self.receive.is_complete(),
        }
    }

    /// When some timer of the call wants attention.
    pub(crate) fn deadline(&self) -> Instant {
        if self.phase == Phase::Over {
            return Instant::FAR_FUTURE;
        }
        let mut at = self.limits.deadline.min(self.ping_check_at).min(self.mend_by);
        if self.is_known_to_peer() {
            at = at.min(self.dead_at());
        }
        at = at.min(self.send.resend_at).min(self.send.reorder_at).min(self.ack.delayed_until());
        if self.limits.idle != Duration::MAX && self.waits_for_peer() {
            at = at.min(self.last_progress + self.limits.idle);
        }
        at
    }

    /// The limit that has passed, if one has.
    pub(crate) fn expired(&self, now: Instant) -> Option<Expired> {
        if now >= self.limits.deadline {
            return Some(Expired::Deadline);
        }
        let silent = self.is_known_to_peer() && now >= self.dead_at();
        if silent || now >= self.mend_by {
            return Some(Expired::Dead);
        }
        let idle = self.limits.idle != Duration::MAX && self.waits_for_peer();
        (idle && now >= self.last_progress + self.limits.idle).then_some(Expired::Idle)
    }

    /// Drops all data and timers; what is left tells of the end.
    pub(crate) fn clear(&mut self) -> usize {
        self.phase = Phase::Over;
        self.ping = false;
        self.ack = PendingAck::default();
        self.send.clear();
        self.receive.clear()
    }
}
