//! Longest time that outdated state is used, measured on the simulated clock.

// A cell that cannot be made is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

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
