//! Machines that create, rename, link and remove the same names at the same time, with several processes on each: in
//! the end all of them show the state of the server, without calls for what is promised.
//!
//! `VENUS_SEEDS=N` runs N histories, `VENUS_SEED=S` the one of seed S.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{join, join_all};
use afs_sim::{LinkConfig, SimRng};
use afs_venus::{ErrorKind, Kind, NodeId, OpenFlags, Result, SetAttr};
use afs_wire::ids::Mode;
use bytes::Bytes;
use common::{Cell, Client, pattern};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const MACHINES: u8 = 2;
/// So few that they rarely wait for one another, or so many that several of their changes go in one call.
const PROCESSES: [usize; 2] = [2, 7];
const STEPS: u64 = 25;
/// Errors caused by concurrent changes of the same names.
const USUAL: [ErrorKind; 9] = [
    ErrorKind::NotFound,
    ErrorKind::Exists,
    ErrorKind::IsDirectory,
    ErrorKind::NotDirectory,
    ErrorKind::NotEmpty,
    ErrorKind::Stale,
    ErrorKind::Loop,
    ErrorKind::Invalid,
    ErrorKind::NotPermitted,
];

/// A machine replaces a file that it has open and not fully cached, again and again, while another one looks.
#[test]
fn a_name_that_is_replaced_by_rename_is_there_at_every_moment() {
    for seed in 0..10 {
        let cell = Cell::new(seed);
        cell.set_limits(|limits| {
            limits.chunk_bytes = 64 << 10;
            limits.read_ahead_chunks = 0;
        });
        let (there, here) = (cell.client(1), cell.client(2));
        let is_over = Arc::new(AtomicBool::new(false));
        let (looker, over) = (there.clone(), is_over.clone());
        let (content, first) = (pattern(150_000, seed), there.clone());
        let kept = content.clone();
        cell.on(&there, async move { first.put("name", &content).await.unwrap() });
        there.env.spawn(Box::pin(async move {
            while !over.load(Ordering::SeqCst) {
                looker.find("name").await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                looker.env.sleep(Duration::from_micros(200)).await;
            }
        }));
        let names = cell.on(&here.clone(), async move {
            for round in 0..5 {
                let handle = here.open("name", OpenFlags::READ).await.unwrap();
                here.venus.read(handle, 0, 10).await.unwrap();
                here.put("new", &pattern(150_000, seed + 100 + round)).await.unwrap();
                here.venus.rename(NodeId::ROOT, b"new", NodeId::ROOT, b"name").await.unwrap();
                let read = here.read_all(handle).await.unwrap();
                assert!(round > 0 || read == kept, "an open file keeps its version");
                here.venus.release(handle).await.unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
            here.names("").await.unwrap()
        });
        assert_eq!(names, [".", "..", "name"], "nothing hidden stays behind");
    }
}

/// Two machines replace a name so fast that up to a dozen files which a more distant one finds are gone before their data are there.
#[test]
fn a_name_that_is_replaced_faster_than_it_is_read_can_be_opened() {
    for seed in 0..2 {
        let cell = Cell::new(seed);
        let link = LinkConfig { latency_max: Duration::from_millis(1), ..LinkConfig::default() };
        cell.sim.set_link(link);
        for number in 1..3 {
            let writer = cell.client(number);
            writer.env.clone().spawn(Box::pin(async move {
                let new = format!("new.{number}");
                loop {
                    writer.put(&new, &pattern(3000, number.into())).await.unwrap();
                    writer.venus.rename(NodeId::ROOT, new.as_bytes(), NodeId::ROOT, b"name").await.unwrap();
                }
            }));
        }
        let reader = cell.client(3);
        let far = Duration::from_micros(500);
        let distance = LinkConfig { latency_min: far, latency_max: 2 * far, ..LinkConfig::default() };
        for (from, to) in [(reader.node, cell.server), (cell.server, reader.node)] {
            cell.sim.set_link_between(from, to, distance);
        }
        cell.on(&reader.clone(), async move {
            reader.env.sleep(Duration::from_secs(1)).await;
            for _ in 0..150 {
                reader.env.sleep(Duration::from_millis(20)).await;
                let (entry, opened) =
                    reader.venus.lookup_open(NodeId::ROOT, b"name", OpenFlags::READ).await.unwrap();
                let handle =
                    opened.unwrap_or_else(|| panic!("seed {seed}: {} is not opened", entry.attr.fid)).handle;
                assert_eq!(reader.read_all(handle).await.unwrap().len(), 3000, "seed {seed}");
                reader.venus.release(handle).await.unwrap();
                reader.venus.forget(entry.node, 1);
            }
        });
    }
}

/// One program replaces or removes a file that another one closes at any moment of that.
#[test]
fn a_file_that_is_closed_while_it_loses_its_name_leaves_nothing_hidden() {
    for (delay, is_replaced) in (0..60).flat_map(|delay| [(delay * 50, true), (delay * 50, false)]) {
        let cell = Cell::new(delay);
        cell.set_limits(|limits| {
            limits.chunk_bytes = 64 << 10;
            limits.read_ahead_chunks = 0;
        });
        let (there, here) = (cell.client(1), cell.client(2));
        cell.on(&there.clone(), async move {
            there.put("name", &pattern(150_000, 1)).await.unwrap();
            there.put("new", b"new").await.unwrap();
        });
        let names = cell.on(&here.clone(), async move {
            let handle = here.open("name", OpenFlags::READ).await.unwrap();
            here.venus.read(handle, 0, 10).await.unwrap();
            let closing = async {
                here.env.sleep(Duration::from_micros(delay)).await;
                here.venus.release(handle).await.unwrap();
            };
            let losing = async {
                match is_replaced {
                    true => here.venus.rename(NodeId::ROOT, b"new", NodeId::ROOT, b"name").await.unwrap(),
                    false => here.venus.unlink(NodeId::ROOT, b"name").await.unwrap(),
                }
            };
            join(closing, losing).await;
            here.env.sleep(Duration::from_secs(1)).await;
            here.names("").await.unwrap()
        });
        let left = if is_replaced { "name" } else { "new" };
        assert_eq!(names, [".", "..", left], "closed after {delay} µs");
    }
}

#[test]
fn changes_of_several_machines_to_the_same_names_are_seen_by_all() {
    seeds().into_iter().for_each(history);
}

/// The first seeds, and those that have found errors.
fn seeds() -> Vec<u64> {
    match number("VENUS_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("VENUS_SEEDS").unwrap_or(80)).chain([242, 486, 700]).collect(),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn history(seed: u64) {
    let cell = Cell::new(seed);
    let mut rng = SimRng::new(seed);
    cell.sim.set_link(LinkConfig {
        latency_max: Duration::from_millis([1, 20, 100][rng.index(3)]),
        loss_per_million: [0, 20_000][rng.index(2)],
        straggle_per_million: [0, 50_000][rng.index(2)],
        ..LinkConfig::default()
    });
    let machines: Vec<Client> = (0..MACHINES).map(|n| cell.client(n)).collect();
    let mut work = Vec::new();
    let processes = PROCESSES[usize::from(seed % 4 == 3)];
    for machine in machines.iter().cycle().take(machines.len() * processes) {
        work.push(process(machine.clone(), rng.fork(), seed));
    }
    cell.on(&machines[0], async move { drop(join_all(work).await) });
    // A break that was delayed for longer than the server waits arrives when the machine next makes a call, or probes.
    cell.sim.run_for(Duration::from_secs(90));
    let fresh = cell.client(MACHINES);
    let [truth, again] = [&fresh, &fresh].map(|client| shown(&cell, client));
    assert_eq!(truth, again, "seed {seed}: nobody changes anything any more");
    for (number, machine) in machines.iter().enumerate() {
        assert_eq!(shown(&cell, machine), truth, "seed {seed}, machine {number}, and what is there");
    }
}

async fn process(machine: Client, mut rng: SimRng, seed: u64) {
    for step in 0..STEPS {
        if let Err(error) = one_step(&machine, &mut rng).await
            && !USUAL.contains(&error.kind)
        {
            panic!("seed {seed}, step {step}: {error}");
        }
    }
}

async fn one_step(machine: &Client, rng: &mut SimRng) -> Result<()> {
    let (venus, top) = (&machine.venus, NodeId::ROOT);
    let (name, other) = (NAMES[rng.index(NAMES.len())], NAMES[rng.index(NAMES.len())]);
    let (name, other) = (name.as_bytes(), other.as_bytes());
    match rng.below(12) {
        0..2 => {
            let data = vec![b'x'; rng.below(3000) as usize];
            machine.put(std::str::from_utf8(name).unwrap(), &data).await
        }
        2..5 => venus.rename(top, name, top, other).await,
        5 => {
            let node = venus.lookup(top, name).await?.node;
            venus.link(node, top, other).await.map(drop)
        }
        6 => venus.unlink(top, name).await,
        7 => venus.symlink(top, name, b"nowhere").await.map(drop),
        8 => {
            let found = venus.lookup(top, name).await?;
            if found.attr.kind != Kind::File {
                return Ok(());
            }
            let mode = Some(Mode([0o600, 0o644, 0o755][rng.index(3)]));
            venus.setattr(found.node, None, SetAttr { mode, ..SetAttr::default() }).await.map(drop)
        }
        9 => venus.readdirplus(top, 0, usize::MAX).await.map(drop),
        10 => {
            venus.mkdir(top, name, 0o755).await?;
            venus.rmdir(top, name).await
        }
        _ => venus.lookup(top, name).await.map(drop),
    }
}

/// The names that a machine shows, with their attributes.
fn shown(cell: &Cell, client: &Client) -> BTreeSet<String> {
    let machine = client.clone();
    cell.on(client, async move {
        let mut shown = BTreeSet::new();
        for name in machine.names("").await.unwrap() {
            if name.starts_with('.') {
                continue;
            }
            let falsified = match machine.venus.lookup(NodeId::ROOT, name.as_bytes()).await {
                Ok(entry) => {
                    let attr = entry.attr;
                    format!("{} {:?} {} {:o} {}", attr.fid, attr.kind, attr.size, attr.mode.0, attr.nlink)
                }
                Err(error) => error.to_string(),
            };
            shown.insert(format!("{name}: {falsified}"));
        }
        shown
    })
}

/// The link count known to the machine is outdated when the last name that it knows is removed.
#[test]
fn a_file_that_another_machine_has_linked_is_stored_after_the_name_is_gone_by_which_it_was_opened() {
    let cell = Cell::new(81);
    let (a, b) = (cell.client(0), cell.client(1));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        one.put("one", b"before").await.unwrap();
        one.open("one", OpenFlags::READ_WRITE).await.unwrap()
    });
    let two = b.clone();
    cell.on(&b, async move {
        let node = two.find("one").await.unwrap().node;
        two.venus.link(node, NodeId::ROOT, b"two").await.unwrap();
    });
    let one = a.clone();
    cell.on(&a, async move {
        one.venus.unlink(NodeId::ROOT, b"one").await.unwrap();
        one.venus.write(handle, 0, Bytes::from_static(b"behind")).await.unwrap();
        one.venus.flush(handle, 0).await.unwrap();
        one.venus.release(handle).await.unwrap();
    });
    let two = b.clone();
    cell.on(&b, async move { assert_eq!(two.get("two").await.unwrap(), b"behind") });
}

