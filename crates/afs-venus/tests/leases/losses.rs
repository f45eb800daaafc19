//! Crashes, recalls and losses: what a program was told is there, or what it did up to some moment.

use super::*;

/// Makes files one after the other until the machine dies.
async fn work(client: &Client) -> Result<()> {
    let dir = client.find("dir").await?.node;
    for n in 0..200 {
        let (name, data) = (format!("file{n}"), format!("data {n}"));
        match n % 4 {
            // As git does.
            1 => put_by_link(client, "dir", &name, data.as_bytes()).await?,
            _ => {
                client.put("dir/tmp", data.as_bytes()).await?;
                client.venus.rename(dir, b"tmp", dir, name.as_bytes()).await?;
            }
        }
        if n % 3 == 2 {
            client.venus.unlink(dir, format!("file{}", n - 1).as_bytes()).await?;
        }
        client.env.sleep(Duration::from_millis(n % 40)).await;
    }
    Ok(())
}

/// What is there is a state through which the program of [`work`] went.
fn check_prefix(all: &BTreeMap<String, Vec<u8>>, seed: u64) {
    let files: Vec<u64> = all.keys().filter_map(|name| name.strip_prefix("file")?.parse().ok()).collect();
    let last = files.iter().copied().max();
    for n in 0..last.map_or(0, |last| last + 1) {
        let was_removed = n % 3 == 1 && last.is_some_and(|last| last > n);
        let data = all.get(&format!("file{n}"));
        match data {
            Some(data) => assert_eq!(*data, format!("data {n}").into_bytes(), "seed {seed}"),
            None => assert!(was_removed, "seed {seed}: {n} of {last:?} is missing: {:?}", all.keys()),
        }
    }
    if let Some(tmp) = all.get("tmp") {
        let next = format!("data {}", last.map_or(0, |last| last + 1));
        // The first files are made by single calls.
        let is_before_lease = last.is_none_or(|last| last < 3);
        let is_linked = last.is_some_and(|last| last % 4 == 1 && *tmp == format!("data {last}").as_bytes());
        let is_next = *tmp == next.as_bytes() || (tmp.is_empty() && is_before_lease);
        assert!(is_next || is_linked, "seed {seed}: no data");
    }
}

#[test]
fn a_killed_client_leaves_a_state_through_which_its_program_went() {
    for seed in 0..30 {
        let cell = cell(100 + seed);
        let a = cell.client(1);
        let client = a.clone();
        cell.on(&a, async move { client.mkdir("dir").await.unwrap() });
        let client = a.clone();
        let running = async move {
            client.env.timeout(Duration::from_millis(37 * seed + 20), work(&client)).await.ok();
        };
        cell.on(&a, running);
        cell.sim.crash(a.node);
        let b = cell.client(2);
        let other = b.clone();
        let all = cell.on(&b, async move { contents(&other, "dir").await });
        check_prefix(&all, seed);
    }
}

/// Four files that are closed before anything is sent are more than a list takes: the machine dies when the first list was made and the
/// second one was not.
#[test]
fn a_client_killed_between_two_lists_leaves_no_name_without_its_data() {
    let cell = cell(130);
    let (a, b) = (cell.client(1), cell.client(2));
    let data = pattern(16_000, 1);
    let (client, written) = (a.clone(), data.clone());
    let lists = cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
        let lists = client.calls("LeaseList");
        for n in 0..4 {
            client.put(&format!("dir/file{n}"), &written).await.unwrap();
        }
        assert_eq!(client.calls("LeaseList"), lists, "nothing was sent before the last close");
        lists
    });
    cell.sim.run_until(LIMIT, || a.calls("LeaseList") == lists + 2).unwrap();
    cell.sim.crash(a.node);
    let other = b.clone();
    let all = cell.on(&b, async move { contents(&other, "dir").await });
    let files: Vec<_> = all.iter().filter(|(name, _)| name.starts_with("file")).collect();
    assert_eq!(files.len(), 3, "{:?}", all.keys());
    assert!(files.iter().all(|(_, found)| **found == data), "a name has no data");
}

