//! Placements: stores that wait for several drives, whatever one of these does; files that go round several; what a rebuild adds.

#![allow(clippy::unwrap_used)]

use crate::support;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afs_drive::{DriveError, DriveId, LostDrive, SegmentDrive};
use afs_env::sync::Notify;
use afs_kv::{Kv, MemoryMedium};
use afs_sim::crash::{CrashDisk, CrashSegments, Rng};
use afs_volume::{
    CloneSpec, Config, Depth, NewData, Rebuild, Rebuilt, SLOT_LEN, StoreData, TABLES, Volume, VolumeError,
    VolumeStore,
};
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, VolumeId, VolumeKind, VolumeName};
use support::clock::Clock;
use support::host_drive::Host;
use support::members::check_nothing_leaks;
use support::*;

const HOSTS: [DriveId; 3] = [DriveId(3), DriveId(4), DriveId(5)];
const MIB: usize = SLOT_LEN as usize;

/// A file server whose new data go to three hosts.
struct World {
    medium: MemoryMedium,
    own: CrashDisk,
    hosts: [Host; 3],
    clock: Clock,
    wake: Arc<Notify>,
}

impl World {
    fn new() -> Self {
        let hosts = [(); 3].map(|()| Host::new());
        let (medium, own) = (MemoryMedium::new(), CrashDisk::new());
        Self { medium, own, hosts, clock: Clock::default(), wake: Arc::default() }
    }

    fn open(&self) -> (VolumeStore, Kv) {
        let env = self.clock.env();
        let limits = afs_kv::Config::default();
        let kv = Kv::open(Arc::new(self.medium.clone()), TABLES, env.clone(), limits).unwrap();
        let own = SegmentDrive::open(CrashSegments(self.own.clone()), env.clone(), 4 << 20).unwrap();
        let store = now(VolumeStore::open(kv.clone(), Arc::new(own), env, Config::default())).unwrap();
        for (id, host) in HOSTS.into_iter().zip(&self.hosts) {
            store.add_drive(id, host.drive(&self.own)).unwrap();
        }
        store.use_drives(&HOSTS).unwrap();
        store.wake_for_copies(self.wake.clone());
        (store, kv)
    }

    /// A volume with a placement.
    fn placed(&self, copies: u32, width: u32) -> (VolumeStore, Arc<Volume>) {
        let store = self.open().0;
        let volume = now(store.create_volume(spec(0))).unwrap();
        place(&volume, copies, width);
        (store, volume)
    }