/// Servers send no breaks to the client that makes a change, so a reply in transit during the change must not be
/// cached.
#[test]
fn a_change_of_this_machine_is_not_undone_by_an_earlier_reply() {
    let cell = Cell::new(82);
    let link = LinkConfig {
        latency_max: Duration::from_millis(5),
        straggle_per_million: 200_000,
        ..LinkConfig::default()
    };
    cell.sim.set_link(link);
    let (a, b) = (cell.client(0), cell.client(1));
    let set = |mode| SetAttr { mode: Some(Mode(mode)), ..SetAttr::default() };
    let (one, two) = (a.clone(), b.clone());
    cell.on(&a, async move {
        one.put("file", b"data").await.unwrap();
        let node = one.find("file").await.unwrap().node;
        let other = two.find("file").await.unwrap().node;
        for round in 0..200 {
            two.venus.setattr(other, None, set(0o600)).await.unwrap();
            let looks = [one.venus.getattr(node), one.venus.getattr(node)];
            let looks = async move {
                join_all(looks).await;
            };
            let changes = async { one.venus.setattr(node, None, set(0o755)).await.map(drop).unwrap() };
            let both: Vec<Work> = vec![Box::pin(looks), Box::pin(changes)];
            join_all(both).await;
            assert_eq!(one.venus.getattr(node).await.unwrap().mode, Mode(0o755), "round {round}");
        }
    });
}

type Work<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
