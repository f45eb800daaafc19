//! Both ends over simulated streams that are cut, stalled, reset and silent: the right bytes or an error, and no hang.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::time::Duration;

use afs_datapath::capability::{ByteRange, Group, TicketId};
use afs_datapath::frame::Goodbye;
use afs_datapath::session::{Client, Error, Failure, Lost, StoreDescription};
use afs_sim::{SimRng, StreamConfig, StreamFault, StreamMishap};
use kit::{HOUR, Kit, VERSION, directory, drain, file, pattern, piece, range, read};

/// Bytes of a read and of a store, in order, of one attempt.
#[derive(Debug)]
struct Outcome {
    read: Result<Vec<u8>, Error>,
    stored: Result<TicketId, Error>,
}

fn bytes_to_store(len: usize) -> Vec<u8> {
    pattern(file(90), len)
}

fn description(len: usize) -> StoreDescription {
    let half = len as u64 / 2;
    let ranges = vec![range(10, 10 + half), range(half + 100, 100 + len as u64)];
    StoreDescription::new(file(4), 0, ranges).unwrap()
}

async fn store(
    client: &Client,
    handle: &afs_datapath::session::Handle,
    len: usize,
) -> Result<TicketId, Error> {
    let mut leaving = client.store(handle, &description(len)).await?;
    for part in bytes_to_store(len).chunks(100_000) {
        leaving.put(piece(part)).await?;
    }
    leaving.finish().await
}

/// Opens, reads and stores at once; a connection that does not open is an error of both.
fn attempt(kit: &Kit, read_len: usize, store_len: usize) -> Outcome {
    kit.files.add(file(2), read_len);
    let (capability, secret) = kit.sealed(Group::Directory(directory(1)));
    let env = kit.client_env();
    kit.run(async move {
        let opened = kit::open(&env).await.map_err(Error::from);
        let presented = opened.and_then(|client| {
            let handle = client.present(&capability, &secret)?;
            Ok((client, handle))
        });
        let (client, handle) = match presented {
            Ok(presented) => presented,
            Err(error) => return Outcome { read: Err(error.clone()), stored: Err(error) },
        };
        let reading = read(&client, &handle, file(2), ByteRange::ALL);
        let storing = store(&client, &handle, store_len);
        let (read, stored) = afs_env::future::join(reading, storing).await;
        Outcome { read, stored }
    })
}

/// Right bytes or an error; afterwards nothing is left, and the drive has nothing but whole stores.
fn check(kit: &Kit, outcome: &Outcome, read_len: usize, store_len: usize) {
    if let Ok(bytes) = &outcome.read {
        assert!(*bytes == pattern(file(2), read_len), "other bytes");
    }
    if let Ok(ticket) = outcome.stored {
        assert!(kit.files.stored(ticket).1 == bytes_to_store(store_len), "other bytes were stored");
    }
    assert!(kit.files.all_stored().iter().all(|bytes| *bytes == bytes_to_store(store_len)));
    kit.assert_quiet();
}

#[test]
fn a_whole_stream_brings_the_right_bytes() {
    for seed in 0..3 {
        let kit = Kit::new(seed);
        let outcome = attempt(&kit, 3_000_000, 2_500_000);
        assert!(outcome.read.is_ok() && outcome.stored.is_ok(), "seed {seed}: {:?}", outcome.stored);
        check(&kit, &outcome, 3_000_000, 2_500_000);
        let counts = kit.drive.counts();
        assert_eq!((counts.reads, counts.stores, counts.bytes_sent), (1, 1, 3_000_000));
        assert_eq!((counts.bytes_received, counts.failed, counts.violations), (2_500_000, 0, 0));
    }
}

/// Every byte of both directions of a small conversation, which includes the borders of all frames.
#[test]
fn a_fault_at_every_byte_brings_the_right_bytes_or_an_error() {
    const READ: usize = 150;
    const STORE: usize = 120;
    let mishaps = [StreamMishap::Reset, StreamMishap::Silence, StreamMishap::Stall(Duration::from_secs(20))];
    for (to_drive, longest) in [(true, 700), (false, 400)] {
        let mut last_failure = 0;
        for after in 0..longest {
            for mishap in mishaps {
                let kit = Kit::new(after);
                let (from, to) = if to_drive {
                    (kit.client_node, kit.drive_node)
                } else {
                    (kit.drive_node, kit.client_node)
                };
                kit.sim.break_stream(from, to, StreamFault { after, mishap });
                let outcome = attempt(&kit, READ, STORE);
                if outcome.read.is_err() || outcome.stored.is_err() {
                    last_failure = after;
                }
                if matches!(mishap, StreamMishap::Stall(_)) && after > 90 {
                    assert!(outcome.read.is_ok() && outcome.stored.is_ok(), "{after}: {outcome:?}");
                }
                check(&kit, &outcome, READ, STORE);
            }
        }
        assert!(200 < last_failure && last_failure + 1 < longest, "{last_failure}: not all bytes were tried");
    }
}

