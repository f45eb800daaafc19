//! Windows held against plain bytes, and their bounds at every moment.

use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afs_wire::ids::DataVersion;
use bytes::Bytes;

use super::*;
use crate::config::BypassLimits;

const PIECE: u64 = 4096;
const WINDOW: u64 = 8 * PIECE;
const ALL: u64 = 3 * WINDOW;
const V: DataVersion = DataVersion(5);

fn windows() -> Arc<Windows> {
    let limits = BypassLimits { window_bytes: WINDOW, bytes_max: ALL, ..BypassLimits::default() };
    Arc::new(Windows::new(&limits, PIECE))
}

/// Bytes of a version of the file.
fn part(version: DataVersion, range: Range<u64>) -> Bytes {
    range.map(|n| (n * 7 + (n >> 8) * 31 + version.0 * 101) as u8).collect()
}

fn claimed(found: Found) -> Claim {
    match found {
        Found::Missing(claim) => claim,
        Found::Here(_) => panic!("it is here"),
        Found::Coming => panic!("it is on its way"),
        Found::Full => panic!("there is no memory"),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// One open file, and who reads it.
struct Open {
    window: Window,
    version: DataVersion,
    at: u64,
    ahead: Vec<Claim>,
}

/// Reads from one end to the other and here and there, through several windows, while files change and what is fetched
/// ahead arrives in any order or not at all.
#[test]
fn any_reads_through_windows_give_the_bytes_of_the_file_within_the_bounds() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let all = windows();
        let lengths = [1, PIECE - 1, 5 * PIECE, 40 * PIECE + 17];
        let new = |all: &Arc<Windows>| Open { window: all.open(), version: V, at: 0, ahead: Vec::new() };
        let mut opens: Vec<(Open, u64)> = (0..6).map(|n| (new(&all), lengths[n % 4])).collect();
        for _ in 0..600 {
            let n = random.below(6) as usize;
            let (open, length) = &mut opens[n];
            match random.below(40) {
                0 => open.version = DataVersion(open.version.0 + 1),
                1 => *open = new(&all),
                2 => open.at = random.below(*length),
                _ => read(&all, open, *length, &mut random),
            }
            assert!(all.bytes() <= ALL, "seed {seed}: {} bytes", all.bytes());
        }
        opens.clear();
        assert_eq!(all.bytes(), 0, "seed {seed}: something is left of what is closed");
    }
}

fn read(all: &Arc<Windows>, open: &mut Open, length: u64, random: &mut Random) {
    let end = (open.at + 1 + random.below(2 * PIECE)).min(length);
    let is_sequential = random.below(4) > 0;
    while open.at < end {
        let piece = all.piece(&(open.at..end), length, is_sequential);
        assert!(piece.contains(&open.at) && piece.end <= length && piece.end - piece.start <= PIECE);
        match open.window.find(open.version, open.at, piece) {
            Found::Here(came) => {
                let taken = came.len().min((end - open.at) as usize) as u64;
                assert!(came[..taken as usize] == part(open.version, open.at..open.at + taken));
                open.at += taken;
            }
            Found::Missing(claim) => {
                assert_eq!(claim.version(), open.version);
                let range = claim.range();
                claim.fill(part(open.version, range));
            }
            // The fetch of this range ends: it has come or it has failed.
            Found::Coming => {
                for claim in open.ahead.drain(..) {
                    let came = part(claim.version(), claim.range());
                    if random.below(3) > 0 {
                        claim.fill(came);
                    }
                }
            }
            Found::Full => panic!("no other reader waits"),
        }
    }
    if is_sequential {
        let after = all.pieces_after(open.at, length);
        open.ahead.extend(after.filter_map(|piece| open.window.claim_ahead(open.version, open.at, piece)));
    }
    if open.at == length {
        open.at = 0;
    }
}

