//! Moves of a volume with snapshots: at the target each snapshot is unchanged, under its id, name and date.

use std::collections::BTreeMap;
use std::time::Duration;

use afs_admin::{CreateOptions, MoveOptions, ServerPartition};
use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::vl::EntryFlags;

use super::cell::{Cell, place};
use super::content::{Content, content, remove, write};

/// A volume's snapshots: name, date and content, by id; and its own content.
#[derive(Debug, PartialEq, Eq)]
struct State {
    snapshots: BTreeMap<VolumeId, (String, UnixSeconds, Content)>,
    present: Content,
}

const FROM: fn() -> ServerPartition = || place(0, 0);

fn create(cell: &Cell) -> VolumeId {
    let options = CreateOptions { name: "v".into(), place: FROM(), quota: 0, id: None };
    cell.run(|admin| async move { admin.create(options).await }).unwrap()
}

fn snapshot(cell: &Cell, name: &'static str) {
    cell.run(move |admin| async move { admin.create_snapshot("v", name).await }).unwrap();
    // Longer than every margin for clocks, so that dates distinguish the states.
    cell.sim.run_for(Duration::from_secs(20));
}

/// A volume whose states cannot be distinguished by dates: it was restored from an old snapshot in between.
fn begin(seed: u64) -> (Cell, VolumeId) {
    let cell = Cell::new(seed, 2);
    let volume = create(&cell);
    let put = |name: &str, text: &str| write(&cell, FROM(), volume, name, text.as_bytes());
    put("same", "never changed");
    put("file", "one");
    put("gone", "until wednesday");
    write(&cell, FROM(), volume, "large", &vec![7; 300_000]);
    snapshot(&cell, "monday");
    put("file", "two");
    put("tuesday", "only then");
    snapshot(&cell, "tuesday");
    cell.run(|admin| async move { admin.restore_snapshot("v", "monday").await }).unwrap();
    cell.sim.run_for(Duration::from_secs(2));
    remove(&cell, FROM(), volume, "gone");
    snapshot(&cell, "wednesday");
    write(&cell, FROM(), volume, "last", b"present");
    (cell, volume)
}

fn state(cell: &Cell, at: ServerPartition, volume: VolumeId) -> State {
    let all = cell.run(|admin| async move { admin.snapshots("v").await }).unwrap();
    let one = |s: afs_admin::Snapshot| (s.volume, (s.name, s.created, content(cell, at, s.volume)));
    State { snapshots: all.into_iter().map(one).collect(), present: content(cell, at, volume) }
}

fn options(to: ServerPartition, live: bool) -> MoveOptions {
    MoveOptions { volume: "v".into(), from: None, to, live, drop_snapshots: false }
}

