//! Cold opens: what is fetched, and how long it takes, before the first bytes of a file are read.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use afs_venus::{Limits, OpenFlags, SetAttr};
use common::{Cell, Client, pattern};

/// Two files that begin with the same mebibyte; one of them has a gibibyte.
const BEGIN: usize = 1 << 20;
const LARGE: u64 = 1 << 30;
/// What a program reads first.
const FIRST: usize = 4096;

/// What was done for the first bytes of a file.
#[derive(Debug)]
struct FirstBytes {
    took: Duration,
    calls: usize,
    fetched_bytes: u64,
}

async fn first_bytes(client: Client, path: &str) -> FirstBytes {
    let (before, begun) = (client.venus.counters(), client.env.now());
    let handle = client.open(path, OpenFlags::READ).await.unwrap();
    let data = client.venus.read(handle, 0, FIRST).await.unwrap();
    let took = client.env.now().saturating_since(begun);
    let after = client.venus.counters();
    assert_eq!(data, pattern(BEGIN, 1)[..FIRST]);
    FirstBytes {
        took,
        calls: (after.calls_total() - before.calls_total()) as usize,
        fetched_bytes: after.bytes_fetched - before.bytes_fetched,
    }
}

#[test]
fn the_first_bytes_of_a_gibibyte_come_as_soon_as_those_of_a_mebibyte() {
    for seed in 0..4 {
        let cell = Cell::new(seed);
        let a = cell.client(1);
        let one = a.clone();
        cell.on(&a, async move {
            one.put("small", &pattern(BEGIN, 1)).await.unwrap();
            one.put("large", &pattern(BEGIN, 1)).await.unwrap();
            let node = one.find("large").await.unwrap().node;
            let longer = SetAttr { size: Some(LARGE), ..SetAttr::default() };
            one.venus.setattr(node, None, longer).await.unwrap();
        });
        let read = |number: u8, path: &'static str| {
            let client = cell.client(number);
            let one = client.clone();
            cell.on(&client, async move {
                assert!(one.names("").await.unwrap().len() >= 2);
                first_bytes(one.clone(), path).await
            })
        };
        let (small, large) = (read(2, "small"), read(3, "large"));
        // What is fetched ahead has begun, and the reader does not wait for it.
        let Limits { read_ahead_chunks: ahead, chunk_bytes, .. } = Limits::default();
        assert!(large.calls <= small.calls + ahead as usize, "{small:?} {large:?}");
        assert!(
            large.fetched_bytes <= small.fetched_bytes + u64::from(ahead) * chunk_bytes,
            "{small:?} {large:?}"
        );
        assert!(large.took <= small.took * 3 / 2 + Duration::from_millis(2), "{small:?} {large:?}");
    }
}
