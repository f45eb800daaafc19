//! Reading while the disk of the cache is full.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;

use std::sync::Arc;

use afs_venus::OpenFlags;
use common::small_disk::{Room, SmallDisk};
use common::{Cell, pattern};

#[test]
fn files_are_read_past_a_cache_whose_disk_is_full() {
    let (cell, room) = (Cell::new(640), Room::default());
    let (a, b) = (cell.client_with(1, Arc::new(SmallDisk::new(&room))), cell.client(2));
    let contents = [pattern(10_000, 1), pattern(3 << 20, 2)];
    let (two, stored) = (b.clone(), contents.clone());
    cell.on(&b, async move {
        two.put("small", &stored[0]).await.unwrap();
        two.put("large", &stored[1]).await.unwrap();
    });
    let client = a.clone();
    cell.on(&a, async move {
        room.set(0);
        for (name, content) in ["small", "large"].iter().zip(&contents) {
            assert!(client.get(name).await.unwrap() == *content, "{name}");
        }
        assert_eq!(client.venus.counters().files_bypassed, 2);
        // Whoever changes a file needs the cache.
        let handle = client.open("small", OpenFlags::READ_WRITE).await;
        assert_eq!(handle.unwrap_err().errno(), 28);
        room.set(u64::MAX);
        for (name, content) in ["small", "large"].iter().zip(&contents) {
            assert!(client.get(name).await.unwrap() == *content, "{name}");
        }
        assert_eq!(client.venus.counters().files_bypassed, 2, "there is room again");
    });
}