/// Checks that everything is at one site, that the location database says so, and that nothing is elsewhere.
fn check(cell: &Cell, volume: VolumeId, before: &State, what: &str) -> ServerPartition {
    let group = cell.run(|admin| async move { admin.group("v").await }).unwrap();
    assert!(!group.entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: the entry is locked");
    let home = group.home().unwrap();
    assert_eq!(&state(cell, home, volume), before, "{what}: on {home}");
    for (id, (name, ..)) in &before.snapshots {
        let name = format!("v.{name}");
        let entry = cell.run(move |admin| async move { admin.group(&name).await }).unwrap();
        assert_eq!((entry.home(), entry.id()), (Some(home), *id), "{what}");
    }
    let mut all: Vec<_> = before.snapshots.keys().copied().chain([volume]).collect();
    all.sort();
    for place in [place(0, 0), place(0, 1), place(1, 0), place(1, 1)] {
        let mut there = cell.volumes(place);
        there.sort();
        assert_eq!(there, if place == home { all.clone() } else { Vec::new() }, "{what}: on {place}");
    }
    let wrong = cell.run(|admin| async move { admin.check(&afs_admin::CheckOptions::default()).await });
    assert_eq!(wrong.unwrap().findings, [], "{what}");
    home
}

#[test]
fn snapshots_go_with_their_volume() {
    for (to, live) in [(place(1, 0), false), (place(1, 1), true), (place(0, 1), false), (place(0, 1), true)] {
        let (cell, volume) = begin(1);
        let before = state(&cell, FROM(), volume);
        assert_eq!(before.snapshots.len(), 3);
        let moved = cell.run(move |admin| async move { admin.move_volume(options(to, live)).await }).unwrap();
        assert_eq!((moved.snapshots, moved.to), (3, to));
        assert_eq!(check(&cell, volume, &before, &format!("to {to}")), to);
        // And back to the first site.
        cell.run(|admin| async move { admin.move_volume(options(FROM(), false)).await }).unwrap();
        assert_eq!(check(&cell, volume, &before, "and back"), FROM());
    }
}

/// Data shared by snapshots is sent once over the network, and stored once at the target.
#[test]
fn data_shared_by_snapshots_is_sent_once() {
    let cell = Cell::new(2, 2);
    let volume = create(&cell);
    write(&cell, FROM(), volume, "large", &vec![7; 300_000]);
    for name in ["monday", "tuesday", "wednesday"] {
        write(&cell, FROM(), volume, "file", name.as_bytes());
        snapshot(&cell, name);
    }
    let to = place(1, 0);
    let before = cell.sim.net_stats().sent;
    cell.run(move |admin| async move { admin.move_volume(options(to, false)).await }).unwrap();
    // About 210 datagrams with data, and their acknowledgements; four times that if each were sent
    // completely.
    let sent = cell.sim.net_stats().sent - before;
    assert!(sent < 900, "{sent} datagrams");
}

#[test]
fn snapshots_may_be_lost_on_demand() {
    let (cell, volume) = begin(3);
    let mut before = state(&cell, FROM(), volume);
    let options = MoveOptions { drop_snapshots: true, ..options(place(1, 0), false) };
    cell.run(|admin| async move { admin.move_volume(options).await }).unwrap();
    before.snapshots.clear();
    assert_eq!(check(&cell, volume, &before, "without snapshots"), place(1, 0));
    assert!(cell.run(|admin| async move { admin.find_group("v.monday").await }).unwrap().is_none());
}

/// A restored volume is newer than every copy of its old content, whatever the dates of its files: a release
/// brings it to all.
#[test]
fn a_release_brings_a_restored_snapshot_to_the_copies() {
    let (cell, volume) = begin(4);
    let release = |cell: &Cell| {
        let options = afs_admin::ReleaseOptions { volume: "v".into(), ..Default::default() };
        cell.run(|admin| async move { admin.release(options).await }).unwrap()
    };
    cell.run(|admin| async move { admin.add_site("v", place(1, 0), false).await }).unwrap();
    // Changes within the margin for clocks would be released again.
    cell.sim.run_for(Duration::from_secs(5));
    release(&cell);
    let [_, copy, _] = cell.run(|admin| async move { admin.group("v").await }).unwrap().entry.ids;
    assert_eq!(content(&cell, place(1, 0), copy), content(&cell, FROM(), volume));
    assert_eq!(release(&cell).sites, [], "nothing has changed");
    cell.sim.run_for(Duration::from_secs(5));
    for name in ["tuesday", "monday"] {
        cell.run(move |admin| async move { admin.restore_snapshot("v", name).await }).unwrap();
        cell.sim.run_for(Duration::from_secs(5));
        assert_eq!(release(&cell).sites, [place(1, 0)], "{name} is a change");
        assert_eq!(content(&cell, place(1, 0), copy), content(&cell, FROM(), volume), "{name}");
    }
}

/// During a move, every transaction is attributed to it, and the entry's lock as well.
#[test]
fn transactions_of_a_move_are_known_to_be_its_own() {
    let (cell, volume) = begin(6);
    let (mover, asker) = (cell.admin(), cell.admin());
    let moving = async move { mover.move_volume(options(place(1, 0), false)).await };
    let asking = async move {
        let mut seen = 0;
        for _ in 0..40 {
            let before = asker.operations().await?;
            for server in [place(0, 0).server, place(1, 0).server] {
                let open = asker.status(server).await?;
                // What began after the first look is in the journal by now, and what has ended since was in it then.
                let after = asker.operations().await?;
                for open in open {
                    seen += 1;
                    let mut both = before.iter().chain(&after);
                    let known = both.any(|r| r.draft.word == "move" && r.works_on(open.volume));
                    assert!(known, "volume {} of {before:?}, {after:?}", open.volume);
                }
            }
            let locked =
                asker.entries(&afs_admin::EntryFilter { locked: true, ..Default::default() }).await?;
            let open = asker.operations().await?;
            // One that ended between the two queries is not seen any more.
            assert!(locked.len() <= 1 && (before.is_empty() || open.iter().all(|r| r.works_on(volume))));
        }
        Ok::<_, afs_admin::AdminError>(seen)
    };
    let both = afs_rpc::future::join(moving, asking);
    let (moved, seen) = cell.sim.block_on(cell.tool, Duration::from_secs(600), both).expect("both end");
    moved.unwrap();
    assert!(seen.unwrap() > 0, "no transaction was seen");
}

fn cell_of(victim: usize) -> String {
    let cell = Cell::new(1, 2);
    cell.sim.name(cell.victims()[victim])
}

/// A machine crashes at many events of a move; `ANDREW_SNAPSHOT_STRIDE` is the number of events between them.
fn die(victim: usize, to: ServerPartition) {
    let stride = std::env::var("ANDREW_SNAPSHOT_STRIDE").ok().and_then(|v| v.parse().ok()).unwrap_or(97usize);
    let (mut event, mut came) = (1 + victim, BTreeMap::new());
    loop {
        let (cell, volume) = begin(5);
        let before = state(&cell, FROM(), volume);
        let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (admin, ended) = (cell.admin(), done.clone());
        cell.sim.env(cell.tool).spawn(Box::pin(async move {
            let _ = admin.move_volume(options(to, false)).await;
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
        }));
        let mut events = 0;
        let _ = cell.sim.run_until(Duration::from_secs(600), || {
            events += 1;
            events >= event || done.load(std::sync::atomic::Ordering::Relaxed)
        });
        if done.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
        let node = cell.victims()[victim];
        let what = format!("{} dies at event {event}", cell.sim.name(node));
        cell.crash(node);
        cell.wait_until_quiet();
        if node == cell.tool {
            cell.sim.restart(node);
        }
        // Unfinished volumes are deleted in the background.
        cell.sim.run_for(Duration::from_secs(60));
        *came.entry(check(&cell, volume, &before, &what)).or_insert(0) += 1;
        event += stride;
    }
    // The tool waits for databases that come back, and continues.
    let ends = if cell_of(victim) == "databases" { 1 } else { 2 };
    assert_eq!(came.len(), ends, "some are undone, some completed: {came:?}");
}

#[test]
fn the_source_dies_while_snapshots_are_sent() {
    die(0, place(1, 0));
}

#[test]
fn the_target_dies_while_snapshots_are_sent() {
    die(1, place(1, 0));
}

#[test]
fn the_tool_dies_while_snapshots_are_sent() {
    die(2, place(1, 0));
}

#[test]
fn the_databases_die_while_snapshots_are_sent() {
    die(3, place(1, 0));
}

/// From one partition to the other: source and target crash together.
#[test]
fn the_server_dies_while_a_volume_goes_to_its_other_partition() {
    die(0, place(0, 1));
}

/// A volume header holds 31 characters: the volume's name, a dot, and the snapshot's.
#[test]
fn names_are_taken_up_to_the_longest_that_a_volume_can_have() {
    let cell = Cell::new(6, 1);
    for volume in ["v", "user.alice", &"v".repeat(22)] {
        let options = CreateOptions { name: volume.into(), place: FROM(), quota: 0, id: None };
        cell.run(|admin| async move { admin.create(options).await }).unwrap();
        let room = 30 - volume.len();
        let make = |len: usize| {
            let (volume, name) = (volume.to_owned(), "s".repeat(len));
            cell.run(move |admin| async move { admin.create_snapshot(&volume, &name).await })
        };
        let error = make(room + 1).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!(
                "the name has {} characters; a snapshot of {volume} has room for {room}",
                room + 1
            )),
            "{error}"
        );
        make(room).unwrap();
        let of = volume.to_owned();
        let all = cell.run(move |admin| async move { admin.snapshots(&of).await }).unwrap();
        assert_eq!(all.iter().map(|s| s.name.len()).collect::<Vec<_>>(), [room], "{volume}");
        let whole = format!("{volume}.{}", "s".repeat(room));
        let entry = cell.run(move |admin| async move { admin.group(&whole).await }).unwrap();
        assert_eq!(entry.name().len(), 31);
    }
}
