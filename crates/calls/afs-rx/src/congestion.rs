//! Congestion control of a call's sending side: a trait, which other algorithms may implement, and NewReno.

use core::fmt::Debug;

/// A congestion controller of one call's sending side. Counts are packets.
pub(crate) trait Congestion: Send + Debug {
    /// Starts over for a new call.
    fn reset(&mut self, initial: u32, max: u32);
    /// Packets that may be in flight.
    fn window(&self) -> u32;
    /// `packets` were acknowledged; `limited` when the window was what held the sender back.
    fn on_ack(&mut self, packets: u32, limited: bool);
    /// A packet was lost.
    fn on_loss(&mut self, loss: Loss);
    /// The retransmission timer fired.
    fn on_timeout(&mut self);
}

/// What is known of a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Loss {
    /// It is the first in its window of data.
    pub(crate) is_first: bool,
    /// Round trips are long, as when packets queue on the path.
    pub(crate) is_queueing: bool,
}

/// Slow start, then one packet more each round trip; half on loss, once a window of data. Few losses without a queue
/// come from a bad path, which a smaller window would not mend.
#[derive(Debug)]
pub(crate) struct NewReno {
    window: u32,
    threshold: u32,
    acked_in_round: u32,
    /// Losses in this window of data.
    lost: u32,
    /// It was halved for this window of data.
    halved: bool,
    max: u32,
}

/// More than this fraction of a window lost, and more than one packet, is congestion even without a queue.
const BAD_PATH_FRACTION: u32 = 8;
const WINDOW_AFTER_LOSS_MIN: u32 = 2;

impl NewReno {
    pub(crate) fn new() -> Self {
        NewReno { window: 1, threshold: u32::MAX, acked_in_round: 0, lost: 0, halved: false, max: 1 }
    }
}

impl Congestion for NewReno {
    fn reset(&mut self, initial: u32, max: u32) {
        *self = NewReno { window: initial.clamp(1, max.max(1)), max, ..NewReno::new() };
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn on_ack(&mut self, packets: u32, limited: bool) {
        if !limited {
            return;
        }
        if self.window < self.threshold {
            self.window = self.window.saturating_add(packets).min(self.threshold).min(self.max);
            return;
        }
        self.acked_in_round += packets;
        if self.acked_in_round >= self.window {
            self.acked_in_round -= self.window;
            self.window = (self.window + 1).min(self.max);
        }
    }

    fn on_loss(&mut self, loss: Loss) {
        if loss.is_first {
            (self.lost, self.halved) = (0, false);
        }
        self.lost += 1;
        let many = self.lost > 1 && self.lost * BAD_PATH_FRACTION > self.window;
        if self.halved || !many && !loss.is_queueing {
            return;
        }
        self.halved = true;
        self.threshold = (self.window / 2).max(WINDOW_AFTER_LOSS_MIN);
        self.window = self.threshold;
        self.acked_in_round = 0;
    }

    fn on_timeout(&mut self) {
        self.threshold = (self.window / 2).max(WINDOW_AFTER_LOSS_MIN);
        self.window = 1;
        self.acked_in_round = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_then_creeps_and_halves() {
        let mut reno = NewReno::new();
        reno.reset(10, 100);
        reno.on_ack(10, true);
        assert_eq!(reno.window(), 20);
        reno.on_ack(20, false);
        assert_eq!(reno.window(), 20, "an idle sender proves nothing");
        reno.on_loss(QUEUED);
        reno.on_loss(Loss { is_first: false, ..QUEUED });
        assert_eq!(reno.window(), 10, "once a window");
        reno.on_ack(9, true);
        assert_eq!(reno.window(), 10);
        reno.on_ack(1, true);
        assert_eq!(reno.window(), 11);
        reno.on_timeout();
        assert_eq!(reno.window(), 1);
        reno.on_ack(200, true);
        assert_eq!(reno.window(), 5, "slow start ends at the threshold");
    }

    const QUEUED: Loss = Loss { is_first: true, is_queueing: true };

    #[test]
    fn a_bad_path_is_not_congestion_until_it_loses_much() {
        let mut reno = NewReno::new();
        reno.reset(32, 100);
        let lose = |reno: &mut NewReno, packets: u32| {
            (0..packets).for_each(|packet| reno.on_loss(Loss { is_first: packet == 0, is_queueing: false }));
            reno.window()
        };
        assert_eq!(lose(&mut reno, 4), 32);
        assert_eq!(lose(&mut reno, 4), 32, "another window");
        assert_eq!(lose(&mut reno, 9), 16);
        assert_eq!(lose(&mut NewReno { window: 4, ..reno }, 1), 4);
    }

    #[test]
    fn never_above_the_maximum_or_below_one() {
        let mut reno = NewReno::new();
        reno.reset(0, 3);
        assert_eq!(reno.window(), 1);
        for _ in 0..9 {
            reno.on_ack(5, true);
        }
        assert_eq!(reno.window(), 3);
        for _ in 0..9 {
            reno.on_timeout();
        }
        assert_eq!(reno.window(), 1);
    }
}