    /// Whether a rebuild was asked for since the last time.
    fn was_woken(&self) -> bool {
        pin!(self.wake.notified()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// The time for which a drive that did not answer is left alone.
    fn wait(&self) {
        self.clock.advance(Duration::from_secs(61));
    }

    fn away(&self, host: usize, is_away: bool) {
        self.hosts[host].set_away(is_away);
    }
}

fn content(mebibytes: usize, seed: u8) -> Vec<u8> {
    (0..mebibytes).flat_map(|number| vec![number as u8 + seed; MIB]).collect()
}

fn file(volume: &Arc<Volume>, name: &[u8], mebibytes: usize) -> Fid {
    let file = create(volume, ROOT, name).unwrap();
    store_bytes(volume, file, 0, &content(mebibytes, 1), u64::MAX).unwrap();
    file
}

/// On which hosts each mebibyte is, by number, the one that references name first.
fn places(volume: &Arc<Volume>, fid: Fid) -> Vec<Vec<usize>> {
    let layout = volume.reads(Depth::Disk).layout(fid, 0, u64::MAX, 1000).unwrap();
    let number = |drive: DriveId| HOSTS.iter().position(|id| *id == drive).unwrap();
    let of_part = |copies: &[(afs_volume::LocatedChunk, u32)]| {
        copies.iter().map(|(at, _)| number(at.drive)).collect::<Vec<_>>()
    };
    layout.parts.iter().map(|part| of_part(&part.copies)).collect()
}

/// A complete pass.
fn rebuild(store: &VolumeStore) -> Rebuilt {
    let (mut position, mut all) = (Rebuild::default(), Rebuilt::default());
    while !all.complete {
        let done = now(store.rebuild_step(&mut position, 1)).unwrap();
        all.complete = done.complete;
        all.copies += done.copies;
        all.missing += done.missing;
    }
    all
}

/// Bytes for a file, at the drives.
fn written(volume: &Arc<Volume>, bytes: Vec<u8>) -> Result<NewData, VolumeError> {
    let mut writer = volume.write_data(0).unwrap();
    now(writer.push(bytes.into()))?;
    now(writer.finish())
}

fn commit(volume: &Arc<Volume>, fid: Fid, data: NewData) {
    let store = StoreData { fid, file_length: 0, status: SetStatus::default(), expected: None };
    update(volume, move |tx| tx.store_data(store, data, ALICE)).unwrap();
}

#[test]
fn a_store_is_on_as_many_drives_as_its_volume_says() {
    for (copies, width, expected) in [
        (0, 1, [vec![0], vec![0], vec![0], vec![0]]),
        (1, 1, [vec![0], vec![0], vec![0], vec![0]]),
        (2, 1, [vec![0, 1], vec![0, 1], vec![0, 1], vec![0, 1]]),
        (3, 1, [vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 2]]),
        (0, 2, [vec![0], vec![1], vec![0], vec![1]]),
        (1, 3, [vec![0], vec![1], vec![2], vec![0]]),
        (2, 2, [vec![0, 1], vec![1, 2], vec![0, 1], vec![1, 2]]),
        (2, 3, [vec![0, 1], vec![1, 2], vec![2, 0], vec![0, 1]]),
        (3, 2, [vec![0, 1, 2], vec![1, 2, 0], vec![0, 1, 2], vec![1, 2, 0]]),
    ] {
        let (world, what) = (World::new(), format!("{copies} copies, width {width}"));
        let (store, volume) = world.placed(copies, width);
        let one = file(&volume, b"f", 4);
        assert_eq!(places(&volume, one), expected, "{what}");
        // By the number of the mebibyte in the file, wherever a store begins.
        store_bytes(&volume, one, 3 * SLOT_LEN, &content(1, 9), u64::MAX).unwrap();
        assert_eq!(places(&volume, one), expected, "{what}");
        assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap()[..3 * MIB] == content(3, 1), "{what}");
        assert!(!world.was_woken(), "{what}");
        run_background(&store);
        let added = rebuild(&store);
        let lacking = if copies == 0 { 2 } else { 0 };
        assert_eq!((added.copies, added.missing), (4 * lacking, 0), "{what}");
        assert!(
            places(&volume, one).iter().zip(&expected).all(|(all, first)| all.starts_with(first)),
            "{what}"
        );
    }
}

#[test]
fn more_drives_than_there_are_are_not_waited_for() {
    let world = World::new();
    let (store, volume) = world.placed(3, 3);
    store.use_drives(&HOSTS[1..]).unwrap();
    let one = file(&volume, b"f", 3);
    assert_eq!(places(&volume, one), [[1, 2], [2, 1], [1, 2]]);
    store.use_drives(&HOSTS[..1]).unwrap();
    let two = file(&volume, b"g", 2);
    assert_eq!((places(&volume, two), world.was_woken()), (vec![vec![0]; 2], false));
    // What is stored gets its copies when there are drives for them.
    store.use_drives(&HOSTS).unwrap();
    assert_eq!(rebuild(&store).missing, 0);
    assert_eq!(places(&volume, one).iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(places(&volume, two), [[0, 1, 2]; 2]);
}

#[test]
fn a_store_succeeds_without_a_drive_that_is_away_and_the_rebuild_adds_what_it_lacks() {
    for away in 0..2 {
        let world = World::new();
        let (store, volume) = world.placed(2, 1);
        world.away(away, true);
        let one = file(&volume, b"f", 3);
        assert_eq!(places(&volume, one), vec![vec![1 - away]; 3], "the other one has the chunk");
        assert!(!world.was_woken(), "nothing can be made now");
        // It is left alone for a while, and then asked again.
        world.away(away, false);
        let two = file(&volume, b"g", 1);
        assert_eq!(places(&volume, two), [[1 - away]]);
        world.wait();
        let three = file(&volume, b"h", 1);
        assert_eq!(places(&volume, three), [[0, 1]]);
        // The next one of the list behind the chunk's own takes the copy.
        assert_eq!(rebuild(&store).copies, 4);
        let next = (2 - away) % 3;
        assert_eq!(places(&volume, one), vec![vec![1 - away, next]; 3]);
        let all_away = [0, 1, 2].map(|host| world.away(host, true)).len();
        assert_eq!(all_away, 3);
        let failed = written(&volume, content(1, 1)).map(drop).unwrap_err();
        assert!(matches!(failed, VolumeError::Drive(DriveError::Away { .. })), "{failed}");
    }
}

#[test]
fn a_drive_that_is_seen_back_is_used_at_once_and_gets_what_it_missed() {
    for away in 0..2 {
        let world = World::new();
        let (store, volume) = world.placed(2, 1);
        world.hosts[away].is_seen_back();
        assert!(!world.was_woken(), "nothing was missed");
        world.away(away, true);
        let one = file(&volume, b"f", 3);
        assert_eq!(places(&volume, one), vec![vec![1 - away]; 3]);
        world.hosts[away].is_seen_back();
        assert!(world.was_woken());
        let two = file(&volume, b"g", 1);
        assert_eq!(places(&volume, two), [[0, 1]]);
        assert_eq!(rebuild(&store).missing, 0);
        assert!(places(&volume, one).iter().all(|drives| drives.len() == 2));
    }
}

/// Whether a sweep of what is left on a host has ended, and how.
type Sweep = std::pin::Pin<Box<dyn Future<Output = Result<u64, VolumeError>>>>;

fn sweep_left(store: &VolumeStore, host: usize) -> Sweep {
    let store = store.clone();
    Box::pin(async move { store.sweep_left(HOSTS[host]).await.map(|swept| swept.live) })
}

fn has_ended(sweep: &mut Sweep) -> Option<u64> {
    match sweep.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(live) => Some(live.unwrap()),
        Poll::Pending => None,
    }
}