/// The server has a file without what was stored under the lease, as the next version of which another machine stores something else.
#[test]
fn a_killed_client_keeps_nothing_as_a_version_that_it_has_not_sent() {
    for length in [5, 100_000] {
        let cell = cell(131);
        let cache: std::sync::Arc<dyn afs_venus::CacheStore> =
            std::sync::Arc::new(afs_venus::MemoryCache::new(1 << 20));
        let a = cell.client_with(1, cache.clone());
        let client = a.clone();
        cell.on(&a, async move {
            lease(&client, "dir").await;
            client.put("dir/file", b"first").await.unwrap();
            client.env.sleep(Duration::from_secs(2)).await;
            client.put("dir/file", &pattern(length, 1)).await.unwrap();
            assert!(client.get("dir/file").await.unwrap() == pattern(length, 1));
        });
        cell.sim.crash(a.node);
        let b = cell.client(2);
        let other = b.clone();
        cell.on(&b, async move { other.put("dir/file", &pattern(length, 2)).await.unwrap() });
        let again = cell.client_with(3, cache);
        let client = again.clone();
        cell.on(&again, async move {
            assert!(client.get("dir/file").await.unwrap() == pattern(length, 2));
        });
    }
}

#[test]
fn a_recall_in_the_middle_of_anything_shows_what_was_acknowledged() {
    for seed in 0..20 {
        let cell = cell(200 + seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let client = a.clone();
        cell.on(&a, async move { client.mkdir("dir").await.unwrap() });
        let (client, other) = (a.clone(), b.clone());
        let lost = cell.on(&a, async move {
            let looks = async {
                for n in 0..10 {
                    other.env.sleep(Duration::from_millis(7 * seed + 31 * n)).await;
                    check_prefix(&contents_if_there(&other, "dir").await, seed);
                }
            };
            let (worked, ()) = afs_rpc::future::join(work(&client), looks).await;
            worked.unwrap();
            client.venus.counters().leases_lost
        });
        assert_eq!(lost, 0, "seed {seed}");
        let other = b.clone();
        let all = cell.on(&b, async move { contents(&other, "dir").await });
        check_prefix(&all, seed);
        assert!(all.contains_key("file199") && !all.contains_key("tmp"), "seed {seed}");
    }
}

/// The same while files come and go.
async fn contents_if_there(client: &Client, dir: &str) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut names = client.names(dir).await.unwrap();
    names.retain(|name| name.starts_with("file"));
    for name in names {
        match client.get(&format!("{dir}/{name}")).await {
            Ok(data) => drop(all.insert(name, data)),
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Stale) => {
                // Removed since it was listed.
                let n: u64 = name.trim_start_matches("file").parse().unwrap();
                assert_eq!(n % 3, 1, "{name}: {error}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    all
}

#[test]
fn a_restart_of_the_server_loses_nothing_that_a_program_was_told() {
    for seed in 0..20 {
        let cell = cell(300 + seed);
        let a = cell.client(1);
        let client = a.clone();
        cell.on(&a, async move {
            lease(&client, "dir").await;
            for n in 0..40 {
                client.put(&format!("dir/file{n}"), format!("data {n}").as_bytes()).await.unwrap();
                client.env.sleep(Duration::from_millis(seed)).await;
            }
            client.put("dir/large", &pattern(100_000, seed)).await.unwrap();
            client.mkdir("dir/model").await.unwrap();
            client.mkdir("dir/sub").await.unwrap();
            client.put("dir/sub/inner", b"inner").await.unwrap();
        });
        cell.restart_server();
        let client = a.clone();
        cell.on(&a, async move {
            client.env.sleep(Duration::from_secs(100)).await;
            client.put("dir/more", b"more").await.unwrap();
        });
        let b = cell.client(2);
        let other = b.clone();
        cell.on(&b, async move {
            for n in 0..40 {
                let data = other.get(&format!("dir/file{n}")).await;
                assert_eq!(
                    data.unwrap_or_else(|error| panic!("seed {seed} {n}: {error}")),
                    format!("data {n}").as_bytes()
                );
            }
            assert!(other.get("dir/large").await.unwrap() == pattern(100_000, seed), "seed {seed}");
            assert_eq!(other.get("dir/more").await.unwrap(), b"more");
            assert_eq!(other.get("dir/sub/inner").await.unwrap(), b"inner", "seed {seed}");
        });
        let client = a.clone();
        cell.on(&a, async move {
            for n in 0..40 {
                assert_eq!(
                    client.get(&format!("dir/file{n}")).await.unwrap(),
                    format!("data {n}").as_bytes()
                );
            }
        });
    }
}

#[test]
fn a_client_that_a_recall_does_not_reach_makes_its_changes_good_afterwards() {
    let cell = cell(6);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
    });
    cell.sim.world().cut(cell.server, a.node);
    cell.sim.world().cut(a.node, cell.server);
    let client = a.clone();
    cell.on(&a, async move {
        client.put("dir/decided", b"decided").await.unwrap();
        client.put("dir/both", b"of a").await.unwrap();
        put_by_link(&client, "dir", "linked", b"of a").await.unwrap();
    });
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        assert_eq!(all.len(), 4, "the server gave up waiting: {:?}", all.keys());
        other.put("dir/both", b"of b").await.unwrap();
        other.put("dir/linked", b"of b").await.unwrap();
    });
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.world().mend(a.node, cell.server);
    let client = a.clone();
    cell.on(&a, async move {
        client.env.sleep(Duration::from_secs(60)).await;
        assert_eq!(client.venus.counters().leases_lost, 1);
        assert_eq!(client.get("dir/both").await.unwrap(), b"of b");
        // What could not be stored is told.
        let unsaved = client.venus.unsaved(afs_venus::TokenOwner::Uid(0), 0);
        assert_eq!(unsaved.len(), 1);
    });
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        assert_eq!((&all["decided"][..], &all["both"][..]), (&b"decided"[..], &b"of b"[..]));
        // The file did not get its second name, and keeps the first.
        assert_eq!((&all["linked"][..], &all["tmp"][..]), (&b"of b"[..], &b"of a"[..]));
    });
}

