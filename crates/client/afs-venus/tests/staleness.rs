//! Longest time that outdated state is used, measured on the simulated clock.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use afs_venus::TokenOwner;
use common::{Cell, Client};

/// The bound of docs/semantics.md, plus a probe in transit.
const BOUND: Duration = Duration::from_secs(75);

fn cut(cell: &Cell, client: &Client) {
    cell.sim.world().cut(client.node, cell.server);
    cell.sim.world().cut(cell.server, client.node);
}

fn mend(cell: &Cell, client: &Client) {
    cell.sim.world().mend(client.node, cell.server);
    cell.sim.world().mend(cell.server, client.node);
}

fn read(cell: &Cell, client: &Client, path: &'static str) -> afs_venus::Result<Vec<u8>> {
    let reader = client.clone();
    cell.on(client, async move { reader.get(path).await })
}

fn write(cell: &Cell, client: &Client, data: &'static [u8]) {
    let writer = client.clone();
    cell.on(client, async move { writer.put("file", data).await.unwrap() });
}

#[test]
fn old_data_is_read_for_at_most_75_seconds_after_a_restart_of_the_server() {
    let mut seen_old = 0;
    for seed in 0..6 {
        let cell = Cell::new(60 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        write(&cell, &b, b"old");
        assert_eq!(read(&cell, &a, "file").unwrap(), b"old");
        // The client's probe comes at any moment of its interval.
        cell.sim.run_for(Duration::from_secs(11 * seed));
        read(&cell, &a, "file").unwrap();
        cell.restart_server();
        let restarted = cell.sim.now();
        write(&cell, &b, b"new");
        let mut data = read(&cell, &a, "file").unwrap();
        seen_old += usize::from(data == b"old");
        while data == b"old" {
            assert!(cell.sim.now() - restarted <= BOUND, "seed {seed}: still old");
            cell.sim.run_for(Duration::from_secs(1));
            data = read(&cell, &a, "file").unwrap();
        }
        assert_eq!(data, b"new");
    }
    assert!(seen_old > 0, "no run has shown what is bounded here");
}

#[test]
fn a_change_that_a_client_could_not_be_told_of_is_seen_75_seconds_after_it_can_be_reached() {
    for seed in 0..4 {
        let cell = Cell::new(70 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        write(&cell, &b, b"old");
        assert_eq!(read(&cell, &a, "file").unwrap(), b"old");
        cut(&cell, &a);
        write(&cell, &b, b"new");
        assert_eq!(read(&cell, &a, "file").unwrap(), b"old", "it cannot know better");
        cell.sim.run_for(Duration::from_secs(17 * seed));
        mend(&cell, &a);
        cell.sim.run_for(BOUND);
        assert_eq!(read(&cell, &a, "file").unwrap(), b"new");
    }
}

/// Address of a translator, outside of the network of the cell.
fn public(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

/// A client behind a translator that has read a file, and another client.
fn translated(seed: u64, lifetime: Duration) -> (Cell, Client, Client) {
    let cell = Cell::new(seed);
    let (a, b) = (cell.client(1), cell.client(2));
    cell.sim.translate(a.node, public(1), lifetime);
    write(&cell, &b, b"old");
    assert_eq!(read(&cell, &a, "file").unwrap(), b"old");
    // The client has missed a break at its first address, and gets no promise for a quarter of a minute.
    cell.sim.run_for(Duration::from_secs(20));
    assert_eq!(read(&cell, &a, "file").unwrap(), b"old");
    let told = a.venus.explain(TokenOwner::Uid(0), b"file");
    assert_eq!(told.promise.map(|promise| promise.state).as_deref(), Some("held"));
    (cell, a, b)
}

/// Changes the file as `b`, and reads it as `a` until the change is seen, which the bound limits. Whether `a` has read the old
/// contents meanwhile. Afterwards the clients see each other's changes at once.
fn change_is_seen(cell: &Cell, a: &Client, b: &Client) -> bool {
    write(cell, b, b"new");
    let changed = cell.sim.now();
    let mut seen_old = false;
    while read(cell, a, "file").unwrap() == b"old" {
        seen_old = true;
        assert!(cell.sim.now() - changed <= BOUND, "still old");
        cell.sim.run_for(Duration::from_secs(1));
    }
    for (writer, reader, data) in [(b, a, &b"newer"[..]), (a, b, b"from inside"), (b, a, b"last")] {
        write(cell, writer, data);
        assert_eq!(read(cell, reader, "file").unwrap(), data);
    }
    seen_old
}

#[test]
fn a_change_is_seen_in_75_seconds_although_a_translator_has_forgotten_the_client() {
    let mut seen_old = 0;
    for seed in 0..5 {
        let (cell, a, b) = translated(80 + seed, Duration::from_secs(30));
        // The mapping ends after 30 s, and the client's probe makes another one at any moment after it.
        cell.sim.run_for(Duration::from_secs(20 + 11 * seed));
        seen_old += usize::from(change_is_seen(&cell, &a, &b));
    }
    assert!(seen_old > 1, "no break was lost at the translator");
}

#[test]
fn a_change_is_seen_in_75_seconds_by_a_client_that_has_a_new_address() {
    let mut seen_old = 0;
    for seed in 0..4 {
        let (cell, a, b) = translated(90 + seed, Duration::from_secs(3600));
        cell.sim.run_for(Duration::from_secs(13 * seed));
        cell.sim.translate(a.node, public(2), Duration::from_secs(3600));
        seen_old += usize::from(change_is_seen(&cell, &a, &b));
    }
    assert!(seen_old > 1, "no break was lost at the old address");
}
