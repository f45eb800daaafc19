//! Round-trip estimator and retransmission time-out: docs/protocol/rx.md "7. Windows, RTT, ...".

use crate::call::SOFT_DELAY;
use core::time::Duration;

/// Smoothed round trip of one peer, and how soon it replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    smoothed: Duration,
    deviation: Duration,
    shortest: Duration,
    samples: u64,
    /// Smoothed time from a request's end to its reply.
    turnaround: Option<Duration>,
}

/// What shows that the packets in flight have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaited {
    /// An ack that the peer sends at once, or nearly.
    Ack,
    /// An ack that it may delay, as that of a single packet.
    DelayedAck,
    /// The reply to a request.
    Reply,
    /// The next call after a reply of one packet. If that reply is lost, the client repeats its request, which is not
    /// acked.
    NextCall,
}

/// A sample below the peer's clock resolution counts as this.
const SAMPLE_MIN: Duration = Duration::from_micros(1);
/// Variation of the round trip that shows no queue.
const JITTER: Duration = Duration::from_micros(100);
const VARIANCE_MIN: Duration = Duration::from_millis(20);
/// Peers delay their acks by up to 100 ms.
const ACK_DELAY: Duration = Duration::from_millis(200);
/// A client's last packet may wait this much longer for its ack.
const LAST_ACK_DELAY: Duration = Duration::from_millis(400);
/// Added to twice the usual time until a probe is sent: the pauses of busy processes.
pub(crate) const PROBE_MARGIN: Duration = Duration::from_millis(4);
const BACKED_OFF_MAX: Duration = Duration::from_secs(60);

impl Rtt {
    pub(crate) fn new(initial: Duration) -> Self {
        Rtt {
            smoothed: initial,
            deviation: Duration::ZERO,
            shortest: Duration::MAX,
            samples: 0,
            turnaround: None,
        }
    }

    pub(crate) fn sample(&mut self, measured: Duration) {
        let measured = measured.max(SAMPLE_MIN);
        if self.samples == 0 {
            self.smoothed = measured;
            self.deviation = measured / 2;
        } else {
            let error = measured.abs_diff(self.smoothed);
            self.smoothed = match measured >= self.smoothed {
                true => self.smoothed + error / 8,
                false => self.smoothed - error / 8,
            };
            self.deviation = (self.deviation * 3 + error) / 4;
        }
        self.shortest = self.shortest.min(measured);
        self.samples += 1;
    }

    /// Round trips are longer than the shortest by what says that packets queue on the path. After a change to a
    /// longer path it stays true, which is the careful side.
    pub(crate) fn is_queueing(&self) -> bool {
        self.samples == 0 || self.smoothed > self.shortest + self.shortest / 4 + JITTER
    }

    /// A reply that implies an ack is an upper bound of the round trip, used where it lowers the estimate.
    pub(crate) fn sample_bound(&mut self, bound: Duration) {
        if bound < self.smoothed {
            self.sample(bound);
        }
    }

    /// A reply began this long after the request's last packet was first sent. Later than an ack is delayed the time
    /// says nothing, since the ack has stopped the timer. A repeated request counts as well: otherwise requests that
    /// were repeated too early would never tell so.
    pub(crate) fn sample_turnaround(&mut self, measured: Duration) {
        let measured = measured.min(SOFT_DELAY);
        self.turnaround = Some(self.turnaround.map_or(measured, |smoothed| (smoothed * 7 + measured) / 8));
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The smoothed round trip, if there was any sample.
    pub(crate) fn measured(&self) -> Option<Duration> {
        (self.samples > 0).then_some(self.smoothed)
    }

    pub(crate) fn deviation(&self) -> Duration {
        self.deviation
    }

    /// RTO = max(srtt + 4 dev, 20 ms) + 200 ms, doubled for each time-out in a row.
    pub(crate) fn timeout(&self, doublings: u32, last_of_request: bool) -> Duration {
        let base = (self.smoothed + 4 * self.deviation).max(VARIANCE_MIN) + ACK_DELAY;
        match last_of_request {
            true => backed_off(base, doublings) + LAST_ACK_DELAY,
            false => backed_off(base, doublings),
        }
    }

    /// When the packets in flight are to be probed, at most `timeout`; none without a measurement, or where the peer
    /// notices the loss before.
    pub(crate) fn probe_after(&self, awaited: Awaited) -> Option<Duration> {
        let usual = match awaited {
            Awaited::Ack => self.measured()? * 2,
            Awaited::DelayedAck => self.measured()? * 2 + SOFT_DELAY,
            Awaited::Reply => self.turnaround? * 2,
            Awaited::NextCall => return None,
        };
        Some((usual + PROBE_MARGIN).min(self.timeout(0, false)))
    }

    /// Time until what is in flight counts as lost or is probed, doubled for each time-out in a row; true for a probe.
    pub(crate) fn wait(&self, awaited: Awaited, doublings: u32) -> (Duration, bool) {
        match self.probe_after(awaited) {
            Some(probe) => {
                let wait = backed_off(probe, doublings);
                (wait, wait < self.timeout(0, false))
            }
            None => (self.timeout(doublings, awaited == Awaited::Reply), false),
        }
    }

    /// Added to the dead time: srtt + 8 deviations, rounded up to a second.
    pub(crate) fn fudge(&self) -> Duration {
        let exact = self.smoothed + 8 * self.deviation;
        Duration::from_secs(exact.as_secs() + u64::from(exact.subsec_nanos() > 0))
    }

    /// How long a packet may be overtaken by a later one before it is declared lost.
    pub(crate) fn reordering(&self) -> Duration {
        (self.smoothed * 5 / 4 + self.deviation).max(REORDERING_MIN)
    }
}

fn backed_off(base: Duration, doublings: u32) -> Duration {
    base.saturating_mul(1 << doublings.min(16)).min(BACKED_OFF_MAX)
}

const REORDERING_MIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/protocol/rx.md: first retransmission of a one-packet request at 2.600 s, given srtt 2 s.
    #[test]
    fn first_timeout_of_a_request() {
        let rtt = Rtt::new(Duration::from_secs(2));
        assert_eq!(rtt.timeout(0, true), Duration::from_millis(2600));
        assert_eq!(rtt.timeout(1, false), Duration::from_millis(4400));
        assert_eq!(rtt.timeout(9, false), Duration::from_secs(60));
    }

    #[test]
    fn samples_converge() {
        let mut rtt = Rtt::new(Duration::from_secs(2));
        for _ in 0..100 {
            rtt.sample(Duration::from_millis(10));
        }
        assert_eq!(rtt.smoothed(), Duration::from_millis(10));
        assert_eq!(rtt.timeout(0, false), Duration::from_millis(220));
        rtt.sample_bound(Duration::from_secs(9));
        assert_eq!(rtt.smoothed(), Duration::from_millis(10));
        assert_eq!(rtt.fudge(), Duration::from_secs(1));
        assert_eq!(rtt.measured(), Some(Duration::from_millis(10)));
        assert_eq!(Rtt::new(Duration::from_secs(2)).measured(), None);
    }
}
