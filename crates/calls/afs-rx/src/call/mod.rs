//! State of one call: a request in one direction, then a reply in the other, with its timers and phase.

mod pending_ack;
mod receive;
mod send;

pub(crate) use pending_ack::{PendingAck, SOFT_DELAY};
pub(crate) use receive::{Arrival, KEPT_COST, ReceiveStream, Received};
pub(crate) use send::{Freshness, Outgoing, Pick, SendStream, Timeout};

use crate::Instant;
use crate::error::CallError;
use crate::ids::{CallId, Side};
use crate::slab::Key;
use afs_env::admission::Slot;
use core::time::Duration;
use pending_ack::{FINAL_DELAY, FINAL_DELAY_PROBED};

/// A call exists from its first packet (or `open_call`) until it is both over and released.
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
    /// The error that the call failed with; set once.
    pub(crate) error: Option<CallError>,
    pub(crate) released: bool,
    /// Server: its entry in the table of calls of clients.
    pub(crate) slot: Option<Slot>,
    /// In the endpoint's list of calls with something to transmit.
    pub(crate) queued: bool,
    /// Packets of the call are being sealed or sent: it may not send more until that is done.
    pub(crate) in_turn: bool,
    /// A ping must be sent.
    pub(crate) ping: bool,
    /// When and since when the peer has been asked whether it lives, though large packets do not arrive.
    pub(crate) narrow: Option<NarrowPath>,
    /// A ping as large as the packets that are not yet known to arrive is to be sent.
    pub(crate) path_ping: bool,
    /// Time of the next keepalive check.
    pub(crate) ping_check_at: Instant,
    /// Abort code that late packets are answered with.
    pub(crate) abort_code: Option<i32>,
    pub(crate) read_blocked: bool,
    pub(crate) write_blocked: bool,
    pub(crate) request_done_told: bool,
    /// Client: the request was acked before the reply began.
    pub(crate) request_was_acked: bool,
    /// Packets of the peer that failed to open.
    pub(crate) rejected: u32,
    /// Deadline for the retransmission of a packet that failed to open.
    pub(crate) retransmission_by: Instant,
    pub(crate) last_sent: Instant,
    pub(crate) last_heard: Instant,
    /// When the network last reported the peer unreachable; void once the peer is heard from.
    unreachable_at: Instant,
    /// Time of the last data received from or accepted by the peer.
    pub(crate) last_progress: Instant,
    pub(crate) limits: Limits,
}

/// Phase of a call. A client call is `Active` from the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Server: waits for authentication or for the client's address to be validated.
    Waiting,
    /// The application has the call.
    Active,
    /// Ended, with success or failure; its channel has another call or none.
    Over,
}

/// Time limits of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) dead: Duration,
    /// Dead time plus the peer's fudge.
    pub(crate) dead_with_fudge: Duration,
    /// The connection's dead time at the start of the call.
    base: Duration,
    pub(crate) idle: Duration,
    pub(crate) deadline: Instant,
    /// Until when the first packet is sent again.
    pub(crate) repeat_until: Instant,
}

impl Limits {
    /// Limits without a deadline, before the peer's fudge is known.
    pub(crate) fn new(dead: Duration, idle: Duration) -> Self {
        let never = Instant::FAR_FUTURE;
        Limits { dead, dead_with_fudge: dead, base: dead, idle, deadline: never, repeat_until: never }
    }

    /// Keepalive interval.
    fn ping(&self) -> Duration {
        self.base / PINGS_IN_DEAD_TIME
    }

    /// How long a live peer may take to retransmit a packet.
    pub(crate) fn retransmission_max(&self) -> Duration {
        self.base + self.fudge()
    }

    fn fudge(&self) -> Duration {
        self.dead_with_fudge.saturating_sub(self.dead)
    }

