//! A drive that crashes, is cut off, is full or away: what was acknowledged is there, the rest is an error, and no garbage stays.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_drive::{ChunkId, ChunkRef, Drive, DriveError, LiveChunks, SweepReport};
use afs_remote::RemoteDrive;
use afs_sim::crash::seeds;
use afs_sim::{StreamFault, StreamMishap};
use kit::{HOUR, Kit, Live, data};

/// Writes a chunk and makes it durable.
async fn store(drive: RemoteDrive, seed: u8, len: usize) -> Result<ChunkRef, DriveError> {
    let chunk = drive.write(data(seed, len)).await?;
    drive.sync(&[chunk]).await?;
    Ok(chunk)
}

fn read(kit: &Kit, drive: &RemoteDrive, chunk: ChunkRef) -> Result<bytes::Bytes, DriveError> {
    let drive = drive.clone();
    kit.run(async move { drive.read(chunk, 0..chunk.len).await })
}

fn sweep(kit: &Kit, drive: &RemoteDrive, live: Vec<ChunkRef>) {
    let drive = drive.clone();
    let report = kit.run(async move { drive.sweep(Arc::new(Live(live))).await }).unwrap();
    assert_eq!(report.missing, []);
}

#[test]
fn a_chunk_of_an_earlier_run_never_becomes_durable() {
    for seed in seeds(20) {
        let kit = Kit::with_drive(seed);
        let drive = kit.remote();
        let own = drive.clone();
        let (synced, written) = kit.run(async move {
            let synced = store(own.clone(), 1, 5000).await.unwrap();
            (synced, own.write(data(2, 5000)).await.unwrap())
        });
        kit.crash(2);
        let own = drive.clone();
        let (later, again) = kit.run(async move {
            let later = own.sync(&[written]).await;
            // The same bytes again: whatever the drive lost, this is another chunk.
            let again = store(own.clone(), 2, 5000).await.unwrap();
            own.discard(vec![written]).await.unwrap();
            (later, again)
        });
        assert!(matches!(later, Err(DriveError::Forgotten)), "seed {seed}: {later:?}");
        assert_ne!(again.id, written.id);
        for (chunk, of) in [(synced, 1), (again, 2)] {
            assert_eq!(read(&kit, &drive, chunk).unwrap(), data(of, 5000), "seed {seed}");
        }
    }
}

#[test]
fn a_lost_connection_loses_nothing_within_a_run() {
    let kit = Kit::with_drive(1);
    let drive = kit.remote();
    let own = drive.clone();
    let written = kit.run(async move { own.write(data(1, 300_000)).await.unwrap() });
    kit.sim.cut(kit.server, kit.host);
    kit.sim.run_for(Duration::from_secs(60));
    kit.sim.mend(kit.server, kit.host);
    let own = drive.clone();
    kit.run(async move { own.sync(&[written]).await }).unwrap();
    kit.crash(2);
    assert_eq!(read(&kit, &drive, written).unwrap(), data(1, 300_000));
}

/// A flush that fails says that what was not durable is lost. The store is opened again then, and nothing else fails for it.
#[test]
fn after_a_failed_flush_the_next_chunk_is_stored() {
    let kit = Kit::with_drive(1);
    let (drive, disk) = (kit.remote(), kit.disk.clone());
    let own = drive.clone();
    let (flushed, next, later) = kit.run(async move {
        let lost = own.write(data(1, 5000)).await.unwrap();
        disk.set_failures(1_000_000, 0);
        let flushed = own.sync(&[lost]).await;
        disk.set_failures(0, 0);
        let next = store(own.clone(), 2, 5000).await;
        (flushed, next, own.sync(&[lost]).await)
    });
    assert!(flushed.is_err(), "the disk has failed");
    assert!(matches!(later, Err(DriveError::Forgotten)), "another flush says nothing of it: {later:?}");
    let next = next.unwrap();
    kit.crash(2);
    assert_eq!(read(&kit, &drive, next).unwrap(), data(2, 5000));
}