#[test]
fn a_sweep_beside_stores_waits_for_those_that_are_under_way_and_for_no_later_ones() {
    let world = World::new();
    let (store, volume) = world.placed(2, 1);
    let [one, two] = [b"f", b"g"].map(|name| create(&volume, ROOT, name).unwrap());
    let before = written(&volume, content(2, 1)).unwrap();
    let given_up = written(&volume, content(1, 5)).unwrap();
    let (mut sweep, mut other) = (sweep_left(&store, 0), sweep_left(&store, 1));
    assert_eq!((has_ended(&mut sweep), has_ended(&mut other)), (None, None));
    let later = written(&volume, content(3, 2)).unwrap();
    commit(&volume, one, before);
    assert_eq!((has_ended(&mut sweep), has_ended(&mut other)), (None, None));
    drop(given_up);
    assert_eq!((has_ended(&mut sweep), has_ended(&mut other)), (Some(2), Some(2)));
    commit(&volume, two, later);
    for (fid, bytes) in [(one, content(2, 1)), (two, content(3, 2))] {
        assert!(read_bytes(&volume, fid, 0, u64::MAX).unwrap() == bytes);
    }
    for lost in 0..2 {
        world.away(lost, true);
        assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap() == content(2, 1), "{lost}");
        world.away(lost, false);
    }
    // What a sweep waits for keeps its drive.
    world.wait();
    let under_way = written(&volume, content(1, 3)).unwrap();
    let mut sweep = sweep_left(&store, 1);
    assert_eq!(has_ended(&mut sweep), None);
    store.use_drives(&[DriveId::OWN]).unwrap();
    for fid in [one, two] {
        let short = StoreData { fid, file_length: 0, status: SetStatus::default(), expected: None };
        let nothing = written(&volume, Vec::new()).unwrap();
        update(&volume, move |tx| tx.store_data(short, nothing, ALICE).map(drop)).unwrap();
    }
    run_background(&store);
    assert!(!store.has_chunks_on(HOSTS[1]).unwrap());
    assert!(matches!(store.remove_drive(HOSTS[1]), Err(VolumeError::Busy)));
    drop(under_way);
    assert_eq!(has_ended(&mut sweep), Some(0));
    store.remove_drive(HOSTS[1]).unwrap();
    now(store.sweep_left(DriveId::OWN)).unwrap();
    let unknown = now(store.sweep_left(DriveId(77)));
    assert!(matches!(unknown, Err(VolumeError::UnknownDrive { drive: DriveId(77) })));
}