/// Random faults of large streams. A failure prints its seed.
#[test]
fn random_faults_bring_the_right_bytes_or_an_error() {
    let (mut good, mut bad) = (0, 0);
    for seed in afs_sim::crash::seeds(40) {
        println!("seed {seed}");
        let kit = Kit::new(seed);
        let mut rng = SimRng::new(seed);
        kit.sim.set_streams(StreamConfig {
            segment_max: 1 << rng.between(8, 18),
            stall_per_million: 20_000,
            stall_max: Duration::from_secs(rng.between(1, 40)),
            reset_per_million: u32::try_from(rng.below(20_000)).unwrap(),
            silence_per_million: u32::try_from(rng.below(20_000)).unwrap(),
            ..StreamConfig::default()
        });
        let (read_len, store_len) = (rng.index(3_000_000) + 1, rng.index(3_000_000) + 2);
        let outcome = attempt(&kit, read_len, store_len);
        if outcome.read.is_ok() {
            good += 1
        } else {
            bad += 1
        }
        check(&kit, &outcome, read_len, store_len);
    }
    assert!(good > 0 && bad > 0, "{good} good, {bad} bad: the faults are too many or too few");
}

/// A reader that takes nothing does not stop another one, and its stream is given up after a while.
#[test]
fn a_reader_that_stops_stops_no_other() {
    let kit = Kit::new(5);
    kit.files.add(file(2), 20_000_000);
    kit.files.add(file(4), 3_000_000);
    let client = kit.open();
    let handle = kit.present(&client);
    let outcome = kit.run(async move {
        let stopped = client.read(&handle, file(2), ByteRange::ALL, VERSION).await.unwrap();
        let other = read(&client, &handle, file(4), ByteRange::ALL).await;
        assert!(other.unwrap() == pattern(file(4), 3_000_000));
        (client, stopped)
    });
    kit.sim.run_for(Duration::from_secs(60));
    assert_eq!(kit.drive.counts().in_progress, 0, "the drive gives a stalled stream up");
    let (client, stopped) = outcome;
    assert_eq!(kit.run(drain(stopped)), Err(Failure::Stalled.into()));
    assert_eq!(client.lost(), None);
    drop(client);
    kit.assert_quiet();
}

/// While a stream of 64 MB is on its way, a small read waits for a frame or two of it.
#[test]
fn a_small_read_does_not_wait_for_a_stream() {
    let kit = Kit::new(6);
    const SLOW: u64 = 10_000_000;
    let slow = StreamConfig { bytes_per_second: SLOW, ..StreamConfig::default() };
    kit.sim.set_streams_between(kit.drive_node, kit.client_node, slow);
    kit.files.add(file(2), 64_000_000);
    let small = kit.files.add(file(4), 4096);
    let client = kit.open();
    let handle = kit.present(&client);
    let env = kit.client_env();
    let took = kit.run(async move {
        let mut stream = client.read(&handle, file(2), ByteRange::ALL, VERSION).await.unwrap();
        let mut came = 0;
        while came < 5_000_000 {
            came += stream.next().await.unwrap().unwrap().len();
        }
        env.spawn(Box::pin(async move { while let Ok(Some(_)) = stream.next().await {} }));
        let before = env.now();
        assert_eq!(read(&client, &handle, file(4), ByteRange::ALL).await.unwrap(), small);
        env.now() - before
    });
    // What lies in the buffers of the simulated stream, and one frame behind it.
    let buffers = 2 * (256 << 10) + 2 * afs_datapath::session::DATA_MAX as u64;
    let most = Duration::from_secs(1).mul_f64(buffers as f64 / SLOW as f64) + Duration::from_millis(50);
    assert!(took < most, "{took:?} of {most:?}");
}

#[test]
fn dropping_a_read_or_a_store_ends_it_at_the_drive() {
    let kit = Kit::new(7);
    kit.files.add(file(2), 40_000_000);
    let client = kit.open();
    let handle = kit.present(&client);
    let held = kit.run(async move {
        let arriving = client.read(&handle, file(2), ByteRange::ALL, VERSION).await.unwrap();
        let mut leaving = client.store(&handle, &description(1_000_000)).await.unwrap();
        leaving.put(piece(&[1; 1000])).await.unwrap();
        drop((arriving, leaving));
        client
    });
    kit.sim.run_for(Duration::from_secs(1));
    assert_eq!(kit.drive.counts().in_progress, 0);
    assert!(kit.files.all_stored().is_empty());
    assert!(kit.drive.counts().bytes_sent < 4_000_000);
    drop(held);
    kit.assert_quiet();
}

