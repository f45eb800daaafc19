//! What a lost lease has left is made by single calls: others see no name without its data meanwhile.

use super::*;

/// Saves files under a lease as editors do: the name of the new contents is sent before them, or with them.
async fn save(client: &Client, dir: &str, name: &str, data: &[u8], is_slow: bool) {
    let at = client.find(dir).await.unwrap().node;
    let new = client.open_new(&format!("{dir}/.{name}")).await.unwrap();
    if is_slow {
        client.env.sleep(Duration::from_secs(2)).await;
    }
    client.write_all(new, data).await.unwrap();
    client.venus.flush(new, 1).await.unwrap();
    client.venus.release(new).await.unwrap();
    client.venus.rename(at, format!(".{name}").as_bytes(), at, name.as_bytes()).await.unwrap();
}

#[test]
fn a_lost_lease_is_made_good_with_no_name_without_its_data() {
    let cell = cell(500);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.put("dir/slow", b"old").await.unwrap();
        client.put("dir/quick0", b"old").await.unwrap();
        save(&client, "dir", "slow", b"new", true).await;
        for n in 0..20 {
            save(&client, "dir", &format!("quick{n}"), b"new", false).await;
        }
    });
    cell.restart_server();
    let other = b.clone();
    let seen = cell.on(&b, async move {
        let mut seen = BTreeMap::<&str, Vec<Vec<u8>>>::new();
        while !seen.get("quick19").is_some_and(|all| all.contains(&b"new".to_vec())) {
            for name in ["slow", "quick0", "quick19"] {
                if let Ok(data) = other.get(&format!("dir/{name}")).await {
                    let all = seen.entry(name).or_default();
                    if all.last() != Some(&data) {
                        all.push(data);
                    }
                }
            }
            other.env.sleep(Duration::from_millis(1)).await;
        }
        seen
    });
    let [old, new] = [b"old", b"new"].map(|data| data.to_vec());
    for (name, all) in seen {
        let expected = if name == "quick19" { vec![new.clone()] } else { vec![old.clone(), new.clone()] };
        assert_eq!(all, expected, "{name}");
    }
    assert_eq!(a.venus.counters().leases_lost, 1);
}

/// A machine whose last list has a store and a rename of a file that was sent without its data is cut off, and loses its lease while
/// another machine without leases changes the directory. Returns both machines. What is stored is a change of the list, or longer than
/// a list takes.
fn stores_beside_changes_by_others(seed: u64, is_filled: bool, length: usize) -> (Cell, [Client; 2]) {
    let cell = cell(seed);
    let a = cell.client(1);
    cell.set_limits(|limits| limits.leases = false);
    let b = cell.client(2);
    let (client, other, world, server) = (a.clone(), b.clone(), cell.sim.world(), cell.server);
    cell.on(&a, async move {
        let volume = if length > 16 << 10 { common::MEDIUM } else { common::SMALL };
        client.mount("small", &format!("%{volume}.")).await.unwrap();
        for name in ["one", "two", "saved"] {
            client.put(&format!("small/{name}"), b"old").await.unwrap();
        }
        let new = client.open_new("small/new").await.unwrap();
        client.env.sleep(Duration::from_secs(2)).await;
        world.cut(server, client.node);
        world.cut(client.node, server);
        client.write_all(new, &vec![7; length]).await.unwrap();
        client.venus.flush(new, 1).await.unwrap();
        client.venus.release(new).await.unwrap();
        let at = client.find("small").await.unwrap().node;
        client.venus.rename(at, b"new", at, b"saved").await.unwrap();
        other.put("small/other", b"data").await.unwrap();
        if is_filled {
            // One store may overrun the quota by as much as this: the longest one that is taken.
            let mut lengths = (1000..1500).rev();
            while other.put("small/other", &vec![1; lengths.next().unwrap() << 10]).await.is_err() {}
        }
        world.mend(server, client.node);
        world.mend(client.node, server);
        client.env.sleep(Duration::from_secs(100)).await;
        assert_eq!(client.venus.counters().leases_lost, 1);
    });
    (cell, [a, b])
}

#[test]
fn changes_by_others_are_not_taken_for_a_list_that_was_lost() {
    for length in [1500, 40_000] {
        let (cell, [_, b]) = stores_beside_changes_by_others(501, false, length);
        let other = b.clone();
        cell.on(&b, async move { assert!(other.get("small/saved").await.unwrap() == vec![7; length]) });
    }
}

/// The others have used the quota up that was reserved for the lost lease.
#[test]
fn data_that_is_refused_after_the_loss_replaces_no_other_data() {
    for length in [1500, 40_000] {
        let (cell, [a, b]) = stores_beside_changes_by_others(502, true, length);
        // It is kept, and stored when there is room.
        let (client, other) = (a.clone(), b.clone());
        cell.on(&b, async move {
            assert_eq!(other.get("small/saved").await.unwrap(), b"old");
            assert_eq!(other.get("small/new").await.unwrap(), b"");
            assert!(client.get("small/new").await.unwrap() == vec![7; length]);
            let at = other.find("small").await.unwrap().node;
            other.venus.unlink(at, b"other").await.unwrap();
            other.env.sleep(Duration::from_secs(900)).await;
            assert!(other.get("small/new").await.unwrap() == vec![7; length]);
            assert_eq!(other.get("small/saved").await.unwrap(), b"old");
        });
    }
}
