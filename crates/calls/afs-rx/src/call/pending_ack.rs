//! Ack scheduler of a call: docs/protocol/rx.md "Generating ACKs (receiver policy)".

use crate::Instant;
use crate::packet::reason;
use core::time::Duration;

/// An ack to be sent, now or after a delay. It is built at the moment of transmission, so that a batch of arrivals
/// costs one ack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingAck {
    /// Reason of the ack to be sent now; 0 when there is none.
    reason: u8,
    serial: u32,
    /// Pending acks with a negative reason. Old peers count these to detect a loss, so they are not merged into one,
    /// up to the number that the peer needs.
    negatives: u8,
    delayed_until: Instant,
    /// Packets received in order since the last ack.
    soft: u32,
    /// Packets the application consumed since the last ack.
    consumed: u32,
}

/// Longest delay of an ack for data; peers rely on it.
pub(crate) const SOFT_DELAY: Duration = Duration::from_millis(100);
/// Longest delay of a client's ack for a complete reply. Peers expect up to 400 ms, yet a server on a fast network
/// declares its last packet lost after 220 ms.
pub(crate) const FINAL_DELAY: Duration = Duration::from_millis(150);
/// The same where the server would soon probe for it.
pub(crate) const FINAL_DELAY_PROBED: Duration = Duration::from_millis(2);
const NEGATIVES_MAX: u8 = 3;
/// In-order packets whose ack may be delayed; one more makes it due.
const SOFT_MAX: u32 = 1;
/// Consumed packets whose ack may be delayed; one more makes it due.
const CONSUMED_MAX: u32 = 2;

impl Default for PendingAck {
    fn default() -> Self {
        PendingAck {
            reason: 0,
            serial: 0,
            negatives: 0,
            delayed_until: Instant::FAR_FUTURE,
            soft: 0,
            consumed: 0,
        }
    }
}

/// Priority of a reason: the higher one wins when acks are merged.
fn priority(kind: u8) -> u8 {
    match kind {
        reason::PING_RESPONSE => 5,
        reason::OUT_OF_SEQUENCE | reason::DUPLICATE | reason::EXCEEDS_WINDOW => 4,
        reason::REQUESTED => 3,
        reason::IDLE => 2,
        reason::DELAY => 1,
        _ => 0,
    }
}

impl PendingAck {
    /// True when an ack must be sent now.
    pub(crate) fn is_due(&self) -> bool {
        self.reason != 0
    }

    pub(crate) fn delayed_until(&self) -> Instant {
        self.delayed_until
    }

    /// Schedules an ack to be sent now.
    pub(crate) fn demand(&mut self, kind: u8, serial: u32) {
        if priority(kind) == 4 {
            self.negatives = (self.negatives + 1).min(NEGATIVES_MAX);
        }
        if priority(kind) >= priority(self.reason) {
            self.reason = kind;
            self.serial = serial;
        }
    }

    /// A packet arrived in order and did not ask for an ack.
    pub(crate) fn arrived(&mut self, now: Instant, serial: u32, delay: Duration) {
        self.soft += 1;
        match self.soft > SOFT_MAX {
            true => self.demand(reason::IDLE, serial),
            false => self.delay(now, delay),
        }
    }

    /// The application consumed packets of a stream that is not complete.
    pub(crate) fn consumed(&mut self, now: Instant, packets: u32) {
        self.consumed = self.consumed.saturating_add(packets);
        match self.consumed > CONSUMED_MAX {
            true => self.demand(reason::DELAY, 0),
            false => self.delay(now, SOFT_DELAY),
        }
    }

    fn delay(&mut self, now: Instant, delay: Duration) {
        self.delayed_until = self.delayed_until.min(now + delay);
    }

    /// The delay has expired.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.delayed_until {
            self.delayed_until = Instant::FAR_FUTURE;
            self.demand(reason::DELAY, 0);
        }
    }

    /// Takes the ack to be sent now: its reason and serial. Sending it clears everything pending, except for further
    /// negative acks.
    pub(crate) fn take(&mut self) -> Option<(u8, u32)> {
        if self.reason == 0 {
            return None;
        }
        let taken = (self.reason, self.serial);
        let negatives = self.negatives.saturating_sub(1);
        let again = negatives > 0 && priority(self.reason) == 4;
        *self = PendingAck::default();
        if again {
            self.reason = taken.0;
            self.serial = taken.1;
            self.negatives = negatives;
        }
        Some(taken)
    }

    /// DATA was sent on the call: it tells the peer as much as a delayed ack.
    pub(crate) fn data_sent(&mut self) {
        self.delayed_until = Instant::FAR_FUTURE;
        self.soft = 0;
        self.consumed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_packet_is_acked_and_the_first_waits() {
        let mut ack = PendingAck::default();
        ack.arrived(Instant(0), 1, SOFT_DELAY);
        assert!(!ack.is_due());
        assert_eq!(ack.delayed_until(), Instant::ZERO + SOFT_DELAY);
        ack.arrived(Instant(1), 2, SOFT_DELAY);
        assert_eq!(ack.take(), Some((reason::IDLE, 2)));
        assert_eq!(ack.delayed_until(), Instant::FAR_FUTURE);
        assert_eq!(ack.take(), None);
    }

    #[test]
    fn negative_acks_are_not_merged_away() {
        let mut ack = PendingAck::default();
        for serial in 1..=9 {
            ack.demand(reason::OUT_OF_SEQUENCE, serial);
        }
        assert_eq!((ack.take(), ack.take(), ack.take()), (Some((3, 9)), Some((3, 9)), Some((3, 9))));
        assert_eq!(ack.take(), None);
    }

    #[test]
    fn three_consumed_packets_are_told_at_once() {
        let mut ack = PendingAck::default();
        ack.consumed(Instant(0), 1);
        ack.consumed(Instant(0), 1);
        assert!(!ack.is_due());
        ack.consumed(Instant(0), 1);
        assert_eq!(ack.take(), Some((reason::DELAY, 0)));
    }
}
