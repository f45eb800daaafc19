//! Cold opens: what is fetched, and how long it takes, before the first bytes of a file are read.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::time::Duration;

use afs_venus::{OpenFlags, SetAttr};
use afs_volume::LITERAL_MAX;
use common::{Cell, Client, pattern};

/// Two files that begin with the same mebibyte; one of them has a gibibyte.
const BEGIN: usize = 1 << 20;
const LARGE: u64 = 1 << 30;
/// What a program reads first.
const FIRST: usize = 4096;
/// The same, of a server's chunk at a drive: less may be in its index, and in memory.
const FIRST_OF_CHUNK: usize = LITERAL_MAX + 4096;

/// What was done for the first bytes of a file.
#[derive(Debug)]
struct FirstBytes {
    took: Duration,
    calls: usize,
    fetched_bytes: u64,
}

async fn first_bytes(client: Client, path: &str, length: usize) -> FirstBytes {
    let (before, begun) = (client.venus.counters(), client.env.now());
    let handle = client.open(path, OpenFlags::READ).await.unwrap();
    let data = client.venus.read(handle, 0, length).await.unwrap();
    let took = client.env.now().saturating_since(begun);
    let after = client.venus.counters();
    assert_eq!(data, pattern(BEGIN, 1)[..length]);
    FirstBytes {
        took,
        calls: (after.calls_total() - before.calls_total()) as usize,
        fetched_bytes: after.bytes_fetched - before.bytes_fetched,
    }
}

/// A cell with a file that has these bytes alone, one of a mebibyte that begins with them, and one of a gibibyte.
fn cell_with_files(seed: u64, has_data_path: bool, first: usize) -> Cell {
    // What is compared are latencies that are drawn: of the same calls.
    let cell = if has_data_path { Cell::with_data_path(seed, true) } else { Cell::by_calls(seed) };
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        // As the server stores the first bytes of the one, so it stores those of the other.
        let begin = if first > LITERAL_MAX { BEGIN } else { first };
        one.put("tiny", &pattern(BEGIN, 1)[..first]).await.unwrap();
        one.put("small", &pattern(BEGIN, 1)).await.unwrap();
        one.put("large", &pattern(BEGIN, 1)[..begin]).await.unwrap();
        let node = one.find("large").await.unwrap().node;
        let longer = SetAttr { size: Some(LARGE), ..SetAttr::default() };
        one.venus.setattr(node, None, longer).await.unwrap();
    });
    cell
}

fn read_first(cell: &Cell, number: u8, path: &'static str, length: usize) -> FirstBytes {
    let client = cell.client(number);
    let one = client.clone();
    cell.on(&client, async move {
        assert!(one.names("").await.unwrap().len() >= 2);
        first_bytes(one.clone(), path, length).await
    })
}

#[test]
fn the_first_bytes_of_a_gibibyte_come_as_soon_as_those_of_a_file_that_has_no_more() {
    for (has_data_path, first) in
        [(false, FIRST), (true, FIRST), (false, FIRST_OF_CHUNK), (true, FIRST_OF_CHUNK), (true, 128 << 10)]
    {
        let (mut tiny, mut large) = (Duration::ZERO, Duration::ZERO);
        for seed in 0..10 {
            let read = |path| read_first(&cell_with_files(seed, has_data_path, first), 2, path, first);
            tiny += read("tiny").took;
            large += read("large").took;
        }
        println!("data path {has_data_path}, {first} bytes: {tiny:?} {large:?}");
        assert!(large <= tiny * 11 / 10, "data path {has_data_path}, {first} bytes: {tiny:?} {large:?}");
    }
}

#[test]
fn the_first_bytes_of_a_gibibyte_come_as_soon_as_those_of_a_mebibyte() {
    for seed in 0..4 {
        let cell = cell_with_files(seed, false, FIRST_OF_CHUNK);
        let (small, large) = (read_first(&cell, 2, "small", FIRST), read_first(&cell, 3, "large", FIRST));
        // Nothing is fetched ahead before they have come: it would take processors and links from them.
        assert!(large.calls <= small.calls, "{small:?} {large:?}");
        assert!(large.fetched_bytes <= small.fetched_bytes, "{small:?} {large:?}");
        assert!(large.took <= small.took * 3 / 2 + Duration::from_millis(2), "{small:?} {large:?}");
    }
}
