//! Loss detection, by packet order and by the retransmission timer, and retransmission of lost packets.

use super::*;

/// A transmission is lost when one that follows it by more than this has arrived.
const REORDERING_PACKETS: u64 = 3;

/// A packet that so many time-outs and so much time did not bring through is too large for its path, if the peer lives.
const SWALLOWED_TIMEOUTS: u32 = 4;
const SWALLOWED_TIME: Duration = Duration::from_secs(1);

/// Result of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timeout {
    /// Packets must be retransmitted.
    Resend,
    /// The peer's window has been closed for long: a ping asks whether it still is.
    Ping,
    /// One packet must be retransmitted.
    Probe,
    /// No packet was in flight, and no window closed.
    Nothing,
}

impl SendStream {
    /// Marks as lost the transmissions that later ones have overtaken by too much. Cost: one step for each
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
                    let lost_at = sent.sent_at + rtt.reordering();
                    if transmission + REORDERING_PACKETS >= self.transmissions_acked && now < lost_at {
                        self.reorder_at = self.reorder_at.min(lost_at);
                        break;
                    }
                    self.mark_lost(transmission, seq, rtt.is_queueing());
                }
                self.transmissions[kind].pop_front();
            }
        }
        self.lost.saturating_sub(lost_before)
    }

    /// The packet of a transmission, if it is in flight and was not retransmitted since.
    fn open_transmission(&self, transmission: u64, seq: u32) -> Option<&Sent> {
        let sent = self.ring.get(seq.checked_sub(self.first)? as usize)?;
        (sent.transmission == transmission && sent.state == State::InFlight).then_some(sent)
    }

    fn mark_lost(&mut self, transmission: u64, seq: u32, is_queueing: bool) {
        let offset = (seq - self.first) as usize;
        self.ring[offset].state = State::Lost;
        self.count(State::InFlight, -1);
        self.count(State::Lost, 1);
        self.resend_from = self.resend_from.min(seq);
        let is_first = transmission >= self.recovery;
        if is_first {
            self.recovery = self.next_transmission;
            self.fast_resend = true;
        }
        self.congestion.on_loss(Loss { is_first, is_queueing });
    }

    /// The retransmission timer fired: one packet is sent again, or everything unacked is declared lost.
    pub(crate) fn handle_timeout(&mut self) -> Timeout {
        self.resend_at = Instant::FAR_FUTURE;
        if !self.has_unacked() {
            self.timeouts_in_row += 1;
            return if self.is_blocked_by_peer() { Timeout::Ping } else { Timeout::Nothing };
        }
        self.timeouts_in_row += 1;
        if std::mem::take(&mut self.probes) && self.probe() {
            return Timeout::Probe;
        }
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

    /// Whether the oldest packet that is not acked has more data than this, and was sent so often and for so long without an ack that it is not
    /// lost by chance.
    pub(crate) fn is_swallowed(&self, now: Instant, data_max: usize) -> bool {
        let oldest = self.ring.iter().find(|sent| sent.state != State::SoftAcked);
        let is_old =
            |sent: &Sent| sent.payload.len() > data_max && now >= sent.first_sent_at + SWALLOWED_TIME;
        self.timeouts_in_row >= SWALLOWED_TIMEOUTS && oldest.is_some_and(is_old)
    }

    /// The lost packet with the lowest number. The search resumes where the last one ended.
    pub(super) fn pick_lost(&mut self) -> Pick {
        let start = self.resend_from.saturating_sub(self.first) as usize;
        for (offset, sent) in self.ring.iter().enumerate().skip(start) {
            if sent.state == State::Lost {
                self.resend_from = self.first + offset as u32;
                return Pick::Again(self.resend_from, sent.payload.len());
            }
        }
        debug_assert!(false, "no lost packet after the first");
        self.lost = 0;
        Pick::Nothing
    }

    /// Marks a lost packet as retransmitted.
    pub(crate) fn retransmit(&mut self, now: Instant, serial: u32, seq: u32) -> Option<Outgoing<'_>> {
        let transmission = self.transmit(seq, REPEATED);
        let sent = self.ring.get_mut(seq.checked_sub(self.first)? as usize)?;
        sent.state = State::InFlight;
        sent.resent = true;
        sent.last_serial = serial;
        sent.transmission = transmission;
        sent.sent_at = now;
        self.lost -= 1;
        self.in_flight += 1;
        self.resend_from = seq + 1;
        self.resent_any = true;
        self.fast_resend = false;
        Some(Outgoing { seq, payload: &sent.payload, is_last: sent.is_last, request_ack: true })
    }
}