/// Every byte of both directions of a small conversation, which includes the borders of all frames.
#[test]
fn a_fault_at_every_byte_loses_no_acknowledged_chunk_and_leaves_no_other() {
    let mishaps = [StreamMishap::Reset, StreamMishap::Silence, StreamMishap::Stall(Duration::from_secs(20))];
    for (to_drive, longest) in [(true, 420), (false, 420)] {
        let mut hit = 0;
        for after in 0..longest {
            for mishap in mishaps {
                let kit = Kit::with_drive(after);
                let (from, to) = if to_drive { (kit.server, kit.host) } else { (kit.host, kit.server) };
                kit.sim.break_stream(from, to, StreamFault { after, mishap });
                let drive = kit.remote();
                let began = kit.sim.now();
                let stored = kit.run(store(drive.clone(), 1, 100));
                hit += u32::from(kit.sim.now() - began > Duration::from_millis(400));
                check(&kit, drive, stored.unwrap());
            }
        }
        assert!(hit > 100, "the faults hit the conversation: {hit}");
    }
}

fn check(kit: &Kit, drive: RemoteDrive, acknowledged: ChunkRef) {
    kit.crash(2);
    assert_eq!(read(kit, &drive, acknowledged).unwrap(), data(1, 100));
    // The file server starts again, and refers to this chunk, then to none.
    let drive = kit.remote();
    sweep(kit, &drive, vec![acknowledged]);
    assert_eq!(read(kit, &drive, acknowledged).unwrap(), data(1, 100));
    sweep(kit, &drive, Vec::new());
    assert_eq!(kit.segments(), [], "garbage is left");
}

/// A write whose reply is lost is made again, and leaves a chunk that nobody knows.
#[test]
fn what_a_lost_reply_left_is_freed_while_the_file_server_runs() {
    const LEN: usize = 100_000;
    let mut left = 0;
    for after in (0..420).step_by(7) {
        let kit = Kit::with_drive(after);
        kit.sim.break_stream(kit.host, kit.server, StreamFault { after, mishap: StreamMishap::Reset });
        let drive = kit.remote();
        let chunk = kit.run(store(drive.clone(), 1, LEN)).unwrap();
        left += u32::from(kit.disk.used() > 2 * LEN as u64);
        let under_way = Arc::new(Live(vec![chunk]));
        sweep_left(&kit, &drive, under_way.clone());
        assert!(kit.disk.used() < 3 * LEN as u64 / 2, "{after}: {} bytes", kit.disk.used());
        assert_eq!(read(&kit, &drive, chunk).unwrap(), data(1, LEN));
        // It costs nothing when nothing was lost since the last one, in the middle of which the connection may have broken.
        sweep_left(&kit, &drive, under_way.clone());
        assert_eq!(sweep_left(&kit, &drive, under_way).segments, 0, "{after}");
    }
    assert!(left > 3, "chunks were left: {left}");
}

/// A sweep of what is left asks the index when all that was under way before its mark is settled, and frees nothing behind it.
#[test]
fn a_sweep_while_chunks_are_written_frees_none_of_them() {
    let kit = Kit::with_drive(7);
    kit.sim.break_stream(kit.host, kit.server, StreamFault { after: 200, mishap: StreamMishap::Reset });
    let drive = kit.remote();
    let before = kit.run(store(drive.clone(), 1, 5000)).unwrap();
    let (own, other) = (drive.clone(), drive.clone());
    let live = Arc::new(Growing::default());
    let (index, settling) = (live.clone(), live.clone());
    let during = kit.run(async move {
        let settled = Box::pin(async move {
            let during = store(other, 2, 5000).await?;
            settling.0.lock().unwrap().push(before);
            settling.1.lock().unwrap().push(during);
            Ok(())
        });
        own.sweep_left(index, settled).await.unwrap();
        live.1.lock().unwrap()[0]
    });
    for (chunk, seed) in [(before, 1), (during, 2)] {
        assert_eq!(read(&kit, &drive, chunk).unwrap(), data(seed, 5000));
    }
}

