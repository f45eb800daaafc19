//! Random work of two machines compared with a plain model. Caches and chunks are tiny, so that data is fetched in
//! parts, evicted, and stored in parts.
//!
//! The second test does the same with passthrough wherever possible.
//!
//! Every second history is of a volume whose data go to drives of some kind, in one of the organisations.
//!
//! `ANDREW_SEEDS=N` runs N histories.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use afs_sim::SimRng;
use afs_sim::crash::seeds;
use afs_testkit::DrivePlan;
use afs_venus::{
    Allocate, Backing, CacheStore, DiskCache, HandleId, MemoryCache, NodeId, OpenFlags, Result, SetAttr,
};
use bytes::Bytes;

use super::common::Client;
use super::scene::Scene;

/// Files by name, all in the root directory.
type Model = BTreeMap<String, Vec<u8>>;

#[test]
fn random_operations_of_two_machines_leave_the_state_of_the_model() {
    seeds(6).for_each(|seed| history(&scene(seed, 0), seed, |_| Arc::new(MemoryCache::new(96 << 10))));
}

#[test]
fn any_history_of_two_kernels_matches_the_model() {
    for seed in seeds(6) {
        let dir = tempfile::tempdir().unwrap();
        let open =
            |n: usize| DiskCache::open(&dir.path().join(n.to_string()), 96 << 10, "this boot").unwrap();
        history(&scene(seed, 1), seed, |n| Arc::new(open(n)));
    }
}

/// One machine works for a while, so that it gets leases, then the other one looks.
#[test]
fn random_operations_under_leases_leave_the_state_of_the_model() {
    for seed in seeds(6) {
        let scene = scene(seed, 2);
        let cell = &scene.cell;
        cell.set_limits(|limits| {
            (limits.chunk_bytes, limits.read_ahead_chunks, limits.statuses_max) = (4096, 2, 100);
            limits.leases = true;
        });
        let mut rng = SimRng::new(seed);
        let caches: Vec<Arc<dyn CacheStore>> =
            (0..2).map(|_| Arc::new(MemoryCache::new(96 << 10)) as Arc<dyn CacheStore>).collect();
        let mut clients: Vec<Client> =
            (0..2).map(|n| cell.client_with(n as u8 + 2, caches[n].clone())).collect();
        let mut model = Model::new();
        for step in 0..25u8 {
            let machine = rng.below(2) as usize;
            for part in 0..rng.between(1, 24) as u8 {
                if rng.below(60) == 0 {
                    scene.restart_server();
                    cell.sim.run_for(std::time::Duration::from_secs(90));
                }
                cell.sim.run_for(std::time::Duration::from_millis(rng.below(2) * rng.below(700)));
                let (client, mut fork, mut files) = (clients[machine].clone(), rng.fork(), model.clone());
                let done = cell.on(&client.clone(), async move {
                    let small = fork.below(3) > 0;
                    let done = match small {
                        true => small_work(&client, &mut fork, &mut files, step ^ part).await,
                        false => work(&client, &mut fork, &mut files, step ^ part).await,
                    };
                    done.map(|()| files)
                });
                model = done.unwrap_or_else(|error| panic!("seed {seed} step {step} {part}: {error}"));
            }
            for looks in [machine, 1 - machine] {
                let (client, want) = (clients[looks].clone(), model.clone());
                cell.on(&client.clone(), async move { compare(&client, &want, seed, step).await });
            }
            if rng.below(6) == 0 {
                cell.sim.crash(clients[machine].node);
                clients[machine] = cell.client_with(10 + step, caches[machine].clone());
            }
        }
    }
}

/// Changes of names and small files.
async fn small_work(client: &Client, rng: &mut SimRng, files: &mut Model, step: u8) -> Result<()> {
    let name = format!("file{}", rng.below(12));
    let other = format!("file{}", rng.below(12));
    let (venus, root) = (&client.venus, NodeId::ROOT);
    match (files.contains_key(&name), rng.below(4)) {
        (true, 0) => {
            venus.unlink(root, name.as_bytes()).await?;
            files.remove(&name);
        }
        (true, 1) => {
            venus.rename(root, name.as_bytes(), root, other.as_bytes()).await?;
            let data = files.remove(&name).unwrap();
            files.insert(other, data);
        }
        (true, 2) => {
            let node = client.find(&name).await?.node;
            let mode = afs_wire::ids::Mode(0o600 + rng.below(8) as u32);
            let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
            let attr = venus.setattr(node, None, set).await?;
            assert_eq!((attr.mode, attr.size), (mode, files[&name].len() as u64));
        }
        _ => {
            let data = vec![step; rng.below(3_000) as usize];
            client.put(&name, &data).await?;
            files.insert(name, data);
        }
    }
    Ok(())
}