#[test]
fn a_drive_that_is_full_or_fails_a_flush_is_left_out() {
    for host in 0..2 {
        let world = World::new();
        let (store, volume) = world.placed(2, 1);
        let first = file(&volume, b"before", 1);
        assert_eq!(places(&volume, first), [[0, 1]]);
        world.hosts[host].disk().set_capacity(Some(1));
        let one = file(&volume, b"f", 2);
        assert_eq!(places(&volume, one), vec![vec![1 - host]; 2]);
        assert!(!world.was_woken(), "it is full");
        world.hosts[host].disk().set_capacity(None);
        world.hosts[host].disk().set_failing_syncs(true);
        let two = file(&volume, b"g", 2);
        assert_eq!(places(&volume, two), vec![vec![1 - host]; 2]);
        assert!(world.was_woken());
        world.hosts[host].disk().set_failing_syncs(false);
        world.hosts[host].crash(&mut Rng(1));
        assert_eq!(rebuild(&store).missing, 0);
        assert!(read_bytes(&volume, two, 0, u64::MAX).unwrap() == content(2, 1));
    }
}

#[test]
fn a_drive_that_was_started_again_before_the_flush_has_no_part_in_the_store() {
    for host in 0..2 {
        let world = World::new();
        let (store, volume) = world.placed(2, 1);
        let one = create(&volume, ROOT, b"f").unwrap();
        let mut writer = volume.write_data(0).unwrap();
        now(writer.push(content(4, 1).into())).unwrap();
        world.hosts[host].crash(&mut Rng(2));
        let data = now(writer.finish()).unwrap();
        commit(&volume, one, data);
        assert_eq!(places(&volume, one), vec![vec![1 - host]; 4]);
        assert!(world.was_woken(), "it is there again");
        assert_eq!(rebuild(&store).copies, 4);
        // Both: what neither has is no file's.
        let mut writer = volume.write_data(0).unwrap();
        now(writer.push(content(4, 5).into())).unwrap();
        world.hosts[0].crash(&mut Rng(3));
        world.hosts[1].crash(&mut Rng(4));
        let lost = now(writer.finish()).map(drop);
        assert!(matches!(lost, Err(VolumeError::Busy)), "the client stores again: {lost:?}");
        assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap() == content(4, 1));
    }
}

#[test]
fn a_store_waits_for_a_drive_that_is_late_but_not_without_end() {
    let world = World::new();
    let (_store, volume) = world.placed(2, 1);
    let one = create(&volume, ROOT, b"f").unwrap();
    for (host, answers) in [(0, true), (1, true), (0, false), (1, false)] {
        world.wait();
        world.hosts[host].set_late(true);
        let mut writer = volume.write_data(0).unwrap();
        now(writer.push(content(2, 3).into())).unwrap();
        let mut finish = pin!(writer.finish());
        let mut poll = || finish.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        world.clock.advance(Duration::from_secs(59));
        assert!(poll().is_pending(), "host {host}: one drive alone is not enough");
        if answers {
            world.hosts[host].set_late(false);
        } else {
            assert!(poll().is_pending());
            world.clock.advance(Duration::from_secs(60));
        }
        let Poll::Ready(Ok(data)) = poll() else { panic!("host {host} answers: {answers}") };
        commit(&volume, one, data);
        let expected = if answers { vec![0, 1] } else { vec![1 - host] };
        assert_eq!(places(&volume, one), vec![expected; 2]);
        world.hosts[host].set_late(false);
    }
    // What is on one drive alone is waited for as long as that one waits.
    place(&volume, 1, 2);
    world.hosts[1].set_late(true);
    world.wait();
    let mut writer = volume.write_data(0).unwrap();
    now(writer.push(content(2, 3).into())).unwrap();
    let mut finish = pin!(writer.finish());
    let mut poll = || finish.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    world.wait();
    assert!(poll().is_pending());
    world.hosts[1].set_late(false);
    assert!(matches!(poll(), Poll::Ready(Ok(_))));
}

#[test]
fn a_width_without_copies_needs_each_of_its_drives() {
    let world = World::new();
    let (_store, volume) = world.placed(1, 2);
    let one = file(&volume, b"f", 2);
    world.away(1, true);
    let failed = written(&volume, content(2, 1)).map(drop).unwrap_err();
    assert!(matches!(failed, VolumeError::Drive(DriveError::Away { .. })), "{failed}");
    assert!(written(&volume, content(1, 1)).is_ok(), "the first mebibyte is on the other drive");
    assert!(read_bytes(&volume, one, 0, SLOT_LEN).unwrap() == content(1, 1));
    assert!(read_bytes(&volume, one, SLOT_LEN, SLOT_LEN).is_err());
}

