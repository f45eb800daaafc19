//! Paths that swallow large packets without a word: calls of all sizes work at the speed of the path, and paths that carry large packets get
//! them.

use crate::support::sequence::{Outcome, Sequence};
use crate::support::{Weather, World};
use afs_rx::Config;

const PATH: Weather = Weather { loss: 0, repeat: 0, delay_min_us: 500, delay_max_us: 520, in_order: true };
const BULK: Sequence = Sequence { calls: 20, bytes_per_second: 125_000_000, ..Sequence::SMALL };
const TRANSFERS: [Sequence; 4] = [
    Sequence { request: 1300, ..BULK },
    Sequence { reply: 1300, ..BULK },
    Sequence { request: 1 << 20, ..BULK },
    Sequence { reply: 1 << 20, ..BULK },
];

/// Calls over a path that swallows datagrams over this size.
fn narrow(sequence: Sequence, size_max: usize) -> Outcome {
    let mut world = World::new(1, PATH, &Config::default());
    world.size_max = size_max;
    sequence.run_with(world)
}

#[test]
fn a_path_that_swallows_large_packets_carries_calls_at_its_speed() {
    for transfer in TRANSFERS {
        let (wide, narrow) = (narrow(transfer, usize::MAX), narrow(transfer, 1300));
        let speed = wide.took.as_secs_f64() / narrow.took.as_secs_f64();
        assert!(speed > 0.8 && narrow.resent == 0, "{narrow:?}, {wide:?}");
    }
}

#[test]
fn a_wide_path_gets_large_packets_after_a_round_trip() {
    let transfer = Sequence { calls: 2, reply: 1 << 20, ..BULK };
    let packets = |outcome: Outcome| outcome.data_packets;
    let (wide, narrow) = (packets(narrow(transfer, usize::MAX)), packets(narrow(transfer, 1300)));
    // 1416 and 1204 bytes of data in a packet; the first windows are small ones.
    assert!(narrow - wide > 100, "{narrow} and {wide} packets");
    assert!(wide < 2 * ((1 << 20) / 1416 + 60), "{wide}");
}

#[test]
fn a_client_that_is_to_know_its_paths_learns_them_by_short_calls() {
    let learnt = |asks_paths, size_max| {
        let mut config = Config::default();
        config.asks_paths = asks_paths;
        let mut world = World::new(1, PATH, &config);
        world.size_max = size_max;
        Sequence { calls: 3, ..BULK }.run_with(world).narrow_path
    };
    assert_eq!(learnt(true, usize::MAX), None);
    assert_eq!((learnt(true, 1300), learnt(false, usize::MAX)), (Some(1232), Some(1232)));
}
