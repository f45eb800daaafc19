//! Tail loss probe (RFC 8985): when nothing tells in time whether packets arrived, one of them is sent again and asks
//! for an ack, which shows the holes. Until the retransmission time-out has passed nothing counts as lost.

use super::*;
use crate::rtt::PROBE_MARGIN;

impl SendStream {
    /// Arms the retransmission timer if a packet is in flight and it is not armed.
    pub(crate) fn arm(&mut self, now: Instant, rtt: &Rtt, is_client: bool) {
        if self.resend_at.is_set() {
            return;
        }
        if self.has_unacked() {
            let (wait, probes) = rtt.wait(self.awaited(is_client), self.timeouts_in_row);
            self.resend_at = now + wait;
            self.probes = probes;
        } else if self.is_blocked_by_peer() && self.waiting() > 0 {
            self.resend_at = now + rtt.timeout(self.timeouts_in_row, false);
        }
    }

    /// What ends the wait for the packets in flight. A peer acks the second packet at once, and delays the ack of one.
    fn awaited(&self, is_client: bool) -> Awaited {
        let is_alone = self.in_flight + self.lost == 1;
        match (is_alone, self.last_cut, is_client) {
            (true, true, true) => Awaited::Reply,
            (true, true, false) if self.is_one_packet() && !self.request_acked => Awaited::NextCall,
            (true, false, _) => Awaited::DelayedAck,
            _ => Awaited::Ack,
        }
    }

    fn is_one_packet(&self) -> bool {
        self.first == 1 && self.ring.len() == 1
    }

    /// Sends the newest packet in flight again, whatever the congestion window: its ack lists what is missing before
    /// it. False when none is in flight.
    pub(super) fn probe(&mut self) -> bool {
        let newest = self.ring.iter().rposition(|sent| sent.state == State::InFlight);
        let Some(offset) = newest else { return false };
        self.ring[offset].state = State::Lost;
        self.count(State::InFlight, -1);
        self.count(State::Lost, 1);
        self.resend_from = self.resend_from.min(self.first + offset as u32);
        self.fast_resend = true;
        true
    }

    /// An ack of the whole request is being sent. Since a client that has the reply neither repeats its request nor
    /// asks, a reply that is not just under way was lost. Once a call, so that forged repetitions cost one packet.
    pub(crate) fn ack_request(&mut self) {
        if std::mem::replace(&mut self.request_acked, true) {
            return;
        }
        let newest = self.ring.back().filter(|newest| newest.state == State::InFlight);
        if let Some(newest) = newest {
            self.resend_at = self.resend_at.min(newest.sent_at + PROBE_MARGIN);
            self.probes = true;
        }
    }

    /// Upper bound of the round trip from a reply that acknowledges the whole request; none if anything was
    /// retransmitted.
    pub(crate) fn round_trip_bound(&self, now: Instant) -> Option<Duration> {
        let last = self.ring.back().filter(|last| last.is_last && !self.resent_any)?;
        Some(now - last.sent_at)
    }

    /// Time since the last packet was first sent, if it was.
    pub(crate) fn turnaround(&self, now: Instant) -> Option<Duration> {
        self.last_sent_at.map(|sent_at| now - sent_at)
    }
}
