//! Calls that programs with many files and directories cost under leases.

use std::time::Duration;

use super::*;

/// Number of calls in what `calls_since` tells.
pub(super) fn number_of(calls: &[String]) -> u32 {
    calls.iter().map(|call| call.rsplit(' ').next().unwrap().parse::<u32>().unwrap()).sum()
}

/// More objects than one lease lends at a time: those that were made first are given back. As `git add` in a tree that was just unpacked:
/// files at first, and then many directories.
#[test]
fn many_objects_in_a_fan_of_directories_are_made_under_one_lease() {
    let cell = cell(41);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.mkdir("dir/model").await.unwrap();
        let before = client.venus.counters();
        put_all(&client, "dir", 0..600).await;
        for n in 0..1000 {
            let dir = format!("dir/{:02x}", n * 37 % 200);
            if n < 200 {
                client.mkdir(&dir).await.unwrap();
            }
            put_by_link(&client, &dir, &format!("object{n}"), b"object").await.unwrap();
        }
        // What was given back is changed, and read, as any other object.
        set(&client, "dir/00/object0", 0o640, 1000).await;
        assert_eq!(mode_and_time(&client, "dir/00/object0").await, (0o640, 1000));
        client.put("dir/25/object1", b"other").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        let calls = client.calls_since(&before);
        assert_eq!(calls.len(), 4, "ChangeList, LendMore, StoreData64, StoreStatus: {calls:?}");
        assert!(number_of(&calls) < 80, "{calls:?}");
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for n in (2..1000).step_by(97) {
            let path = format!("dir/{:02x}/object{n}", n * 37 % 200);
            assert_eq!(other.get(&path).await.unwrap(), b"object");
        }
        assert_eq!(other.get("dir/25/object1").await.unwrap(), b"other");
        assert_eq!(mode_and_time(&other, "dir/00/object0").await, (0o640, 1000));
    });
    let client = a.clone();
    cell.on(&a, async move {
        let told = client.venus.activity().leases;
        assert_eq!((told.held, told.recalled, told.lost), (0, 1, 0));
    });
}

/// As a second `git add` in a repository: a change in one directory, then in another one, in all of them by turns.
#[test]
fn directories_that_are_changed_by_turns_are_leased_all_together() {
    let cell = cell(42);
    let (a, b) = (cell.client(1), cell.client(2));
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..100 {
            other.mkdir(&format!("dir{n}")).await.unwrap();
        }
        other.env.sleep(Duration::from_secs(2)).await;
    });
    let client = a.clone();
    cell.on(&a, async move {
        client.names("").await.unwrap();
        for n in 0..100 {
            client.names(&format!("dir{n}")).await.unwrap();
        }
        let before = client.venus.counters();
        for n in 0..1200 {
            put_by_link(&client, &format!("dir{}", n % 100), &format!("object{n}"), b"object").await.unwrap();
        }
        client.env.sleep(Duration::from_secs(2)).await;
        let after = client.venus.counters();
        assert_eq!((after.leases_taken - before.leases_taken, after.leases_lost), (100, 0));
        let calls = client.calls_since(&before);
        assert!(!calls.iter().any(|call| call.starts_with("ReturnLease")), "{calls:?}");
        assert!(number_of(&calls) < 900, "{calls:?}");
    });
    let other = b.clone();
    cell.on(&b, async move {
        for n in (0..1200).step_by(97) {
            assert_eq!(other.get(&format!("dir{}/object{n}", n % 100)).await.unwrap(), b"object");
        }
    });
}

#[test]
fn more_directories_than_leases_are_leased_one_after_the_other() {
    let cell = cell(13);
    let (a, b) = (cell.client(1), cell.client(2));
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..520 {
            other.mkdir(&format!("dir{n}")).await.unwrap();
        }
        other.env.sleep(Duration::from_secs(2)).await;
    });
    let client = a.clone();
    cell.on(&a, async move {
        let before = client.venus.counters();
        for n in 0..520 {
            put_all(&client, &format!("dir{n}"), 0..4).await;
        }
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.venus.counters().leases_taken - before.leases_taken, 520);
        assert_eq!((client.calls("ReturnLease"), client.venus.counters().leases_lost), (8, 0));
    });
}
