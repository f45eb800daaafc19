//! Processing of received ACKs: docs/protocol/rx.md "Accepting an ACK (order matters)".

use super::*;
use crate::packet::{Ack, reason};

/// Whether an ACK may be applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freshness {
    Fresh,
    Stale,
    /// It names packets that were never sent.
    BeyondSent,
}

/// Result of applying an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AckResult {
    /// Packets acknowledged, hard or soft, for the first time.
    pub(crate) newly_acked: u32,
    pub(crate) round_trip: Option<Duration>,
    /// Packets declared lost.
    pub(crate) losses: u32,
}

/// Most soft acks in one ACK: the count is one byte.
const SOFT_ACKS_MAX: usize = 255;

impl SendStream {
    pub(crate) fn freshness(&self, ack: &Ack<'_>) -> Freshness {
        if ack.first < self.first {
            return Freshness::Stale;
        }
        if ack.first > self.next() {
            return Freshness::BeyondSent;
        }
        // Old kernels put a serial into `previous`; such a value is beyond the window.
        let serial_like = self.ack_previous >= self.first.saturating_add(self.window);
        let older = ack.first == self.first && ack.previous < self.ack_previous && !serial_like;
        if older { Freshness::Stale } else { Freshness::Fresh }
    }

    /// Applies a fresh ACK that came in a packet with this serial.
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        ack: &Ack<'_>,
        serial: u32,
        rtt: &mut Rtt,
    ) -> AckResult {
        let mut result = AckResult::default();
        // `first` only grows, so an ack with a higher one is newer whatever its serial: a restarted server counts
        // serials from one.
        let advances = self.first < ack.first;
        while self.first < ack.first {
            let Some(sent) = self.ring.pop_front() else { break };
            self.first += 1;
            self.count(sent.state, -1);
            if sent.state != State::SoftAcked {
                self.note_arrival(now, &sent, ack, &mut result);
            }
        }
        let newest = advances || self.ack_serial == 0 || serial.wrapping_sub(self.ack_serial) as i32 > 0;
        self.apply_soft_acks(now, ack, newest, &mut result);
        if newest {
            self.mark_forgotten_lost(ack);
            self.ack_serial = serial;
        }
        self.ack_previous = ack.previous;
        // A full list may be truncated: packets beyond it may or may not have arrived.
        self.known_to = match ack.soft.len() < SOFT_ACKS_MAX {
            true => u32::MAX,
            false => ack.first.saturating_add(SOFT_ACKS_MAX as u32),
        };
        if let Some(window) = ack.trailer.window {
            self.window = window.max(1);
        }
        if let Some(sample) = result.round_trip {
            rtt.sample(sample);
        }
        result.losses = self.update_timers(now, result.newly_acked, rtt);
        result
    }

    fn apply_soft_acks(&mut self, now: Instant, ack: &Ack<'_>, newest: bool, result: &mut AckResult) {
        for (offset, entry) in ack.soft.iter().enumerate().take(self.ring.len()) {
            let sent = &mut self.ring[offset];
            let arrived = entry & 1 == 1;
            match (arrived, sent.state) {
                (true, State::InFlight | State::Lost) => {
                    let before = std::mem::replace(&mut sent.state, State::SoftAcked);
                    let copy = sent.summary();
                    self.count(before, -1);
                    self.count(State::SoftAcked, 1);
                    self.note_arrival(now, &copy, ack, result);
                }
                (false, State::SoftAcked) if newest => {
                    sent.state = State::Lost;
                    self.count(State::SoftAcked, -1);
                    self.count(State::Lost, 1);
                    self.resend_from = self.resend_from.min(self.first + offset as u32);
                }
                _ => {}
            }
        }
    }

    /// Marks as lost the packets that a restarted peer has forgotten: those beyond both the ack's list and the last
    /// packet it reports.
    fn mark_forgotten_lost(&mut self, ack: &Ack<'_>) {
        let listed =
            self.ring.iter().take(ack.soft.len()).filter(|sent| sent.state == State::SoftAcked).count();
        if self.soft_acked as usize == listed || ack.soft.len() >= SOFT_ACKS_MAX {
            return;
        }
        let after_last = ack.previous.saturating_add(1).saturating_sub(self.first) as usize;
        let from = ack.soft.len().max(after_last);
        let mut taken_back = 0;
        for sent in self.ring.iter_mut().skip(from).filter(|sent| sent.state == State::SoftAcked) {
            sent.state = State::Lost;
            taken_back += 1;
        }
        if taken_back > 0 {
            self.count(State::SoftAcked, -taken_back);
            self.count(State::Lost, taken_back);
            self.resend_from = self.resend_from.min(self.first + from as u32);
        }
    }

    fn note_arrival(&mut self, now: Instant, sent: &Sent, ack: &Ack<'_>, result: &mut AckResult) {
        result.newly_acked += 1;
        let latest = ack.serial != 0 && ack.serial == sent.last_serial;
        if !sent.resent || latest {
            self.transmissions_acked = self.transmissions_acked.max(sent.transmission + 1);
        }
        if ack.reason == reason::DELAY || ack.serial == 0 {
            return;
        }
        if latest {
            result.round_trip = Some(now - sent.sent_at);
        } else if ack.serial == sent.first_serial {
            result.round_trip = Some(now - sent.first_sent_at);
        }
    }

    /// Updates windows and timers after the ack; returns the packets declared lost.
    fn update_timers(&mut self, now: Instant, newly_acked: u32, rtt: &Rtt) -> u32 {
        if newly_acked > 0 {
            self.timeouts_in_row = 0;
            self.resend_at = Instant::FAR_FUTURE;
            self.congestion.on_ack(newly_acked, self.limited);
        }
        let losses = self.detect_losses(now, rtt);
        if !self.has_unacked() {
            self.resend_at = Instant::FAR_FUTURE;
        }
        losses
    }

    pub(super) fn count(&mut self, state: State, change: i32) {
        let counter = match state {
            State::InFlight => &mut self.in_flight,
            State::SoftAcked => &mut self.soft_acked,
            State::Lost => &mut self.lost,
        };
        *counter = counter.wrapping_add_signed(change);
    }
}

impl Sent {
    /// The packet without its payload.
    fn summary(&self) -> Sent {
        Sent { payload: Bytes::new(), ..*self }
    }
}