/// More requests than the drive permits wait at the client.
#[test]
fn many_requests_wait_for_their_place() {
    let kit = Kit::new(8);
    let bytes = kit.files.add(file(2), 300_000);
    let client = kit.open();
    let handle = kit.present(&client);
    let outcomes = kit.run(async move {
        let reads = (0..200).map(|_| read(&client, &handle, file(2), ByteRange::ALL));
        afs_env::future::join_all(reads).await
    });
    assert!(outcomes.iter().all(|outcome| outcome.as_ref() == Ok(&bytes)));
    assert_eq!(kit.drive.counts().turned_away, 0);
    kit.assert_quiet();
}

#[test]
fn a_store_has_exactly_the_bytes_of_its_ranges() {
    let kit = Kit::new(9);
    let client = kit.open();
    let handle = kit.present(&client);
    let outcomes = kit.run(async move {
        let store = description(1000);
        let mut more = client.store(&handle, &store).await.unwrap();
        let more = more.put(piece(&[1; 1001])).await;
        let mut fewer = client.store(&handle, &store).await.unwrap();
        fewer.put(piece(&[1; 999])).await.unwrap();
        let fewer = fewer.finish().await.map(drop);
        let nothing = StoreDescription::new(file(4), 0, vec![]).unwrap();
        let nothing = client.store(&handle, &nothing).await.unwrap().finish().await.map(drop);
        (more, fewer, nothing)
    });
    assert_eq!(outcomes, (Err(Error::Length), Err(Error::Length), Ok(())));
    assert_eq!(kit.files.all_stored(), [vec![]]);
}

#[test]
fn other_versions_missing_files_and_empty_ranges() {
    let kit = Kit::new(10);
    kit.files.add(file(2), 10);
    let client = kit.open();
    let handle = kit.present(&client);
    kit.run(async move {
        let other = client.read(&handle, file(2), ByteRange::ALL, VERSION.next()).await;
        assert_eq!(other.err(), Some(Failure::OtherVersion.into()));
        let missing = client.read(&handle, file(6), ByteRange::ALL, VERSION).await;
        assert_eq!(missing.err(), Some(Failure::NoObject.into()));
        for (wanted, length) in [(range(4, 4), 0), (range(10, 90), 0), (range(3, 90), 7)] {
            let arriving = client.read(&handle, file(2), wanted, VERSION).await.unwrap();
            assert_eq!((arriving.length(), arriving.file_length()), (length, 10), "{wanted:?}");
            assert_eq!(drain(arriving).await.unwrap().len() as u64, length);
        }
    });
}

/// An idle connection lives by signs of life, until the drive has enough of it.
#[test]
fn an_idle_connection_lives_for_ten_minutes() {
    let kit = Kit::new(11);
    kit.files.add(file(2), 10);
    let client = kit.open();
    kit.sim.run_for(Duration::from_secs(500));
    assert_eq!(client.lost(), None);
    let handle = kit.present(&client);
    let reader = client.clone();
    kit.run(async move { read(&reader, &handle, file(2), ByteRange::ALL).await.unwrap() });
    kit.sim.run_for(Duration::from_secs(500));
    assert_eq!(client.lost(), None);
    kit.sim.run_for(Duration::from_secs(200));
    assert_eq!(client.lost(), Some(Lost::Goodbye(Goodbye::Idle)));
    drop(client);
    kit.assert_quiet();
}

/// A machine that vanishes is given up by the other, in either role.
#[test]
fn a_peer_that_vanishes_is_given_up() {
    let kit = Kit::new(12);
    let client = kit.open();
    kit.sim.cut(kit.drive_node, kit.client_node);
    kit.sim.cut(kit.client_node, kit.drive_node);
    let lost = kit.run({
        let client = client.clone();
        async move { client.ended().await }
    });
    assert_eq!(lost, Lost::Silent);
    kit.sim.run_for(Duration::from_secs(30));
    assert_eq!(kit.drive.counts().connected, 0);
    drop(client);
    kit.sim.mend(kit.drive_node, kit.client_node);
    kit.sim.mend(kit.client_node, kit.drive_node);
    kit.sim.run_for(HOUR);
    kit.assert_quiet();
}

#[test]
fn a_drive_that_stops_ends_its_connections() {
    let kit = Kit::new(13);
    kit.files.add(file(2), 40_000_000);
    let client = kit.open();
    let handle = kit.present(&client);
    let drive = kit.drive.clone();
    let outcome = kit.run(async move {
        let mut arriving = client.read(&handle, file(2), ByteRange::ALL, VERSION).await.unwrap();
        arriving.next().await.unwrap();
        drive.stop();
        drain(arriving).await
    });
    assert_eq!(outcome, Err(Lost::Goodbye(Goodbye::Done).into()));
    let env = kit.client_env();
    assert!(kit.run(async move { kit::open(&env).await.is_err() }), "a stopped drive takes a connection");
    kit.assert_quiet();
}
