//! Volumes that are created, restored, removed: afterwards volume and entry exist, or neither.

use afs_admin::{CreateOptions, DumpSource, Overwrite, RemoveOptions, RestoreOptions};
use afs_rpc::BoxFuture;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;
use bytes::Bytes;

use crate::interrupted::instants::{self, SECONDS, StartedOperation, every_instant, place};
use crate::interrupted::world::{Implementation, World, address, head, home, row};

/// Id of the volume: given, so that it is known whatever happens.
const VOLUME: VolumeId = VolumeId(4711);
/// Numbers in the dump.
const NUMBERS: u64 = 300;

fn creating(seed: u64) -> StartedOperation {
    let world = World::new(seed, 1, Implementation::OpenAfs);
    world.sim.run_for(SECONDS(1));
    let options = CreateOptions { name: "v".into(), place: place(0), quota: 0, id: Some(VOLUME) };
    let check = |world: &World, what: &str| check(world, 0, what);
    StartedOperation::new(world, |admin| async move { admin.create(options).await.map(drop) }, check)
}

fn restoring(seed: u64) -> StartedOperation {
    let world = World::new(seed, 1, Implementation::OpenAfs);
    world.sim.run_for(SECONDS(1));
    let work = |admin: afs_admin::Admin| async move {
        let options = RestoreOptions {
            name: "v".into(),
            place: place(0),
            id: Some(VOLUME),
            overwrite: Overwrite::Refuse,
            read_only: false,
            offline: false,
            creation: None,
            last_update: None,
            keep_old: false,
        };
        admin.restore(&options, &mut Rows(0)).await.map(drop)
    };
    StartedOperation::new(world, work, |world, what| check(world, usize::try_from(NUMBERS).unwrap(), what))
}

/// A volume with its backup volume is removed.
fn removing(seed: u64) -> StartedOperation {
    let world = World::new(seed, 1, Implementation::OpenAfs);
    let options = CreateOptions { name: "v".into(), place: place(0), quota: 0, id: Some(VOLUME) };
    world.run(|admin| async move { admin.create(options).await });
    world.run(|admin| async move { admin.backup("v").await });
    let options = RemoveOptions { volume: "v".into(), ..RemoveOptions::default() };
    let check = |world: &World, what: &str| check(world, 0, what);
    StartedOperation::new(world, |admin| async move { admin.remove(options).await.map(drop) }, check)
}

fn check(world: &World, numbers: usize, what: &str) {
    let disk = world.disk(0);
    let Some(entry) = world.find_entry(VOLUME) else {
        assert!(disk.is_empty(), "{what}: a volume without an entry: {disk:?}");
        return;
    };
    assert!(!entry.flags.intersects(EntryFlags::LOCK_OPERATIONS), "{what}: the entry is locked");
    assert_eq!(home(&entry), Some(address(2)), "{what}");
    let held = disk.get(&VOLUME).unwrap_or_else(|| panic!("{what}: an entry without a volume"));
    disk.values().for_each(|held| instants::assert_whole(held, what));
    assert_eq!(held.numbers.len(), numbers, "{what}: a part of the volume");
    let backup = entry.flags.contains(EntryFlags::BACK_EXISTS);
    assert_eq!(disk.contains_key(&entry.id(VolumeKind::Backup)), backup, "{what}: the backup volume");
}

/// A dump whose rows come one at a time.
struct Rows(u64);

impl DumpSource for Rows {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>> {
        let date = UnixSeconds(7);
        let piece = match self.0 {
            0 => Some(head(date, date)),
            number if number <= NUMBERS => Some(row(NUMBERS - number, date)),
            _ => None,
        };
        self.0 += 1;
        Box::pin(std::future::ready(Ok(piece)))
    }

    fn size(&self) -> Option<u64> {
        None
    }
}

/// Each machine in turn: server, tool, databases.
fn all_die(scene: fn(u64) -> StartedOperation) {
    (0..3).for_each(|victim| every_instant(scene, victim));
}

#[test]
fn a_process_dies_at_every_instant_of_a_creation() {
    all_die(creating);
}

#[test]
fn a_process_dies_at_every_instant_of_a_restore() {
    all_die(restoring);
}

#[test]
fn a_process_dies_at_every_instant_of_a_removal() {
    all_die(removing);
}