#[test]
fn compaction_and_restores_place_data_as_stores_do() {
    let world = World::new();
    let (store, volume) = world.placed(2, 3);
    let one = file(&volume, b"f", 3);
    // So many short pieces in the third mebibyte that it is written anew.
    for number in 0..30 {
        let at = 2 * SLOT_LEN + number * 20_000;
        store_bytes(&volume, one, at, &[7; 600], u64::MAX).unwrap();
    }
    run_background(&store);
    assert_eq!(places(&volume, one), [[0, 1], [1, 2], [2, 0]]);
    assert_eq!(rebuild(&store).copies, 0);
    let before = read_bytes(&volume, one, 0, u64::MAX).unwrap();
    let mut restore = now(volume.begin_restore(true)).unwrap();
    for record in support::members::records(&volume) {
        support::members::put(&mut restore, &volume, &record).unwrap();
    }
    now(restore.commit(afs_volume::RestoredHeader::default())).unwrap();
    run_background(&store);
    assert_eq!(places(&volume, one), [[0, 1], [1, 2], [2, 0]]);
    assert_eq!(rebuild(&store).copies, 0);
    assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap() == before);
}

#[test]
fn what_clones_share_has_the_placement_of_their_volume_and_goes_with_its_copies() {
    let world = World::new();
    let (store, kv) = world.open();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let one = file(&volume, b"f", 2);
    let name = VolumeName::new("clone").unwrap();
    let spec = CloneSpec { id: VolumeId(7), name, kind: VolumeKind::ReadOnly, snapshot: false };
    let clone = now(store.clone_volume(VOLUME, spec)).unwrap();
    // The clone has the default: copies on all drives.
    place(&volume, 1, 1);
    assert_eq!(rebuild(&store).copies, 0);
    place(&volume, 2, 1);
    assert_eq!(rebuild(&store).copies, 2);
    let two = file(&volume, b"g", 2);
    assert_eq!(places(&volume, two), [[0, 1]; 2]);
    now(volume.update(move |tx| tx.remove_file(ROOT, b"f", ADMIN).map(drop))).unwrap();
    run_background(&store);
    world.away(0, true);
    assert!(read_bytes(&clone, Fid { volume: VolumeId(7), ..one }, 0, u64::MAX).unwrap() == content(2, 1));
    world.away(0, false);
    drop((volume, clone));
    check_nothing_leaks(&store, &kv);
    for drive in HOSTS {
        assert_eq!(now(store.sweep_drive(drive)).unwrap().live, 0);
        assert_eq!(store.contents_of_drive(drive).unwrap().chunks, 0);
    }
}

#[test]
fn data_that_become_no_files_leave_nothing_on_any_drive() {
    let world = World::new();
    let (_store, volume) = world.placed(3, 2);
    let used = || HOSTS.len() as u64 * world.hosts.iter().map(|host| allocated(&host.disk())).sum::<u64>();
    let before = used();
    drop(written(&volume, content(3, 1)).unwrap());
    let mut writer = volume.write_data(0).unwrap();
    now(writer.push(content(4, 1).into())).unwrap();
    drop(writer);
    assert_eq!(used(), before);
}

/// Bytes of a disk that are not zeros.
fn allocated(disk: &CrashDisk) -> u64 {
    let of_file = |name: &String| {
        let mut bytes = vec![0; disk.len(name).unwrap() as usize];
        disk.read_at(name, 0, &mut bytes).unwrap();
        bytes.iter().filter(|byte| **byte != 0).count() as u64
    };
    disk.names().iter().map(of_file).sum()
}

#[test]
fn after_the_loss_of_any_drive_what_was_stored_with_two_copies_is_read() {
    let world = World::new();
    let (store, volume) = world.placed(2, 3);
    let one = file(&volume, b"f", 6);
    for (lost, seed) in (0..3).flat_map(|lost| (0..8).map(move |seed| (lost, seed))) {
        // The power of all hosts fails, and one of them does not come back.
        let hosts = world.hosts.each_ref().map(|host| host.image(&mut Rng(seed)));
        for (number, host) in hosts.iter().enumerate() {
            let drive = if number == lost { Arc::new(LostDrive) } else { host.drive(&world.own) };
            store.use_drives(&[DriveId::OWN]).unwrap();
            store.replace_drive(HOSTS[number], drive).unwrap();
        }
        assert!(read_bytes(&volume, one, 0, u64::MAX).unwrap() == content(6, 1), "without host {lost}");
    }
}