    /// Raises the dead time to at least this, with an unchanged ping rate.
    pub(crate) fn raise_dead_time(&mut self, dead: Duration) {
        let fudge = self.fudge();
        self.dead = self.dead.max(dead);
        self.dead_with_fudge = self.dead + fudge;
    }
}

/// Suspicion that the path of a call swallows large packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NarrowPath {
    /// When a small ping was sent.
    pub(crate) asked_at: Instant,
    /// When its answer decides.
    pub(crate) decided_at: Instant,
}

/// The limit that a call has exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expired {
    Dead,
    Idle,
    Deadline,
}

/// Largest sequence number, with headroom for arithmetic: terabytes even in the smallest packets.
pub(crate) const SEQ_MAX: u32 = u32::MAX - (1 << 16);
/// Keepalive interval: the dead time divided by this.
const PINGS_IN_DEAD_TIME: u32 = 6;
/// Keepalive interval after the network reported the peer unreachable.
const SUSPECT_PING_INTERVAL: Duration = Duration::from_millis(500);
/// Dead time after the network reported the peer unreachable, without the fudge.
const SUSPECT_DEAD_TIME: Duration = Duration::from_secs(1);

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
            in_turn: false,
            ping: false,
            narrow: None,
            path_ping: false,
            ping_check_at: Instant::FAR_FUTURE,
            abort_code: None,
            slot: None,
            read_blocked: false,
            write_blocked: false,
            request_done_told: false,
            request_was_acked: false,
            rejected: 0,
            retransmission_by: Instant::FAR_FUTURE,
            last_sent: Instant::ZERO,
            last_heard: Instant::ZERO,
            unreachable_at: Instant::ZERO,
            last_progress: Instant::ZERO,
            limits: Limits::new(Duration::ZERO, Duration::MAX),
        }
    }

    /// Resets a used (or new) structure for a fresh call. Keeps the buffers' memory.
    pub(crate) fn begin(&mut self, now: Instant, side: Side, limits: Limits) {
        self.side = side;
        self.ack = PendingAck::default();
        self.phase = if side == Side::Client { Phase::Active } else { Phase::Waiting };
        self.error = None;
        self.released = false;
        self.queued = false;
        self.in_turn = false;
        self.ping = false;
        self.path_ping = false;
        self.narrow = None;
        self.ping_check_at = now + limits.ping();
        self.abort_code = None;
        self.slot = None;
        self.read_blocked = side == Side::Client;
        self.write_blocked = false;
        self.request_done_told = false;
        self.request_was_acked = false;
        self.rejected = 0;
        self.retransmission_by = Instant::FAR_FUTURE;
        self.last_sent = now;
        self.last_heard = now;
        self.unreachable_at = Instant::ZERO;
        self.last_progress = now;
        self.limits = limits;
    }

    /// True while this side sends: a server has begun to reply, or a client has not yet received a reply.
    pub(crate) fn is_sending(&self) -> bool {
        match self.side {
            Side::Client => !self.receive.has_begun(),
            Side::Server => self.send.has_begun(),
        }
    }

    /// Longest delay of a client's ack for the complete reply. A server that cannot count on a repetition of the request
    /// waits for the ack only for some round trips.
    pub(crate) fn final_ack_delay(&self) -> Duration {
        match self.request_was_acked || self.receive.highest() > 1 {
            true => FINAL_DELAY_PROBED,
            false => FINAL_DELAY,
        }
    }

    /// True for a server's reply that is complete and acknowledged.
    pub(crate) fn is_delivered(&self) -> bool {
        self.side == Side::Server && self.send.is_delivered()
    }

    /// True when something can be sent now.
    pub(crate) fn has_output(&self, capacity: usize) -> bool {
        self.ping || self.path_ping || self.ack.is_due() || self.send.can_send(capacity)
    }

    /// The peer can know of the call. Before that its silence means nothing.
    fn is_known_to_peer(&self) -> bool {
        self.side == Side::Server || self.send.was_sent()
    }

    /// The network reported the peer unreachable: pings it and shortens the dead time.
    pub(crate) fn suspect(&mut self, now: Instant) {
        if self.phase == Phase::Over || !self.is_known_to_peer() {
            return;
        }
        if !self.is_suspect() {
            self.unreachable_at = now;
        }
        self.ping = true;
        self.ping_check_at = self.ping_check_at.min(now + SUSPECT_PING_INTERVAL);
    }

    /// Nothing was received from the peer since the network reported it unreachable.
    fn is_suspect(&self) -> bool {
        self.last_heard < self.unreachable_at
    }

    /// When the dead time expires.
    fn dead_at(&self) -> Instant {
        let dead_at = self.last_heard + self.limits.dead_with_fudge;
        match self.is_suspect() {
            true => dead_at.min(self.unreachable_at + SUSPECT_DEAD_TIME + self.limits.fudge()),
            false => dead_at,
        }
    }

    /// Schedules a ping if nothing was sent for an interval: docs/protocol/rx.md "9. Keepalive".
    pub(crate) fn check_keepalive(&mut self, now: Instant) {
        if now < self.ping_check_at {
            return;
        }
        let interval = match self.is_suspect() {
            true => SUSPECT_PING_INTERVAL,
            false => self.limits.ping(),
        };
        let quiet_until = self.last_sent + interval;
        self.ping |= now >= quiet_until && self.is_known_to_peer();
        self.ping_check_at = if now >= quiet_until { now + interval } else { quiet_until };
    }

    /// True when the call cannot proceed without the peer, and the application waits for it.
    fn waits_for_peer(&self) -> bool {
        match (self.side, self.is_sending()) {
            (Side::Server, true) => self.send.has_unacked() || self.write_blocked,
            (Side::Server, false) => self.read_blocked && !self.receive.is_complete(),
            (Side::Client, true) => self.send.has_unacked(),
            (Side::Client, false) => !self.receive.is_complete(),
        }
    }

    /// The earliest of the call's timers.
    pub(crate) fn deadline(&self) -> Instant {
        if self.phase == Phase::Over {
            return Instant::FAR_FUTURE;
        }
        let mut at = self.limits.deadline.min(self.ping_check_at).min(self.retransmission_by);
        if self.is_known_to_peer() {
            at = at.min(self.dead_at());
        }
        at = at.min(self.send.resend_at).min(self.send.reorder_at).min(self.ack.delayed_until());
        at = at.min(self.limits.repeat_until);
        if let Some(narrow) = self.narrow {
            at = at.min(narrow.decided_at);
        }
        if self.limits.idle != Duration::MAX && self.waits_for_peer() {
            at = at.min(self.last_progress + self.limits.idle);
        }
        at
    }

    /// The limit that has been exceeded, if any.
    pub(crate) fn expired(&self, now: Instant) -> Option<Expired> {
        if now >= self.limits.deadline {
            return Some(Expired::Deadline);
        }
        let silent = self.is_known_to_peer() && now >= self.dead_at();
        if silent || now >= self.retransmission_by {
            return Some(Expired::Dead);
        }
        let idle = self.limits.idle != Duration::MAX && self.waits_for_peer();
        (idle && now >= self.last_progress + self.limits.idle).then_some(Expired::Idle)
    }

    /// Stops repeating the first packet when it is time.
    pub(crate) fn check_repeating(&mut self, now: Instant) {
        if self.limits.repeat_until <= now {
            self.limits.repeat_until = Instant::FAR_FUTURE;
            self.send.end_head();
        }
    }

    /// Drops all data and timers; only the outcome remains. Returns the bytes freed.
    pub(crate) fn clear(&mut self) -> usize {
        self.phase = Phase::Over;
        self.ping = false;
        self.path_ping = false;
        self.narrow = None;
        self.ack = PendingAck::default();
        self.send.clear();
        self.receive.clear()
    }
}