#[test]
fn after_a_restart_that_is_known_nothing_is_decided_under_the_old_lease() {
    let cell = cell(10);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
    });
    cell.restart_server();
    cell.sim.run_for(Duration::from_secs(90));
    let client = a.clone();
    cell.on(&a, async move {
        client.names("dir").await.unwrap();
        client.put("dir/new", b"new").await.unwrap();
    });
    let other = b.clone();
    cell.on(&b, async move { assert_eq!(other.get("dir/new").await.unwrap(), b"new") });
}

/// A program that repeats what failed: files that are acknowledged are there, with their data, and removed ones are not.
async fn stubborn(client: &Client, rng: &mut afs_sim::SimRng) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    let dir = client.find("dir").await.unwrap().node;
    for n in 0..60 {
        let name = format!("file{n}");
        // Some are more than a list takes.
        let data = if n % 11 == 3 { pattern(40_000, n) } else { format!("data {n}").into_bytes() };
        let mut tries = 0;
        while let Err(error) = client.put(&format!("dir/{name}"), &data).await {
            tries += 1;
            assert!(tries < 20, "{name}: {error}");
            client.env.sleep(Duration::from_secs(3)).await;
        }
        all.insert(name, data);
        if n % 5 == 4 {
            let name = format!("file{}", n - 2);
            if all.remove(&name).is_some() {
                client.venus.unlink(dir, name.as_bytes()).await.unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        }
        if n % 7 == 6 {
            let (from, to) = (format!("file{n}"), format!("renamed{n}"));
            client.venus.rename(dir, from.as_bytes(), dir, to.as_bytes()).await.unwrap();
            let data = all.remove(&from).unwrap();
            all.insert(to, data);
        }
        if n % 7 == 3 {
            let (from, to) = (format!("file{n}"), format!("linked{n}"));
            // Boxed: the test has one stack for all.
            let linked = Box::pin(async {
                let file = client.find(&format!("dir/{from}")).await.unwrap().node;
                client.venus.link(file, dir, to.as_bytes()).await.unwrap();
                client.venus.unlink(dir, from.as_bytes()).await.unwrap();
            });
            linked.await;
            let data = all.remove(&from).unwrap();
            all.insert(to, data);
        }
        client.env.sleep(Duration::from_millis(rng.below(200))).await;
    }
    all
}

