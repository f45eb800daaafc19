//! A full dump replaces a volume: whatever its state, and whatever crashes, the volume exists afterwards, old
//! or new.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_admin::{CreateOptions, DumpOptions, Overwrite, ReleaseOptions, RestoreOptions, ServerPartition};
use afs_wire::ids::{UnixSeconds, VolumeId};

use super::cell::{Cell, place};
use super::content::{Content, content, write};
use super::dumps::MemoryDump;

const AT: fn() -> ServerPartition = || place(0, 0);

/// A volume with two sites, and its dumps: a full one, and the changes since.
struct DumpedVolume {
    cell: Cell,
    volume: VolumeId,
    old: Content,
    taped: Content,
    full: MemoryDump,
    changes: MemoryDump,
}

fn begin(seed: u64) -> DumpedVolume {
    let cell = Cell::new(seed, 2);
    let options = CreateOptions { name: "v".into(), place: AT(), quota: 0, id: None };
    let volume = cell.run(|admin| async move { admin.create(options).await }).unwrap();
    let put = |name: &str, bytes: &[u8]| write(&cell, AT(), volume, name, bytes);
    put("same", b"never changed");
    put("file", b"as it was");
    put("large", &vec![7; 100_000]);
    let (taped, full) = (content(&cell, AT(), volume), tape(&cell, UnixSeconds(0)));
    cell.sim.run_for(Duration::from_secs(30));
    put("file", b"as it is");
    put("more", b"since then");
    let recently = UnixSeconds(cell.sim.env(cell.tool).wall().secs_u32() - 10);
    let (old, changes) = (content(&cell, AT(), volume), tape(&cell, recently));
    cell.run(|admin| async move { admin.add_site("v", place(1, 0), false).await }).unwrap();
    release(&cell);
    cell.sim.run_for(Duration::from_secs(30));
    DumpedVolume { cell, volume, old, taped, full, changes }
}

fn tape(cell: &Cell, since: UnixSeconds) -> MemoryDump {
    let options = DumpOptions { volume: "v".into(), since, ..DumpOptions::default() };
    cell.run(|admin| async move {
        let mut tape = MemoryDump::default();
        admin.dump(&options, &mut tape).await.map(|_| tape)
    })
    .unwrap()
}

fn release(cell: &Cell) {
    let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
    cell.run(|admin| async move { admin.release(options).await }).unwrap();
}

fn over() -> RestoreOptions {
    RestoreOptions {
        name: "v".into(),
        place: AT(),
        id: None,
        overwrite: Overwrite::Full,
        read_only: false,
        offline: false,
        creation: None,
        last_update: None,
        keep_old: false,
    }
}

fn restore(cell: &Cell, mut from: MemoryDump) -> afs_admin::AdminResult<afs_admin::Restored> {
    cell.run(|admin| async move { admin.restore(&over(), &mut from).await })
}

impl DumpedVolume {
    /// Checks that the volume is on line, with its entry unlocked, in one of two states; returns whether it
    /// is the dumped one.
    fn is_taped(&self, what: &str) -> bool {
        let found = self.cell.run(|admin| async move {
            let entries = admin.entries(&Default::default()).await?;
            admin.check(&Default::default()).await.map(|checked| (entries.len(), checked.findings))
        });
        assert_eq!(found.unwrap(), (1, Vec::new()), "{what}");
        assert!(self.cell.store(AT()).volume(self.volume).unwrap().header().online, "{what}: off line");
        let now = content(&self.cell, AT(), self.volume);
        assert!(now == self.old || now == self.taped, "{what}: a mixture: {now:?}");
        now == self.taped
    }
}

#[test]
fn a_dump_that_is_no_good_costs_nothing() {
    let scene = begin(31);
    let cut = |len: usize| MemoryDump::new(scene.full.bytes[..len].to_vec());
    let mut damaged = scene.full.clone();
    let middle = damaged.bytes.len() - 40;
    damaged.bytes[middle..].fill(0xee);
    for (bad, words) in [
        (cut(0), "ends in the middle of its head"),
        (cut(20), "ends in the middle of its head"),
        (MemoryDump::new(vec![b'x'; 5000]), "this is no volume dump"),
        (scene.changes.clone(), "incremental"),
        (cut(scene.full.bytes.len() / 2), ""),
        (cut(scene.full.bytes.len() - 3), ""),
        (damaged, ""),
    ] {
        let error = restore(&scene.cell, bad).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!scene.is_taped(&error));
    }
}

/// Nor are its copies forgotten: the content is new, and a release brings it to them, whatever its dates.
#[test]
fn a_good_one_takes_the_volumes_place_at_its_copies_too() {
    let scene = begin(32);
    let entry = |scene: &DumpedVolume| {
        scene.cell.run(|admin| async move { admin.entries(&Default::default()).await })
    };
    let before = entry(&scene).unwrap();
    let restored = restore(&scene.cell, scene.full.clone()).unwrap();
    assert_eq!((restored.volume, restored.bytes), (scene.volume, scene.full.bytes.len() as u64));
    assert!(scene.is_taped("restored"));
    assert_eq!(entry(&scene).unwrap(), before);
    release(&scene.cell);
    let copy = scene.cell.volumes(place(1, 0))[0];
    assert_eq!(content(&scene.cell, place(1, 0), copy), scene.taped);
}

/// `ANDREW_RESTORE_STRIDE` is the number of events from one crash to the next.
#[test]
fn a_crash_of_any_process_leaves_the_old_state_or_the_new_one() {
    let stride = std::env::var("ANDREW_RESTORE_STRIDE").ok().and_then(|v| v.parse().ok()).unwrap_or(61);
    let mut came = [0, 0];
    // The volume's server, the tool, the databases.
    for victim in [0, 2, 3] {
        let mut event = 1 + victim;
        while let Some(taped) = die(victim, event) {
            came[usize::from(taped)] += 1;
            event += stride;
        }
    }
    assert!(came.iter().all(|count| *count > 0), "old and new states: {came:?}");
}

/// The state after a crash at an event; `None` if the restore had ended before.
fn die(victim: usize, event: usize) -> Option<bool> {
    let scene = begin(33);
    let cell = &scene.cell;
    let done = Arc::new(AtomicBool::new(false));
    let (admin, ended, mut from) = (cell.admin(), done.clone(), scene.full.clone());
    cell.sim.env(cell.tool).spawn(Box::pin(async move {
        let _ = admin.restore(&over(), &mut from).await;
        ended.store(true, Ordering::Relaxed);
    }));
    let mut events = 0;
    let _ = cell.sim.run_until(Duration::from_secs(600), || {
        events += 1;
        events >= event || done.load(Ordering::Relaxed)
    });
    if done.load(Ordering::Relaxed) {
        return None;
    }
    let node = cell.victims()[victim];
    let what = format!("{} dies at event {event}", cell.sim.name(node));
    cell.crash(node);
    cell.wait_until_quiet();
    if node == cell.tool {
        cell.sim.restart(node);
    }
    // Transactions that no tool resumes end, and unfinished states are deleted, in the background.
    cell.sim.run_for(Duration::from_secs(700));
    Some(scene.is_taped(&what))
}