/// Chunks that are referenced while a sweep waits, and some that it must not ask about.
#[derive(Default)]
struct Growing(Mutex<Vec<ChunkRef>>, Mutex<Vec<ChunkRef>>);

impl LiveChunks for Growing {
    fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        Live(self.0.lock().unwrap().clone()).live_between(first, last)
    }
}

fn sweep_left(kit: &Kit, drive: &RemoteDrive, live: Arc<Live>) -> SweepReport {
    let drive = drive.clone();
    kit.run(async move { drive.sweep_left(live, Box::pin(async { Ok(()) })).await }).unwrap()
}

#[test]
fn a_drive_that_is_away_is_an_error_in_bounded_time_and_used_again_when_it_is_back() {
    let kit = Kit::with_drive(4);
    let drive = kit.remote();
    let chunk = kit.run(store(drive.clone(), 1, 70_000)).unwrap();
    let usage = drive.usage().unwrap();
    kit.sim.crash(kit.host);
    let began = kit.sim.now();
    let own = drive.clone();
    let (read_error, write_error, discarded) = kit.run(async move {
        let read = own.read(chunk, 0..10).await.unwrap_err();
        let write = own.write(data(2, 100)).await.unwrap_err();
        (read, write, own.discard(vec![chunk]).await.unwrap_err())
    });
    assert!(kit.sim.now() - began < Duration::from_secs(90));
    for error in [&read_error, &write_error, &discarded] {
        assert!(matches!(error, DriveError::Away { .. }), "{error}");
    }
    assert!(read_error.to_string().starts_with("drive far cannot be reached"), "{read_error}");
    assert_eq!(drive.usage().unwrap().total, usage.total, "what was known last");
    kit.sim.restart(kit.host);
    kit.start(2);
    assert_eq!(read(&kit, &drive, chunk).unwrap(), data(1, 70_000));
    kit.run(store(drive.clone(), 2, 100)).unwrap();
    let status = drive.clone();
    assert_eq!(kit.run(async move { status.status().await }).unwrap().run, 2);
}

#[test]
fn a_drive_that_has_been_away_for_long_is_not_waited_for_again() {
    let kit = Kit::with_drive(4);
    let drive = kit.remote();
    let chunk = kit.run(store(drive.clone(), 1, 70_000)).unwrap();
    kit.sim.crash(kit.host);
    let took = |what: &str| {
        let began = kit.sim.now();
        assert!(matches!(read(&kit, &drive, chunk), Err(DriveError::Away { .. })), "{what}");
        kit.sim.now() - began
    };
    let first = took("the first");
    assert!((15..30).contains(&first.as_secs()), "{first:?}");
    for n in 0..5 {
        let next = took("one of the next");
        assert!(next <= Duration::from_secs(7), "{n}: {next:?}");
    }
    kit.sim.restart(kit.host);
    kit.start(2);
    assert_eq!(read(&kit, &drive, chunk).unwrap(), data(1, 70_000), "it is used as soon as it is back");
    // It is waited for as long as at first when it is away again.
    kit.sim.crash(kit.host);
    let first = took("after it was back");
    assert!((15..30).contains(&first.as_secs()), "{first:?}");
}

