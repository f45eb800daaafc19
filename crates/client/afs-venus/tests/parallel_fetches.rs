//! Large files that come by several calls at a time: in any order, with failures, other versions and lies among them.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_venus::{HandleId, OpenFlags, Result};
use afs_wire::error::AbortCode;
use afs_wire::ids::DataVersion;
use afs_wire::vl::SiteFlags;
use common::fakes::{Answer, Fakes, Fetches, Image, RW, Shared};
use common::{Client, pattern};

const CHUNK: u64 = 64 << 10;
const LENGTH: usize = 16 * CHUNK as usize;
/// EIO of a server.
const EIO: AbortCode = AbortCode(5);
/// For what needs no more than a few round trips.
const SHORTLY: Duration = Duration::from_secs(2);

/// What a reader has read, piece by piece; the error that ended it.
#[derive(Default)]
struct Read {
    pieces: Vec<Vec<u8>>,
    outcome: Option<Result<()>>,
}

struct World {
    cell: Fakes,
    image: Shared,
    client: Client,
}

/// A server with a large file of these bytes, and others; a client that reads far ahead.
fn world(seed: u64, data: &[u8]) -> World {
    let mut image = Image::new(100).with("big", data).with("__past", data);
    for n in 0..6 {
        image = image.with(&format!("big{n}"), data);
    }
    let image = Arc::new(Mutex::new(image));
    let mut cell = Fakes::new(seed, 1, 1);
    cell.set_limits(|limits| limits.read_ahead_chunks = 8);
    cell.servers[0].host(RW, &image, true);
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    let client = cell.client(0);
    World { cell, image, client }
}

impl World {
    fn fetches(&self) -> &Fetches {
        &self.cell.servers[0].fetches
    }

    fn open(&self, name: &'static str) -> HandleId {
        let one = self.client.clone();
        self.cell.on(&self.client, async move { one.open(name, OpenFlags::READ).await.unwrap() })
    }

    /// Starts to read a range in pieces of a chunk.
    fn start(&self, handle: HandleId, from: u64, to: u64) -> Arc<Mutex<Read>> {
        let read = Arc::new(Mutex::new(Read::default()));
        let (one, told) = (self.client.clone(), read.clone());
        self.client.env.spawn(Box::pin(async move {
            let mut outcome = Ok(());
            for pos in (from..to).step_by(CHUNK as usize) {
                match one.venus.read(handle, pos, CHUNK as usize).await {
                    Ok(piece) => told.lock().unwrap().pieces.push(piece.to_vec()),
                    Err(error) => {
                        outcome = Err(error);
                        break;
                    }
                }
            }
            told.lock().unwrap().outcome = Some(outcome);
        }));
        self.cell.sim.run_for(SHORTLY);
        read
    }

    fn start_all(&self, name: &'static str) -> Arc<Mutex<Read>> {
        self.start(self.open(name), 0, LENGTH as u64)
    }

    /// What the server has from now on; nobody is told.
    fn change(&self, name: &str, data: &[u8]) {
        let mut image = self.image.lock().unwrap();
        let vnode = image.find(RW, name.as_bytes()).unwrap().vnode;
        image.store(vnode, 0, data, data.len() as u64).unwrap();
    }

    fn release(&self, position: u64) {
        self.fetches().release(position);
        self.cell.sim.run_for(SHORTLY);
    }

    fn finish(&self, read: &Mutex<Read>) {
        self.fetches().hold(false);
        self.cell.sim.run_for(Duration::from_secs(120));
        assert!(read.lock().unwrap().outcome.is_some(), "the reader hangs");
    }
}

impl Read {
    fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    fn is_done(&self) -> bool {
        self.outcome.is_some()
    }

    /// Whether each piece is of one version, and none of an older one than the piece before.
    fn is_of_versions(&self, old: u8, new: u8) -> bool {
        let first_new = self.pieces.iter().position(|piece| piece[0] == new).unwrap_or(self.pieces.len());
        let is_of = |piece: &Vec<u8>, byte: u8| piece.iter().all(|it| *it == byte);
        let mut pieces = self.pieces.iter().enumerate();
        pieces.all(|(n, piece)| is_of(piece, if n < first_new { old } else { new }))
    }
}

