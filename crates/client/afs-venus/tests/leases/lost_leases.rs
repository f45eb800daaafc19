//! Leases that are lost by a restart of the server or a cut of the network: what a program was told is there, once.

use super::*;

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
    let (cell, a, b) = leased(6);
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
        // The user finds what could not be stored.
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
    let (cell, a, b) = leased(10);
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
    let (cell, a, b) = leased(11);
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
    cell.on(&a, async move { assert_eq!(client.venus.counters().leases_lost, 0) });
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
    let (cell, a, b) = leased(12);
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