#[test]
fn lists_whose_replies_are_lost_are_made_once() {
    for seed in 0..30 {
        let cell = cell(400 + seed);
        let mut rng = afs_sim::SimRng::new(seed);
        let (a, b) = (cell.client(1), cell.client(2));
        let client = a.clone();
        cell.on(&a, async move {
            lease(&client, "dir").await;
            for n in 0..4 {
                let dir = client.find("dir").await.unwrap().node;
                client.venus.unlink(dir, format!("first{n}").as_bytes()).await.unwrap();
            }
        });
        let (client, other, world, server) = (a.clone(), b.clone(), cell.sim.world(), cell.server);
        let (mut work_rng, mut cut_rng) = (rng.fork(), rng.fork());
        let all = cell.on(&a, async move {
            let trouble = async {
                for _ in 0..4 {
                    client.env.sleep(Duration::from_millis(cut_rng.below(2500))).await;
                    let (from, to) = match cut_rng.below(2) {
                        0 => (server, client.node),
                        _ => (client.node, server),
                    };
                    world.cut(from, to);
                    if cut_rng.below(2) == 0 {
                        // Takes the lease away: the recall or its reply does not come.
                        other.env.timeout(Duration::from_secs(20), other.names("dir")).await.ok();
                    }
                    client.env.sleep(Duration::from_millis(cut_rng.below(4000))).await;
                    world.mend(from, to);
                }
            };
            afs_rpc::future::join(Box::pin(stubborn(&client, &mut work_rng)), Box::pin(trouble)).await.0
        });
        cell.sim.run_for(Duration::from_secs(120));
        for client in [&b, &a] {
            let one = client.clone();
            let seen = cell.on(client, async move { contents(&one, "dir").await });
            assert_eq!(seen.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>(), "seed {seed}");
            assert!(seen == all, "seed {seed}");
        }
    }
}

#[test]
fn a_list_that_was_made_and_not_replied_to_is_not_made_again() {
    let cell = cell(11);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
    });
    cell.sim.world().cut(cell.server, a.node);
    let client = a.clone();
    cell.on(&a, async move {
        let dir = client.find("dir").await.unwrap().node;
        client.put("dir/tmp", b"one").await.unwrap();
        client.venus.rename(dir, b"tmp", dir, b"first").await.unwrap();
        client.put("dir/tmp", b"two").await.unwrap();
    });
    // The list arrives, and its reply does not.
    cell.sim.run_for(Duration::from_secs(3));
    cell.restart_server();
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.run_for(Duration::from_secs(120));
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 1) });
    let other = b.clone();
    cell.on(&b, async move {
        // Made anew, the first file would be the second one.
        assert_eq!(other.get("dir/first").await.unwrap(), b"one");
        assert_eq!(other.get("dir/tmp").await.unwrap(), b"two");
    });
}

/// Another machine has removed the object by which the list would be known: it is made again, and a second name is there already.
#[test]
fn a_second_name_that_a_list_has_made_is_not_taken_for_the_name_of_another_file() {
    let cell = cell(12);
    let (a, b) = (cell.client(1), cell.client(2));
    let client = a.clone();
    cell.on(&a, async move {
        lease(&client, "dir").await;
        client.env.sleep(Duration::from_secs(2)).await;
    });
    cell.sim.world().cut(cell.server, a.node);
    let client = a.clone();
    cell.on(&a, async move {
        let dir = client.find("dir").await.unwrap().node;
        client.put("dir/known", b"known").await.unwrap();
        client.put("dir/tmp", b"data").await.unwrap();
        let file = client.find("dir/tmp").await.unwrap().node;
        client.venus.link(file, dir, b"object").await.unwrap();
        // The list arrives, and its reply does not.
        client.env.sleep(Duration::from_secs(3)).await;
        client.venus.unlink(dir, b"tmp").await.unwrap();
    });
    cell.restart_server();
    let other = b.clone();
    cell.on(&b, async move {
        let dir = other.find("dir").await.unwrap().node;
        other.venus.unlink(dir, b"known").await.unwrap();
    });
    cell.sim.world().mend(cell.server, a.node);
    cell.sim.run_for(Duration::from_secs(120));
    let client = a.clone();
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 1) });
    let other = b.clone();
    cell.on(&b, async move {
        let all = contents(&other, "dir").await;
        assert_eq!(all["object"], b"data");
        assert!(!all.contains_key("tmp"), "{:?}", all.keys());
    });
}