/// A cell without a data path, or one with a plan; seeds in a row, and the tests, have different ones.
fn scene(seed: u64, test: u64) -> Scene {
    match seed % 2 {
        0 => Scene::without_data_path(seed),
        _ => Scene::planned(seed, &DrivePlan::of_seed(seed / 2 + 3 * test)),
    }
}

fn history(scene: &Scene, seed: u64, cache: impl Fn(usize) -> Arc<dyn CacheStore>) {
    let cell = &scene.cell;
    cell.set_limits(|limits| {
        limits.chunk_bytes = 4096;
        limits.read_ahead_chunks = 2;
        limits.statuses_max = 100;
    });
    let mut rng = SimRng::new(seed);
    let caches: Vec<_> = (0..2).map(cache).collect();
    let mut clients: Vec<Client> = (0..2).map(|n| cell.client_with(n as u8 + 2, caches[n].clone())).collect();
    let mut model = Model::new();
    for step in 0..60u8 {
        let machine = rng.below(2) as usize;
        match rng.below(25) {
            0 => {
                scene.restart_server();
                // A machine that has made no call since notices the restart by a probe.
                cell.sim.run_for(std::time::Duration::from_secs(90));
            }
            1 => {
                // The machine crashes and another one uses its cache.
                cell.sim.crash(clients[machine].node);
                clients[machine] = cell.client_with(10 + step, caches[machine].clone());
            }
            _ => {
                let (client, mut fork, mut files) = (clients[machine].clone(), rng.fork(), model.clone());
                let done = cell.on(&client.clone(), async move {
                    let done = work(&client, &mut fork, &mut files, step).await;
                    done.map(|()| files)
                });
                model = done.unwrap_or_else(|error| panic!("seed {seed} step {step}: {error}"));
            }
        }
        let (client, want) = (clients[1 - machine].clone(), model.clone());
        cell.on(&client.clone(), async move { compare(&client, &want, seed, step).await });
    }
}

async fn work(client: &Client, rng: &mut SimRng, files: &mut Model, step: u8) -> Result<()> {
    let name = format!("file{}", rng.below(5));
    let other = format!("file{}", rng.below(5));
    let venus = &client.venus;
    match (files.get(&name).cloned(), rng.below(10)) {
        (None, _) => {
            let data = vec![step; rng.below(40_000) as usize];
            client.put(&name, &data).await?;
            files.insert(name, data);
        }
        (Some(_), 0) => {
            venus.unlink(NodeId::ROOT, name.as_bytes()).await?;
            files.remove(&name);
        }
        (Some(data), 1) => {
            venus.rename(NodeId::ROOT, name.as_bytes(), NodeId::ROOT, other.as_bytes()).await?;
            files.remove(&name);
            files.insert(other, data);
        }
        (Some(mut data), 2) => {
            let length = rng.below(60_000);
            let node = client.find(&name).await?.node;
            venus.setattr(node, None, SetAttr { size: Some(length), ..SetAttr::default() }).await?;
            data.resize(length as usize, 0);
            files.insert(name, data);
        }
        (Some(_), 3) => {
            let data = vec![step; rng.below(90_000) as usize];
            client.put(&name, &data).await?;
            files.insert(name, data);
        }
        (Some(mut data), _) => {
            change(client, rng, &name, &mut data, step).await?;
            files.insert(name, data);
        }
    }
    Ok(())
}

