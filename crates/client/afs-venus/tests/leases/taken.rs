//! When a lease is taken, and what programs that make and remove many files cost with it and without.

use super::*;

#[test]
fn a_hundred_small_files_cost_few_calls_and_the_others_see_each_of_them() {
    let cell = cell(1);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    let (calls, before) = cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.names("").await.unwrap();
        let before = client.venus.counters();
        for n in 0..100 {
            client.put(&format!("dir/file{n}"), format!("data {n}").as_bytes()).await.unwrap();
        }
        (client.calls_since(&before), before)
    });
    assert_eq!(calls, ["TakeLease 1"]);
    let told = a.venus.activity().leases;
    assert_eq!((told.held, told.taken, told.recalled, told.lost), (1, 1, 0, 0));
    assert_eq!((told.waiting_changes, told.decided_changes), (100, 100));
    // The other machine opens each of them: the recall comes before its first reply.
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..100 {
            assert_eq!(other.get(&format!("dir/file{n}")).await.unwrap(), format!("data {n}").as_bytes());
        }
    });
    let client = a.clone();
    cell.on(&a, async move {
        let counters = client.venus.counters();
        assert_eq!((counters.leases_recalled, counters.leases_lost), (1, 0));
        let told = client.venus.activity().leases;
        assert_eq!((told.held, told.waiting_changes, told.recalled), (0, 0, 1));
        assert_eq!(client.calls_since(&before), ["ChangeList 2", "TakeLease 1"]);
        // What was made is promised: nothing is asked again.
        for n in 0..100 {
            assert_eq!(client.get(&format!("dir/file{n}")).await.unwrap(), format!("data {n}").as_bytes());
        }
        assert_eq!(client.calls_since(&before), ["ChangeList 2", "TakeLease 1"]);
    });
}

/// A tree of 13 directories, and 72 files in the lowest eight.
async fn make_tree(client: &Client, root: &str) {
    client.mkdir(root).await.unwrap();
    for n in 0..4 {
        client.mkdir(&format!("{root}/dir{n}")).await.unwrap();
        for m in 0..2 {
            client.mkdir(&format!("{root}/dir{n}/sub{m}")).await.unwrap();
        }
    }
    for n in 0..72 {
        client
            .put(&format!("{root}/dir{}/sub{}/file{n}", n % 4, n / 4 % 2), &pattern(4000, n as u64))
            .await
            .unwrap();
    }
}

#[test]
fn a_new_tree_is_made_under_the_lease_of_its_top() {
    let cell = cell(16);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        client.names("").await.unwrap();
        let before = client.venus.counters();
        make_tree(&client, "top").await;
        client.env.sleep(Duration::from_secs(2)).await;
        assert_eq!(client.calls_since(&before), ["ChangeList 6", "TakeLease 1"]);
        assert_eq!(client.venus.counters().leases_lost, 0);
    });
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..72 {
            let path = format!("top/dir{}/sub{}/file{n}", n % 4, n / 4 % 2);
            assert_eq!(other.get(&path).await.unwrap(), pattern(4000, n as u64));
        }
    });
}

#[test]
fn the_removal_of_small_directories_takes_no_lease() {
    let cell = cell(17);
    let (a, b) = (cell.client(1), cell.client(2));
    let other = b.clone();
    cell.on(&b, async move {
        for n in 0..10 {
            other.mkdir(&format!("small{n}")).await.unwrap();
            put_all(&other, &format!("small{n}"), 0..5).await;
        }
        other.mkdir("large").await.unwrap();
        put_all(&other, "large", 0..40).await;
        other.env.sleep(Duration::from_secs(2)).await;
    });
    let client = a.clone();
    cell.on(&a, async move {
        let root = afs_venus::NodeId::ROOT;
        let before = client.venus.counters();
        for n in 0..10 {
            let dir = client.find(&format!("small{n}")).await.unwrap().node;
            for file in 0..5 {
                client.venus.unlink(dir, format!("file{file}").as_bytes()).await.unwrap();
            }
            client.venus.rmdir(root, format!("small{n}").as_bytes()).await.unwrap();
        }
        let after = client.venus.counters();
        assert_eq!(
            (after.leases_taken, after.changes_decided),
            (before.leases_taken, before.changes_decided)
        );
        let dir = client.find("large").await.unwrap().node;
        for file in 0..40 {
            client.venus.unlink(dir, format!("file{file}").as_bytes()).await.unwrap();
        }
        client.venus.rmdir(root, b"large").await.unwrap();
        let after = client.venus.counters();
        assert_eq!(
            (after.leases_taken, after.changes_decided),
            (before.leases_taken + 1, before.changes_decided + 37)
        );
    });
}

#[test]
fn a_volume_that_forbids_leases_gets_single_calls_and_close_is_durable_there() {
    let cell = cell(14);
    let a = cell.client(1);
    let volume = cell.partitions().volume(cell.volume("root.cell")).unwrap();
    let setting = async move {
        let set = volume.edit(|tx| {
            tx.edit_header().lending = afs_volume::Lending::Off;
            Ok(())
        });
        set.await.unwrap();
    };
    cell.on(&a, setting);
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.names("").await.unwrap();
        let before = client.venus.counters();
        put_all(&client, "dir", 0..100).await;
        assert_eq!(client.venus.counters().leases_taken, 0);
        let calls = client.calls_since(&before);
        assert!(calls.contains(&"ChangeList 100".to_owned()), "{calls:?}");
        assert!(calls.contains(&"StoreData64 100".to_owned()), "{calls:?}");
        let asked = calls.iter().find_map(|call| call.strip_prefix("TakeLease ")?.parse::<u32>().ok());
        assert!((1..=20).contains(&asked.unwrap_or(0)), "it asks again now and then: {calls:?}");
    });
}

#[test]
fn without_the_option_no_lease_is_asked_for() {
    let cell = Cell::new(2);
    let a = cell.client(1);
    let client = a.clone();
    cell.on(&a, async move {
        client.mkdir("dir").await.unwrap();
        client.names("").await.unwrap();
        let before = client.venus.counters();
        for n in 0..100 {
            client.put(&format!("dir/file{n}"), b"data").await.unwrap();
        }
        assert_eq!(client.calls_since(&before), ["ChangeList 100", "StoreData64 100"]);
    });
}