#[test]
fn a_reader_never_waits_for_what_is_fetched_ahead() {
    let all = windows();
    let mut claims = Vec::new();
    let opens: Vec<Window> = (0..10).map(|_| all.open()).collect();
    // All of them fetch ahead as much as they may, and nothing comes.
    for window in &opens {
        let reader = claimed(window.find(V, 0, 0..PIECE));
        reader.fill(part(V, 0..PIECE));
        let after = all.pieces_after(PIECE, 1 << 20);
        claims.extend(after.filter_map(|piece| window.claim_ahead(V, PIECE, piece)));
    }
    assert!(claims.len() >= 6 && all.bytes() <= ALL);
    // A jump of each of them, one after the other.
    for window in &opens {
        claimed(window.find(V, 1 << 19, 1 << 19..(1 << 19) + PIECE))
            .fill(Bytes::from(vec![1; PIECE as usize]));
    }
    // And of several at a time.
    let waited_for: Vec<Claim> =
        opens.iter().map(|window| claimed(window.find(V, 1 << 18, 1 << 18..(1 << 18) + PIECE))).collect();
    assert_eq!(waited_for.len(), 10);
    assert!(all.bytes() <= ALL);
}

#[test]
fn two_readers_of_a_window_fetch_a_range_once() {
    let all = windows();
    let window = all.open();
    let first = claimed(window.find(V, 100, 0..PIECE));
    assert!(matches!(window.find(V, 0, 0..PIECE), Found::Coming));
    assert!(matches!(window.find(V, PIECE - 1, 0..PIECE), Found::Coming));
    let other = claimed(window.find(V, PIECE, PIECE..2 * PIECE));
    let mut changed = pin!(all.changed());
    let mut context = Context::from_waker(Waker::noop());
    assert!(changed.as_mut().poll(&mut context).is_pending());
    // It fails: whoever waits tries for himself.
    drop(first);
    assert_eq!(changed.as_mut().poll(&mut context), Poll::Ready(()));
    assert_eq!(claimed(window.find(V, 0, 0..PIECE)).range(), 0..PIECE);
    drop(other);
    assert_eq!(all.bytes(), 0);
}

#[test]
fn only_what_is_missing_of_a_range_is_fetched() {
    let all = windows();
    let window = all.open();
    claimed(window.find(V, 1000, 1000..1100)).fill(Bytes::from(vec![1; 100]));
    assert_eq!(claimed(window.find(V, 500, 0..PIECE)).range(), 0..1000);
    assert_eq!(claimed(window.find(V, 1100, 0..PIECE)).range(), 1100..PIECE);
}

#[test]
fn data_of_one_version_is_never_returned_as_another() {
    let all = windows();
    let window = all.open();
    let late = claimed(window.find(V, 0, 0..PIECE));
    let next = V.next();
    let newer = claimed(window.find(next, 0, 0..PIECE));
    late.fill(Bytes::from(vec![1; PIECE as usize]));
    assert!(matches!(window.find(next, 0, 0..PIECE), Found::Coming));
    assert!(window.claim_ahead(V, 0, PIECE..2 * PIECE).is_none(), "the window has gone on");
    newer.fill(Bytes::from(vec![2; PIECE as usize]));
    match window.find(next, 0, 0..PIECE) {
        Found::Here(bytes) => assert!(bytes.iter().all(|byte| *byte == 2)),
        _ => panic!("it has come"),
    }
    assert_eq!(all.bytes(), PIECE);
}

#[test]
fn memory_of_idle_readers_is_freed_and_data_in_transit_counts() {
    let all = windows();
    let idle: Vec<Window> = (0..3).map(|_| all.open()).collect();
    for window in &idle {
        for n in 0..8 {
            let range = n * PIECE..(n + 1) * PIECE;
            claimed(window.find(V, range.start, range)).fill(Bytes::from(vec![1; PIECE as usize]));
        }
    }
    assert_eq!(all.bytes(), ALL);
    let window = all.open();
    let mut claims = Vec::new();
    for n in 0..ALL / PIECE {
        claims.push(claimed(window.find(V, n * PIECE, n * PIECE..(n + 1) * PIECE)));
        assert!(all.bytes() <= ALL);
    }
    assert!(matches!(window.find(V, ALL, ALL..ALL + PIECE), Found::Full));
    // Closed, its memory is still taken until the fetches are over.
    drop(window);
    assert_eq!(all.bytes(), ALL);
    drop(claims);
    assert_eq!(all.bytes(), 0);
}
