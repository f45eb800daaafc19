//! Crashes and recalls in the middle of anything: what is there is a state through which the program went.

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
    let (cell, a, b) = leased(130);
    let data = pattern(16_000, 1);
    let (client, written) = (a.clone(), data.clone());
    let lists = cell.on(&a, async move {
        let lists = client.calls("ChangeList");
        for n in 0..4 {
            client.put(&format!("dir/file{n}"), &written).await.unwrap();
        }
        assert_eq!(client.calls("ChangeList"), lists, "nothing was sent before the last close");
        lists
    });
    cell.sim.run_until(LIMIT, || a.calls("ChangeList") == lists + 2).unwrap();
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
