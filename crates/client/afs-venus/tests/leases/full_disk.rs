//! Disk of the cache on which there is no room for what programs write: they get the error, and what was acknowledged is there.

use std::sync::Arc;

use afs_sim::SimRng;

use super::common::small_disk::{Room, SmallDisk};
use super::*;

const ENOSPC: i32 = 28;

/// A machine of a cell with leases, and the room on its disk.
fn machine(cell: &Cell) -> (Client, Room) {
    let room = Room::default();
    (cell.client_with(1, Arc::new(SmallDisk::new(&room))), room)
}

#[test]
fn a_full_disk_is_an_error_of_the_write_and_nothing_acknowledged_is_lost() {
    for seed in 0..10 {
        let cell = cell(300 + seed);
        let (a, room) = machine(&cell);
        let client = a.clone();
        let mut rng = SimRng::new(seed);
        let (acknowledged, refused) = cell.on(&a, async move {
            lease(&client, "dir").await;
            let (mut acknowledged, mut refused) = (BTreeMap::new(), 0);
            for n in 0..60 {
                if rng.below(8) == 0 {
                    room.set(rng.below(20_000));
                }
                let (name, data) = (format!("dir/file{n}"), vec![n; rng.between(1, 9000) as usize]);
                match client.put(&name, &data).await {
                    Ok(()) => drop(acknowledged.insert(format!("file{n}"), data)),
                    Err(error) => {
                        assert_eq!(error.errno(), ENOSPC, "seed {seed}: {error}");
                        refused += 1;
                    }
                }
                client.env.sleep(Duration::from_millis(rng.below(100))).await;
            }
            // No room for anything: what was acknowledged is sent all the same.
            room.set(0);
            let dir = client.find("dir").await.unwrap().node;
            client.venus.fsync_directory(dir).await.unwrap();
            assert_eq!(client.venus.counters().leases_lost, 0);
            (acknowledged, refused)
        });
        assert!(refused > 5 && acknowledged.len() > 5, "seed {seed}: this test would notice nothing");
        cell.sim.crash(a.node);
        let b = cell.client(2);
        let other = b.clone();
        let all = cell.on(&b, async move { contents(&other, "dir").await });
        for (name, data) in &all {
            match acknowledged.get(name) {
                Some(acknowledged) => assert_eq!(data, acknowledged, "seed {seed}: {name}"),
                None => assert!(data.is_empty() || name.starts_with("first"), "seed {seed}: {name}"),
            }
        }
        let is_there = |name: &&String| all.contains_key(*name);
        assert_eq!(acknowledged.keys().filter(is_there).count(), acknowledged.len(), "seed {seed}");
    }
}

#[test]
fn a_lease_that_is_lost_is_made_good_with_a_full_disk() {
    let cell = cell(320);
    let (a, room) = machine(&cell);
    let client = a.clone();
    let full = room.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        for n in 0..30u8 {
            client.put(&format!("dir/file{n}"), &[n; 500]).await.unwrap();
        }
        full.set(0);
    });
    cell.restart_server();
    cell.sim.run_for(Duration::from_secs(90));
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 1) });
    let b = cell.client(2);
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        for n in 0..30u8 {
            assert_eq!(all[&format!("file{n}")], [n; 500], "{n}");
        }
    });
}
