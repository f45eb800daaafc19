//! Large transfers between two endpoints, in simulated time: the window must open, losses must be repaired without
//! waiting for timers, and a slow reader must neither stall nor break anything.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_rx::{CallId, Config, Event, Instant, NullClient, NullServer, Read};
use bytes::Bytes;
use core::time::Duration;
use support::{CLIENT, SERVER, Weather, World, address};

const SERVICE: u16 = 1;

/// Measurements of a transfer.
#[derive(Debug)]
struct Outcome {
    took: Duration,
    resent: u64,
    timeouts: u64,
    packets: u64,
    acks: u64,
    buffered_max: usize,
}

/// Fetches `len` bytes. `nap` is the reader's pause after every 64 KiB.
fn fetch(seed: u64, weather: Weather, config: &Config, len: usize, nap: Duration) -> Outcome {
    let mut world = World::new(seed, weather, config);
    world.ends[SERVER].listen(SERVICE, vec![Box::new(NullServer)]).unwrap();
    let connection = world.ends[CLIENT].connect(world.now, address(SERVER), SERVICE, Box::new(NullClient));
    let call = world.ends[CLIENT].open_call(world.now, connection).unwrap();
    world.ends[CLIENT].finish_send(world.now, call).unwrap();
    let (start, chunk) = (world.now, Bytes::from(vec![7; 1 << 20]));
    let (mut writer, mut left, mut read, mut rested, mut buffered_max) = (None, len, 0, 0, 0);
    let mut awake_at = Instant::ZERO;
    loop {
        world.transmit();
        while let Some(event) = world.ends[SERVER].poll_event() {
            if let Event::IncomingCall { call, .. } = event {
                writer = Some(call);
            }
        }
        if let Some(call) = writer {
            left -= write(&mut world, call, &chunk, left);
            if left == 0 {
                world.ends[SERVER].finish_send(world.now, call).unwrap();
                writer = None;
            }
        }
        buffered_max = buffered_max.max(world.ends[CLIENT].stats().buffered_bytes);
        while world.now >= awake_at {
            let Ok(Read::Data(data)) = world.ends[CLIENT].read(world.now, call, 1 << 16) else { break };
            read += data.len();
            if read - rested >= 1 << 16 && !nap.is_zero() {
                rested = read;
                awake_at = world.now + nap;
            }
        }
        world.transmit();
        match world.ends[CLIENT].poll_event() {
            Some(Event::Finished(_, result)) => {
                assert_eq!((result, read), (Ok(()), len));
                break;
            }
            _ => {
                let sleeper = Some(awake_at).filter(|at| *at > world.now);
                let next = world.next().into_iter().chain(sleeper).min().expect("the call goes on");
                world.advance(next);
            }
        }
    }
    let stats = world.ends[SERVER].stats();
    Outcome {
        took: world.now - start,
        resent: stats.data_resent,
        timeouts: stats.timeouts,
        packets: stats.packets_sent[0],
        acks: stats.packets_read[1],
        buffered_max,
    }
}

fn write(world: &mut World, call: CallId, chunk: &Bytes, left: usize) -> usize {
    let mut data = chunk.slice(..chunk.len().min(left));
    world.ends[SERVER].write(world.now, call, &mut data).unwrap()
}

fn path(delay_ms: u64, loss: u64) -> Weather {
    Weather {
        loss,
        repeat: 0,
        delay_min_us: delay_ms * 1000,
        delay_max_us: delay_ms * 1000 + 100,
        in_order: true,
    }
}

#[test]
fn the_window_opens_on_a_long_path() {
    let outcome = fetch(1, path(10, 0), &Config::default(), 20 << 20, Duration::ZERO);
    // The classic window of 32 packets would take nine seconds.
    assert!(outcome.took < Duration::from_millis(600), "{outcome:?}");
    assert_eq!((outcome.resent, outcome.timeouts), (0, 0), "{outcome:?}");
    assert!(outcome.acks * 2 <= outcome.packets + 10, "{outcome:?}");
}

#[test]
fn single_losses_are_mended_without_timers() {
    let (mut timeouts, mut took) = (0, Duration::ZERO);
    for seed in 0..10 {
        let outcome = fetch(seed, path(5, 2), &Config::default(), 4 << 20, Duration::ZERO);
        timeouts += outcome.timeouts;
        took += outcome.took;
        assert!(outcome.resent < 40, "{outcome:?}");
    }
    assert!(timeouts <= 2, "{timeouts}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_slow_reader_closes_the_window_and_nothing_is_lost() {
    let mut config = Config::default();
    config.receive_buffer = 1 << 20;
    let outcome = fetch(3, path(1, 0), &config, 8 << 20, Duration::from_millis(20));
    assert_eq!((outcome.resent, outcome.timeouts), (0, 0), "{outcome:?}");
    // A full window, with the memory per packet.
    assert!(outcome.buffered_max <= (1 << 20) + (1 << 20) / 1444 * 96, "{outcome:?}");
    // 128 naps of 20 ms, and hardly more.
    assert!(outcome.took < Duration::from_millis(2800), "{outcome:?}");
}

#[test]
fn a_slow_reader_on_a_bad_path() {
    let mut config = Config::default();
    config.receive_buffer = 1 << 20;
    for seed in 0..10 {
        let outcome = fetch(seed, path(1, 10), &config, 4 << 20, Duration::from_millis(20));
        assert!(outcome.took < Duration::from_secs(10), "seed {seed}: {outcome:?}");
    }
}

#[test]
fn a_reader_that_stops_for_seconds_is_waited_for() {
    let mut config = Config::default();
    config.receive_buffer = 64 << 10;
    let outcome = fetch(5, path(1, 20), &config, 512 << 10, Duration::from_secs(3));
    assert!(outcome.took < Duration::from_secs(30), "{outcome:?}");
}
