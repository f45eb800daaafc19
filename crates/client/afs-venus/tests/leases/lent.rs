//! More objects than a lease lends at first: what is lent later, or with the next lease.

use std::sync::Arc;

use afs_wire::error::Errno;
use afs_wire::fs::LendMore;
use afs_wire::rpc::{Opcode, Request};

use super::*;

#[test]
fn a_lease_with_which_nothing_more_is_lent_is_followed_by_the_next_without_single_calls() {
    let calls: afs_testkit::FileCalls =
        Arc::new(|table| table.refuse(Opcode(LendMore::OPCODE), Errno::EAGAIN.to_uae()));
    let cell = Cell::with_calls(12, true, calls);
    cell.set_limits(|limits| limits.leases = true);
    // In the directory, then in the one that was made under its lease, then in the first again.
    makes_five_hundred_files(&cell, &["ChangeList 10", "LendMore 2", "ReturnLease 2", "TakeLease 3"]);
}

#[test]
fn more_is_lent_with_a_lease_that_is_used_up() {
    makes_five_hundred_files(&cell(12), &["ChangeList 8", "LendMore 2"]);
}

fn makes_five_hundred_files(cell: &Cell, want: &'static [&'static str]) {
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease_with_model(&client).await;
        let before = client.venus.counters();
        put_all(&client, "dir", 0..300).await;
        client.mkdir("dir/sub").await.unwrap();
        put_all(&client, "dir/sub", 0..200).await;
        client.mkdir("dir/other").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.calls_since(&before), want);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        assert_eq!(contents(&other, "dir/sub").await.len(), 200);
        assert_eq!(other.names("dir").await.unwrap().len(), 2 + 4 + 300 + 3);
    });
}

#[test]
fn what_is_lent_later_is_split_as_it_was_used() {
    let cell = cell(15);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease_with_model(&client).await;
        let before = client.venus.counters();
        // As many objects as `git add` makes of 500 files.
        for n in 0..500 {
            let dir = format!("dir/{:02x}", n * 37 % 256);
            if n < 256 {
                client.mkdir(&dir).await.unwrap();
            }
            put_by_link(&client, &dir, &format!("object{n}"), b"object").await.unwrap();
        }
        client.env.sleep(Duration::from_secs(2)).await;
        let calls = client.calls_since(&before);
        assert_eq!(calls, ["ChangeList 28", "LendMore 4"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for n in (0..500).step_by(23) {
            let path = format!("dir/{:02x}/object{n}", n * 37 % 256);
            assert_eq!(other.get(&path).await.unwrap(), b"object");
        }
        assert_eq!(other.names("dir").await.unwrap().len(), 2 + 4 + 1 + 256);
    });
}
