//! What losses cost calls of all sizes, in simulated time on a path of 1 ms and a gigabit a second: a lost packet is
//! missed within some round trips, and where nothing is lost nothing is sent twice.

use crate::support::Weather;
use crate::support::sequence::Sequence;
use core::time::Duration;

const GIGABIT: u64 = 125_000_000;
const SEEDS: u64 = 5;
const BULK: Sequence = Sequence { calls: 20, bytes_per_second: GIGABIT, ..Sequence::SMALL };
const FETCH: Sequence = Sequence { reply: 1 << 20, ..BULK };
const STORE: Sequence = Sequence { request: 1 << 20, ..BULK };

fn path(loss: u64) -> Weather {
    Weather { loss, repeat: 0, delay_min_us: 500, delay_max_us: 520, in_order: true }
}

/// Speed at this loss, per mille, as a share of the speed without.
fn speed(sequence: Sequence, loss: u64) -> f64 {
    let took = |loss| (0..SEEDS).map(|seed| sequence.run(seed, path(loss)).took.as_secs_f64()).sum::<f64>();
    took(0) / took(loss)
}

#[test]
fn a_loss_costs_small_calls_some_round_trips() {
    let speeds = [10, 50].map(|loss| speed(Sequence::SMALL, loss));
    assert!(speeds[0] > 0.8 && speeds[1] > 0.4, "{speeds:?}");
}

#[test]
fn a_loss_costs_rare_calls_some_round_trips() {
    let rare = Sequence { pause: Duration::from_millis(300), calls: 200, ..Sequence::SMALL };
    let outcomes = (0..SEEDS).map(|seed| rare.run(seed, path(10)));
    let timeouts: u64 = outcomes.map(|outcome| outcome.timeouts).sum();
    assert!(timeouts <= 1, "{timeouts} of 1000 calls waited for the retransmission time-out");
}

#[test]
fn a_bad_path_carries_transfers_nearly_as_a_good_one() {
    for transfer in [FETCH, STORE] {
        let speeds = [10, 50].map(|loss| speed(transfer, loss));
        assert!(speeds[0] > 0.8 && speeds[1] > 0.3, "{speeds:?}");
    }
}

#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let small = Sequence { calls: 40, ..BULK };
    let sizes = [small, Sequence { reply: 70_000, ..small }, Sequence { request: 70_000, ..small }];
    for service_time in [0, 1, 30, 90, 150, 2000].map(Duration::from_millis) {
        for pause in [0, 3, 300].map(Duration::from_millis) {
            for sequence in sizes {
                let outcome = Sequence { service_time, pause, ..sequence }.run(1, path(0));
                assert_eq!(outcome.resent, 0, "{service_time:?}, {pause:?}: {outcome:?}");
            }
        }
    }
}