#[test]
fn a_reader_gets_its_file_by_three_calls_at_a_time_in_whatever_order_they_end() {
    for seed in 0..12 {
        let data = pattern(LENGTH, seed);
        let world = world(seed, &data);
        world.fetches().hold(true);
        let read = world.start_all("big");
        assert_eq!(world.fetches().waiting(), [0], "seed {seed}: nothing competes with what is read first");
        world.release(0);
        assert_eq!(world.fetches().waiting(), [CHUNK, 2 * CHUNK, 3 * CHUNK], "seed {seed}");
        let mut draw = seed;
        while !read.lock().unwrap().is_done() {
            let waiting = world.fetches().waiting();
            assert!((1..=3).contains(&waiting.len()), "seed {seed}: {waiting:?}");
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            world.release(waiting[(draw >> 33) as usize % waiting.len()]);
        }
        let read = read.lock().unwrap();
        assert!(read.outcome == Some(Ok(())) && read.bytes() == data, "seed {seed}");
        assert_eq!(world.fetches().most(), 3);
        (0..16).for_each(|n| assert_eq!(world.fetches().begun(n * CHUNK), 1, "chunk {n}"));
    }
}

#[test]
fn a_reader_past_the_cache_has_three_calls_too() {
    let data = pattern(LENGTH, 3);
    let world = world(3, &data);
    world.fetches().hold(true);
    let read = world.start_all("__past");
    while !read.lock().unwrap().is_done() {
        world.release(*world.fetches().waiting().last().unwrap());
    }
    assert!(read.lock().unwrap().bytes() == data);
    assert_eq!(world.fetches().most(), 3);
}

#[test]
fn what_is_fetched_ahead_never_delays_a_reader_who_is_elsewhere() {
    let data = pattern(LENGTH, 4);
    let world = world(4, &data);
    world.fetches().hold(true);
    let handle = world.open("big");
    let first = world.start(handle, 0, CHUNK);
    world.release(0);
    assert!(first.lock().unwrap().is_done());
    assert_eq!(world.fetches().waiting().len(), 3, "nobody waits for them");
    let far = 13 * CHUNK;
    let second = world.start(handle, far, far + CHUNK);
    world.release(far);
    assert!(second.lock().unwrap().bytes() == data[far as usize..][..CHUNK as usize]);
}

#[test]
fn a_fetch_that_fails_is_made_again_by_the_reader() {
    let data = pattern(LENGTH, 5);
    let world = world(5, &data);
    for n in [1, 2, 6] {
        world.fetches().answer_once(n * CHUNK, Answer::Abort(EIO));
    }
    let read = world.start_all("big");
    world.finish(&read);
    assert!(read.lock().unwrap().bytes() == data);
    let all: usize = (0..16).map(|n| world.fetches().begun(n * CHUNK)).sum();
    assert_eq!(all, 16 + 3);
}

#[test]
fn the_reader_gets_the_error_of_a_chunk_that_cannot_be_fetched_and_what_comes_before_it() {
    let data = pattern(LENGTH, 6);
    let world = world(6, &data);
    world.fetches().answer(3 * CHUNK, Answer::Abort(EIO));
    let read = world.start_all("big");
    world.finish(&read);
    let read = read.lock().unwrap();
    assert_eq!(read.outcome.as_ref().unwrap().as_ref().unwrap_err().errno(), 5);
    assert!(read.bytes() == data[..3 * CHUNK as usize]);
    assert!(world.fetches().begun(3 * CHUNK) <= 5, "it is not tried again and again");
}

