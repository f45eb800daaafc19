//! Tests of changes, stores and versions of file data, against plain bytes.

use std::ops::Range;

use afs_wire::ids::{DataVersion, FileTime, UnixSeconds};

use super::*;
use crate::api::Seek;
use crate::cache::Ranges;

const NOW: FileTime = FileTime::new(UnixSeconds(1000), 1);

fn complete(length: u64) -> Content {
    Content { present: Ranges::whole(length), ..Content::new(DataVersion(5), length) }
}

fn piece(range: Range<u64>, file_length: u64) -> Piece {
    Piece { range, file_length }
}

/// A server that follows the protocol.
fn server_stores(file: &mut Vec<u8>, piece: &Piece, ours: &[u8]) {
    if (piece.file_length as usize) < file.len() {
        file.truncate(piece.file_length as usize);
    }
    let (start, end) = (piece.range.start as usize, piece.range.end as usize);
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(&ours[start..end]);
}

#[test]
fn pieces_of_a_store_by_kind_of_change() {
    type Row = (&'static str, u64, fn(&mut Content), Vec<Piece>);
    let table: Vec<Row> = vec![
        ("nothing", 100, |_| (), vec![]),
        ("new file", 0, |c| c.wrote(0..3000, NOW), vec![piece(0..3000, 3000)]),
        ("append", 100, |c| c.wrote(100..130, NOW), vec![piece(100..130, 130)]),
        ("in the middle", 100, |c| c.wrote(10..20, NOW), vec![piece(10..20, 100)]),
        ("cut", 100, |c| c.set_length(50, NOW), vec![piece(50..50, 50)]),
        ("cut to nothing", 100, |c| c.set_length(0, NOW), vec![piece(0..0, 0)]),
        ("set to the length it had", 100, |c| c.set_length(100, NOW), vec![piece(100..100, 100)]),
        ("grown", 100, |c| c.set_length(500, NOW), vec![piece(500..500, 500)]),
        ("beyond the end", 100, |c| c.wrote(400..500, NOW), vec![piece(400..500, 500)]),
        (
            "cut and written anew",
            100,
            |c| {
                c.set_length(0, NOW);
                c.wrote(0..30, NOW);
            },
            vec![piece(0..30, 0)],
        ),
        (
            "cut, then written behind a hole",
            100,
            |c| {
                c.set_length(10, NOW);
                c.wrote(50..60, NOW);
            },
            vec![piece(50..60, 10)],
        ),
        (
            "written, then grown",
            0,
            |c| {
                c.wrote(0..10, NOW);
                c.set_length(90, NOW);
            },
            vec![piece(0..10, 90), piece(90..90, 90)],
        ),
        (
            "near ranges travel together",
            1000,
            |c| {
                c.wrote(0..10, NOW);
                c.wrote(500..510, NOW);
            },
            vec![piece(0..510, 1000)],
        ),
    ];
    for (what, length, change, pieces) in table {
        let mut content = complete(length);
        change(&mut content);
        assert_eq!(content.is_dirty(), !pieces.is_empty(), "{what}");
        assert_eq!(content.begin_store(StoreScope::Dirty), pieces, "{what}");
    }
}

#[test]
fn distant_dirty_ranges_are_separate_pieces_when_the_gap_is_not_cached() {
    let mut content = Content::new(DataVersion(5), 1000);
    content.wrote(0..10, NOW);
    content.wrote(500..510, NOW);
    assert_eq!(content.begin_store(StoreScope::Dirty), [piece(0..10, 1000), piece(500..510, 1000)]);
}

/// Random histories of writes and truncations, compared with a plain byte vector and a server that follows the
/// protocol.
#[test]
fn any_history_of_changes_reaches_the_server() {
    let mut seed = 1u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..3000 {
        let base = random(60);
        let mut server: Vec<u8> = (0..base).map(|n| n as u8 + 1).collect();
        let mut ours = server.clone();
        let mut content = complete(base);
        for step in 0..random(7) {
            match random(6) {
                4 => {
                    let start = random(80);
                    let range = start..start + random(40);
                    let end = ours.len();
                    ours[end.min(start as usize)..end.min(range.end as usize)].fill(0);
                    content.zeroed(range, NOW);
                }
                5 => {
                    // The kernel writes by passthrough; all of the file except some of its holes counts as data.
                    let (at, hole) = (random(90), random(60));
                    if ours.len() <= at as usize {
                        ours.resize(at as usize + 1, 0);
                    }
                    ours[at as usize] = 200 + step as u8;
                    let mut data = Ranges::whole(ours.len() as u64);
                    let zeros = (hole..ours.len() as u64).take_while(|n| ours[*n as usize] == 0).count();
                    data.remove(hole..hole + zeros as u64);
                    content.wrote_data(ours.len() as u64, &data, NOW);
                }
                0 => {
                    let length = random(80);
                    ours.resize(length as usize, 0);
                    content.set_length(length, NOW);
                }
                1 => {
                    let scope = [StoreScope::Dirty, StoreScope::Dirty, StoreScope::Data, StoreScope::Bytes]
                        [random(4) as usize];
                    store(&mut content, &mut server, &ours, scope, random(3));
                }
                _ => {
                    let start = random(70);
                    let range = start..start + random(20);
                    if !range.is_empty() && ours.len() < range.end as usize {
                        ours.resize(range.end as usize, 0);
                    }
                    range.clone().for_each(|n| ours[n as usize] = 100 + step as u8);
                    content.wrote(range, NOW);
                }
            }
            assert_eq!(content.length, ours.len() as u64, "round {round}");
            check_holes(&content, &ours);
        }
        store(&mut content, &mut server, &ours, StoreScope::Dirty, 99);
        assert_eq!(server, ours, "round {round}");
        assert!(!content.is_dirty(), "round {round}: {content:?}");
    }
}

/// Holes are zeros, and searches for data and holes are correct.
fn check_holes(content: &Content, ours: &[u8]) {
    let is_hole = |n: &u64| content.holes.contains(&(*n..*n + 1));
    let end = content.length;
    assert!((0..end).filter(is_hole).all(|n| ours[n as usize] == 0) && content.holes.end() <= end);
    for from in 0..end + 2 {
        let hole = (from..end).find(is_hole).or((from < end).then_some(end));
        assert_eq!(content.seek(from, Seek::Hole), hole, "{from} of {content:?}");
        assert_eq!(
            content.seek(from, Seek::Data),
            (from..end).find(|n| !is_hole(n)),
            "{from} of {content:?}"
        );
    }
}

/// A store of which the call after `good` calls fails.
fn store(content: &mut Content, server: &mut Vec<u8>, ours: &[u8], scope: StoreScope, good: u64) {
    let cut = content.cut;
    for (n, piece) in content.begin_store(scope).iter().enumerate() {
        if n as u64 == good {
            return content.store_failed(cut, n > 0);
        }
        server_stores(server, piece, ours);
        content.stored(piece, content.version.next(), server.len() as u64);
    }
    content.store_done();
}

#[test]
fn holes_are_sent_only_where_the_server_has_data() {
    let mut content = Content::new(DataVersion(5), 0);
    let tib = 1 << 40;
    content.wrote(0..10, NOW);
    content.wrote(tib..tib + 10, NOW);
    content.set_length(2 * tib, NOW);
    let pieces = |content: &Content, scope| content.clone().begin_store(scope);
    let ranges = |pieces: Vec<Piece>| pieces.into_iter().map(|piece| piece.range).collect::<Vec<_>>();
    let all = [0..10, tib..tib + 10, 2 * tib..2 * tib];
    assert_eq!(
        (content.store_scope(false, true), content.store_scope(false, false)),
        (StoreScope::Dirty, StoreScope::Dirty)
    );
    assert_eq!(
        (content.store_scope(true, true), content.store_scope(true, false)),
        (StoreScope::Data, StoreScope::Data)
    );
    assert_eq!(ranges(pieces(&content, StoreScope::Dirty)), all);
    content.was_stored(DataVersion(6));
    assert_eq!(ranges(pieces(&content, StoreScope::Data)), all);
    assert_eq!(pieces(&content, StoreScope::Data)[0].file_length, 0);
    // A new hole is sent as zeros where the server has data, unless sending the rest is shorter.
    content.zeroed(0..5, NOW);
    assert_eq!(pieces(&content, StoreScope::Dirty), [piece(0..5, 2 * tib)]);
    assert_eq!(content.store_scope(false, true), StoreScope::Dirty);
    content.zeroed(0..tib + 9, NOW);
    assert_eq!(content.store_scope(false, true), StoreScope::Data);
    assert_eq!(ranges(pieces(&content, StoreScope::Data)), [tib + 9..tib + 10, 2 * tib..2 * tib]);
}

#[test]
fn a_store_that_replaces_another_version_starts_from_length_zero() {
    let mut content = Content::new(DataVersion(5), 0);
    content.wrote(20..30, NOW);
    assert_eq!(content.begin_store(StoreScope::Data), [piece(20..30, 0)]);
}

#[test]
fn small_holes_are_sent_to_a_server_without_ranges() {
    let mut content = complete(1 << 20);
    content.set_length(10 << 20, NOW);
    content.wrote(9 << 20..10 << 20, NOW);
    content.wrote(0..10, NOW);
    assert_eq!(content.store_scope(false, false), StoreScope::Bytes);
    assert_eq!(content.begin_store(StoreScope::Bytes), [piece(0..10 << 20, 0)]);
}

#[test]
fn eviction_keeps_wanted_and_dirty_bytes() {
    let mut content = complete(1000);
    content.wrote(100..200, NOW);
    assert_eq!(content.evict(150, &(0..50)), [50..100, 200..300]);
    assert!(content.present.contains(&(0..50)) && content.present.contains(&(100..200)));
    assert!(!content.is_complete());
}

#[test]
fn pinned_bytes_are_not_evicted() {
    let mut content = complete(1000);
    content.pinned.push(0..600);
    assert_eq!(content.evict(900, &(900..1000)).pop(), Some(600..900));
}

#[test]
fn another_version_under_unsaved_data_keeps_the_unsaved_data_only() {
    let mut content = complete(1000);
    content.wrote(100..200, NOW);
    content.rebase(DataVersion(9), 400);
    assert_eq!((content.present.iter().next(), content.present.count()), (Some(100..200), 1));
    assert_eq!((content.length, content.base_length, content.version), (400, 400, DataVersion(9)));
}

/// The other client has cut the file meanwhile.
#[test]
fn a_store_into_another_version_takes_over_its_length() {
    for present in [Ranges::whole(100), Ranges::whole(10)] {
        let mut content = Content { present, ..complete(100) };
        content.wrote(0..5, NOW);
        let pieces = content.begin_store(StoreScope::Dirty);
        content.stored_into_another(&pieces[0], DataVersion(9), 50);
        content.store_done();
        assert_eq!((content.length, content.base_length, content.version), (50, 50, DataVersion(9)));
        assert!(!content.is_dirty() && content.present.is_empty(), "{content:?}");
    }
    // What a program has added here is still to be stored.
    let mut content = complete(100);
    content.wrote(0..5, NOW);
    content.wrote(150..160, NOW);
    let pieces = content.begin_store(StoreScope::Dirty);
    content.stored_into_another(&pieces[0], DataVersion(9), 50);
    assert_eq!((content.length, content.base_length), (160, 50));
    assert!(content.present.contains(&(100..160)) && !content.present.contains(&(50..100)));
}

/// As by a server that claims a length and then another one.
#[test]
fn bytes_that_were_never_fetched_do_not_become_cached_by_a_shorter_version() {
    let mut content = Content::new(DataVersion(5), 1 << 31);
    content.wrote(0..5, NOW);
    let pieces = content.begin_store(StoreScope::Dirty);
    content.stored(&pieces[0], DataVersion(6), 1);
    content.store_done();
    content.rebase(DataVersion(9), 1);
    assert!(!content.is_complete() && content.present.end() <= 5, "{content:?}");
}
