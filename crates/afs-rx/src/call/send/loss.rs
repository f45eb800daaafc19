//! Finding what was lost, from later arrivals or from silence.

use super::*;

/// A transmission is lost when one this much later has arrived.
const REORDERING_PACKETS: u64 = 3;

/// What the retransmission timer found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timeout {
    /// Packets are to be sent again.
    Resend,
    /// The peer's window has been closed for long: ask whether it still is.
    Probe,
    /// Nothing was open.
    Nothing,
}

impl SendStream {
    /// Marks as lost what later transmissions have overtaken by too much. Cost: one step for each
    /// transmission over its life, however large the window.
    pub(crate) fn detect_losses(&mut self, now: Instant, rtt: &Rtt) -> u32 {
        self.reorder_at = Instant::FAR_FUTURE;
        let lost_before = self.lost;
        for kind in [FIRST, REPEATED] {
            while let Some(&(transmission, seq)) = self.transmissions[kind].front() {
                if let Some(sent) = self.open_transmission(transmission, seq) {
                    if transmission + 1 >= self.transmissions_acked || seq >= self.known_to {
                        break;
                    }
                    let patience_ends = sent.sent_at + rtt.reordering();
                    if transmission + REORDERING_PACKETS >= self.transmissions_acked && now < patience_ends {
                        self.reorder_at = self.reorder_at.min(patience_ends);
                        break;
                    }
                    self.lose(transmission, seq);
                }
                self.transmissions[kind].pop_front();
            }
        }
        self.lost.saturating_sub(lost_before)
    }

    /// The packet of a transmission, when it is still in flight by that very transmission.
    fn open_transmission(&self, transmission: u64, seq: u32) -> Option<&Sent> {
        let sent = self.ring.get(seq.checked_sub(self.first)? as usize)?;
        (sent.transmission == transmission && sent.state == State::InFlight).then_some(sent)
    }

    fn lose(&mut self, transmission: u64, seq: u32) {
        let offset = (seq - self.first) as usize;
        self.ring[offset].state = State::Lost;
        self.count(State::InFlight, -1);
        self.count(State::Lost, 1);
        self.resend_from = self.resend_from.min(seq);
        if transmission >= self.recovery {
            self.recovery = self.next_transmission;
            self.fast_resend = true;
            self.congestion.on_loss();
        }
    }

    /// The retransmission timer fired: everything unacked is taken for lost.
    pub(crate) fn handle_timeout(&mut self) -> Timeout {
        self.resend_at = Instant::FAR_FUTURE;
        if !self.has_unacked() {
            self.timeouts_in_row += 1;
            return if self.is_blocked_by_peer() { Timeout::Probe } else { Timeout::Nothing };
        }
        self.timeouts_in_row += 1;
        for sent in self.ring.iter_mut().filter(|sent| sent.state == State::InFlight) {
            sent.state = State::Lost;
        }
        self.lost += std::mem::take(&mut self.in_flight);
        self.transmissions.iter_mut().for_each(VecDeque::clear);
        self.reorder_at = Instant::FAR_FUTURE;
        self.resend_from = self.first;
        self.recovery = self.next_transmission;
        self.congestion.on_timeout();
        Timeout::Resend
    }
}