#[test]
fn a_drive_that_is_back_is_known_within_seconds_though_nothing_is_asked_of_it() {
    let kit = Kit::with_drive(4);
    // The first connection is lost in the middle of a read, and opened again at once.
    kit.sim.break_stream(kit.host, kit.server, StreamFault { after: 3000, mishap: StreamMishap::Reset });
    let (drive, told) = (kit.remote(), Arc::new(AtomicU32::new(0)));
    let count = told.clone();
    drive.on_return(Arc::new(move || _ = count.fetch_add(1, Ordering::Relaxed)));
    let times = || told.load(Ordering::Relaxed);
    let chunk = kit.run(store(drive.clone(), 1, 5000)).unwrap();
    let away =
        |what: &str| assert!(matches!(read(&kit, &drive, chunk), Err(DriveError::Away { .. })), "{what}");
    read(&kit, &drive, chunk).unwrap();
    kit.sim.run_for(HOUR);
    assert_eq!(times(), 0, "it was never away");
    kit.sim.crash(kit.host);
    away("its host has no power");
    kit.sim.run_for(HOUR);
    assert_eq!(times(), 0, "it is still away");
    kit.sim.restart(kit.host);
    kit.start(2);
    kit.sim.run_for(Duration::from_secs(12));
    assert_eq!(times(), 1);
    for (from, to) in [(kit.server, kit.host), (kit.host, kit.server)] {
        kit.sim.cut(from, to);
    }
    away("its network is cut");
    for (from, to) in [(kit.server, kit.host), (kit.host, kit.server)] {
        kit.sim.mend(from, to);
    }
    kit.sim.run_for(Duration::from_secs(12));
    assert_eq!(times(), 2);
    read(&kit, &drive, chunk).unwrap();
    assert_eq!(times(), 2, "each return once");
}

#[test]
fn before_the_drive_was_reached_nothing_is_known_of_its_space() {
    let kit = Kit::new(1);
    let drive = kit.remote();
    assert!(matches!(drive.usage(), Err(DriveError::Away { .. })));
}

#[test]
fn a_full_drive_says_so() {
    let kit = Kit::with_drive(1);
    kit.disk.set_capacity(Some(50_000));
    let drive = kit.remote();
    let full = kit.run(store(drive.clone(), 1, 100_000));
    assert!(matches!(full, Err(DriveError::NoSpace)), "{full:?}");
    kit.disk.set_capacity(Some(500_000));
    kit.run(store(drive, 1, 100_000)).unwrap();
}

#[test]
fn a_write_whose_caller_is_gone_leaves_nothing() {
    let kit = Kit::with_drive(1);
    let drive = kit.remote();
    kit.run(store(drive.clone(), 1, 10)).unwrap();
    drop(drive.write(data(2, 20_000)));
    kit.sim.run_for(Duration::from_secs(5));
    // The mark of the next start is behind it, and its segment holds nothing else that is live.
    let next = kit.remote();
    sweep(&kit, &next, Vec::new());
    assert_eq!(kit.segments(), []);
}

#[test]
fn a_sweep_leaves_what_was_written_since_the_start() {
    let kit = Kit::with_drive(1);
    let first = kit.remote();
    let old = kit.run(store(first, 1, 5000)).unwrap();
    let second = kit.remote();
    let new = kit.run(store(second.clone(), 2, 5000)).unwrap();
    sweep(&kit, &second, Vec::new());
    assert_eq!(read(&kit, &second, new).unwrap(), data(2, 5000));
    assert!(read(&kit, &second, old).is_err());
}

#[test]
fn a_failed_flush_is_no_acknowledgement_and_the_drive_goes_on() {
    let kit = Kit::with_drive(1);
    let drive = kit.remote();
    let own = drive.clone();
    let written = kit.run(async move { own.write(data(1, 5000)).await.unwrap() });
    kit.disk.set_failures(1_000_000, 0);
    let own = drive.clone();
    assert!(kit.run(async move { own.sync(&[written]).await }).is_err());
    kit.disk.set_failures(0, 0);
    let own = drive.clone();
    assert!(
        kit.run(async move { own.sync(&[written]).await }).is_err(),
        "it is unknown whether it is durable"
    );
    let chunk = kit.run(store(drive.clone(), 2, 5000));
    let chunk = chunk.or_else(|_| kit.run(store(drive.clone(), 2, 5000))).unwrap();
    assert_eq!(read(&kit, &drive, chunk).unwrap(), data(2, 5000));
}