#[test]
fn a_version_that_changes_between_the_calls_is_never_mixed_into_one_read() {
    let old = vec![b'o'; LENGTH];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let world = world(7, &old);
        world.fetches().hold(true);
        let read = world.start_all("big");
        world.change("big", &vec![b'n'; LENGTH]);
        // The second of the three is of the new version, the others were begun before.
        world.fetches().answer_once(CHUNK, Answer::AsItIsNow);
        order.into_iter().for_each(|n| world.release(n * CHUNK));
        world.finish(&read);
        let read = read.lock().unwrap();
        assert!(read.outcome == Some(Ok(())) && read.pieces.len() == 16, "{order:?}");
        assert!(read.is_of_versions(b'o', b'n'), "{order:?}");
        assert_eq!(read.pieces[15][0], b'n', "{order:?}");
    }
}

#[test]
fn a_break_between_the_calls_leaves_every_read_of_one_version() {
    let (old, new) = (vec![b'o'; LENGTH], vec![b'n'; LENGTH]);
    for answered in 0..3 {
        let world = world(8, &old);
        world.fetches().hold(true);
        let read = world.start_all("big");
        (0..answered).for_each(|n| world.release(n * CHUNK));
        let (other, data) = (world.cell.client(1), new.clone());
        let writer = other.clone();
        world.cell.on(&other, async move { writer.put("big", &data).await.unwrap() });
        world.finish(&read);
        assert!(read.lock().unwrap().is_of_versions(b'o', b'n'), "{answered} answered");
        let after = world.start_all("big");
        world.finish(&after);
        assert!(after.lock().unwrap().bytes() == new, "{answered} answered");
    }
}

#[test]
fn a_server_that_lies_in_one_of_the_calls_costs_an_error_and_never_gives_wrong_bytes() {
    let data = pattern(LENGTH, 9);
    let lies = [
        Answer::Shorter(1),
        Answer::Shorter(CHUNK as usize),
        Answer::Longer(1),
        Answer::Longer(3 * CHUNK as usize),
        Answer::OfVersion(DataVersion(0)),
        Answer::OfVersion(DataVersion(99)),
    ];
    for lie in lies {
        for position in [0, CHUNK, 2 * CHUNK, 15 * CHUNK] {
            let world = world(9, &data);
            world.fetches().answer(position, lie);
            let read = world.start_all("big");
            world.finish(&read);
            let read = read.lock().unwrap();
            assert!(data.starts_with(&read.bytes()), "{lie:?} at {position}");
            // Only of another version the server may have these bytes.
            let is_right = lie == Answer::OfVersion(DataVersion(99)) && read.bytes() == data;
            assert!(is_right || read.outcome.as_ref().is_some_and(Result::is_err), "{lie:?} at {position}");
            let all: usize = (0..16).map(|n| world.fetches().begun(n * CHUNK)).sum();
            assert!(all <= 100, "{lie:?} at {position}: {all} calls");
            // Another file of the server, of which it tells the truth.
            world.fetches().answer(position, Answer::AsBegun);
            let other = world.start_all("big1");
            world.finish(&other);
            assert!(other.lock().unwrap().bytes() == data, "{lie:?} at {position}");
        }
    }
}

/// All of these readers are one user, whose calls share the channels of a few connections.
#[test]
fn many_readers_of_large_files_leave_channels_for_small_calls() {
    let data = pattern(LENGTH, 10);
    let world = world(10, &data);
    world.fetches().hold(true);
    let names = ["big", "big0", "big1", "big2", "big3", "big4", "big5"];
    let reads = names.map(|name| world.start_all(name));
    let waiting = world.fetches().waiting().len();
    assert!((names.len()..=16 + names.len()).contains(&waiting), "{waiting}");
    let (one, before) = (world.client.clone(), world.cell.sim.now());
    world.cell.on(&world.client, async move { one.put("small", b"x").await.unwrap() });
    assert!(world.cell.sim.now() - before < SHORTLY);
    assert_eq!(world.fetches().waiting().len(), waiting);
    for read in reads {
        world.finish(&read);
        assert!(read.lock().unwrap().bytes() == data);
    }
}