/// Reads, writes, truncates and appends through one handle. Another one may have been closed before, and not been
/// released yet.
async fn change(client: &Client, rng: &mut SimRng, name: &str, data: &mut Vec<u8>, step: u8) -> Result<()> {
    let entry = client.find(name).await?;
    let flags = OpenFlags { passthrough: true, ..OpenFlags::READ_WRITE };
    let mut closed = match rng.below(3) {
        0 => Some(write_and_close(client, entry.node, flags, data, step).await?),
        _ => None,
    };
    let opened = client.venus.open(entry.node, flags).await?;
    let (handle, backing) = (opened.handle, opened.backing);
    for _ in 0..rng.between(1, 6) {
        let pos = rng.below(data.len() as u64 + 5_000) as usize;
        let len = rng.below(9_000) as usize;
        if let Some(closed) = closed.take_if(|_| rng.below(3) == 0) {
            release_late(client, closed).await?;
        }
        match rng.below(8) {
            0 => {
                // Sometimes so far that there is a hole.
                let size = if rng.below(4) == 0 { pos + 300_000 } else { pos };
                let change = SetAttr { size: Some(size as u64), ..SetAttr::default() };
                client.venus.setattr(entry.node, Some(handle), change).await?;
                data.resize(size, 0);
            }
            7 => {
                let keep_length = rng.below(2) == 0;
                let how = Allocate::Zero { keep_length };
                client.venus.allocate(handle, how, pos as u64, len as u64 + 1).await?;
                if !keep_length {
                    data.resize(data.len().max(pos + len + 1), 0);
                }
                let end = data.len();
                data[pos.min(end)..(pos + len + 1).min(end)].fill(0);
            }
            1 => client.venus.fsync(handle).await?,
            2..5 => {
                let got = read(client, handle, backing.as_ref(), pos as u64, len).await?;
                let (from, to) = (pos.min(data.len()), (pos + len).min(data.len()));
                assert!(got == data[from..to.max(from)], "a read at {pos} of {len}");
            }
            _ => {
                write(client, handle, backing.as_ref(), pos as u64, vec![step; len]).await?;
                if len > 0 {
                    data.resize(data.len().max(pos + len), 0);
                    data[pos..pos + len].fill(step);
                }
            }
        }
    }
    client.venus.flush(handle, 0).await?;
    if let Some(closed) = closed {
        release_late(client, closed).await?;
    }
    client.venus.release(handle).await
}

/// Appends through a handle of its own.
async fn write_and_close(
    client: &Client,
    node: NodeId,
    flags: OpenFlags,
    data: &mut Vec<u8>,
    step: u8,
) -> Result<HandleId> {
    let opened = client.venus.open(node, flags).await?;
    let more = vec![!step; 3000];
    write(client, opened.handle, opened.backing.as_ref(), data.len() as u64, more.clone()).await?;
    data.extend(more);
    client.venus.flush(opened.handle, 0).await?;
    Ok(opened.handle)
}

/// A late release must not store: the present writer stores at its own close.
async fn release_late(client: &Client, closed: HandleId) -> Result<()> {
    let before = client.venus.counters();
    client.venus.release(closed).await?;
    let calls = client.calls_since(&before);
    assert!(!calls.iter().any(|call| call.starts_with("StoreData")), "{calls:?}");
    Ok(())
}

/// By passthrough if possible, otherwise through Venus.
async fn read(
    client: &Client,
    handle: HandleId,
    backing: Option<&Backing>,
    pos: u64,
    len: usize,
) -> Result<Bytes> {
    let Some(backing) = backing else { return client.venus.read(handle, pos, len).await };
    let mut data = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match backing.file.read_at(&mut data[filled..], pos + filled as u64).unwrap() {
            0 => break,
            n => filled += n,
        }
    }
    data.truncate(filled);
    Ok(data.into())
}

async fn write(
    client: &Client,
    handle: HandleId,
    backing: Option<&Backing>,
    pos: u64,
    data: Vec<u8>,
) -> Result<()> {
    match backing {
        Some(backing) => backing.file.write_all_at(&data, pos).unwrap(),
        None => drop(client.venus.write(handle, pos, Bytes::from(data)).await?),
    }
    Ok(())
}

async fn compare(client: &Client, want: &Model, seed: u64, step: u8) {
    let mut names = client.names("").await.unwrap();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    assert!(names.iter().eq(want.keys()), "seed {seed} step {step}: {names:?}, not {:?}", want.keys());
    for (name, data) in want {
        let got =
            client.get(name).await.unwrap_or_else(|error| panic!("seed {seed} step {step} {name}: {error}"));
        let first = got.iter().zip(data).position(|(a, b)| a != b);
        assert!(
            got == *data,
            "seed {seed} step {step} {name}: {} bytes, not {}; differs at {first:?}",
            got.len(),
            data.len()
        );
        let attr = client.find(name).await.unwrap().attr;
        assert_eq!((attr.size, attr.nlink), (data.len() as u64, 1), "seed {seed} step {step} {name}");
    }
}
