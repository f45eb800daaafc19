//! Dumps and restores of volumes: round trips, increments, damaged and truncated dumps.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_env::Parts;
use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, CrashSegments, Rng};
use afs_volume::dump::{DumpOptions, VolumeDump, dump_len};
use afs_volume::restore::{RestoreAs, RestoreError, RestoreStream, Restored};
use afs_volume::{CloneSpec, Config, Rename, Replacing, TABLES, Volume, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::dump::{DumpHeader, DumpReader, DumpWriter, Event, VnodeFields, VolumeFields};
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{
    Fid, Mode, Rights, Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId, VolumeKind, VolumeName,
};
use bytes::Bytes;
use support::*;

const COPY: VolumeId = VolumeId(536_871_000);

/// A store with access to its tables.
struct World {
    kv: Kv,
    store: VolumeStore,
}

impl World {
    fn new() -> Self {
        let limits = afs_kv::Config { cache_bytes: 4 << 20, ..afs_kv::Config::default() };
        let kv = Kv::open(Arc::new(CrashDisk::new()), TABLES, Parts::inline(), limits).unwrap();
        let segments = CrashSegments(CrashDisk::new());
        let drive = afs_drive::SegmentDrive::open(segments, Parts::inline(), 8 << 20).unwrap();
        let store =
            now(VolumeStore::open(kv.clone(), Arc::new(drive), ticking(), Config::default())).unwrap();
        Self { kv, store }
    }

    fn volume(&self) -> Arc<Volume> {
        let volume = now(self.store.create_volume(spec(0))).unwrap();
        kinds::place_data(&self.store, &volume);
        volume
    }

    /// An empty volume without a root directory, as for a restore.
    fn empty(&self, id: VolumeId) -> Arc<Volume> {
        let name = VolumeName::new(&format!("copy.{}", id.0)).unwrap();
        let spec = VolumeSpec { id, name, root: None, ..spec(0) };
        now(self.store.create_volume(spec)).unwrap()
    }

    /// All rows, after the background work is done; without the next ids of groups and epochs, which are
    /// never reused.
    fn tables(&self) -> Vec<(String, Bytes, Bytes)> {
        run_background(&self.store);
        let snapshot = self.kv.snapshot();
        let mut rows = Vec::new();
        for table in TABLES.iter().filter(|table| **table != "volume.meta") {
            let counter = if *table == "volume.groups" { 4 } else { 0 };
            for row in snapshot.range(table, .., false) {
                let (key, value) = row.unwrap();
                rows.push(((*table).to_owned(), key, value.slice(counter..)));
            }
        }
        rows
    }
}

fn full() -> DumpOptions {
    DumpOptions { since: UnixSeconds(0), all_directories: false }
}

fn since(time: UnixSeconds, all_directories: bool) -> DumpOptions {
    DumpOptions { since: time, all_directories }
}

fn dump(volume: &Arc<Volume>, options: DumpOptions) -> Vec<u8> {
    let mut stream = VolumeDump::new(volume.clone(), options);
    let mut bytes = Vec::new();
    while let Some(part) = now(stream.next()).unwrap() {
        assert!(!part.is_empty() && part.len() <= 1 << 20);
        bytes.extend_from_slice(&part);
    }
    if options.all_directories || options.since.0 == 0 {
        assert_eq!(dump_len(volume, options.since).unwrap(), bytes.len() as u64);
    }
    bytes
}

fn as_itself(volume: &Arc<Volume>) -> RestoreAs {
    let header = volume.header();
    RestoreAs {
        name: header.name.clone(),
        kind: header.kind,
        parent: header.parent,
        clone: header.read_only,
        keep_usage: true,
        keep_service: false,
    }
}

fn restore(volume: &Arc<Volume>, dump: &[u8], piece_len: usize) -> Result<Restored, RestoreError> {
    let mut stream = RestoreStream::new(volume.clone(), as_itself(volume));
    for piece in dump.chunks(piece_len) {
        now(stream.push(Bytes::copy_from_slice(piece)))?;
    }
    now(stream.finish())
}

/// Checks that the rows are equal.
fn assert_unchanged(world: &World, before: &[(String, Bytes, Bytes)], when: &str) {
    let after = world.tables();
    let gone: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
    let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
    assert!(gone.is_empty() && new.is_empty(), "{when}: gone {gone:?}, new {new:?}");
}

/// The part after the headers.
fn vnodes(dump: &[u8]) -> &[u8] {
    let mut reader = DumpReader::default();
    // A byte at a time, so that the offset is that of the event.
    for byte in dump.chunks(1) {
        let mut piece = byte;
        while let Some(event) = reader.next(&mut piece).unwrap() {
            if matches!(event, Event::Volume(_)) {
                return &dump[reader.offset() as usize - 1..];
            }
        }
    }
    panic!("no vnodes");
}

fn headers(dump: &[u8]) -> (DumpHeader, VolumeFields) {
    let (mut reader, mut rest, mut first) = (DumpReader::default(), dump, None);
    while let Some(event) = reader.next(&mut rest).unwrap() {
        match event {
            Event::Dump(header) => first = Some(header),
            Event::Volume(fields) => return (first.unwrap(), *fields),
            _ => {}
        }
    }
    panic!("no headers");
}

/// Creates some of everything.
fn fill(volume: &Arc<Volume>) {
    let sub = make_dir(volume, ROOT, b"sub").unwrap();
    let deep = make_dir(volume, sub, b"deep").unwrap();
    create(volume, ROOT, b"empty").unwrap();
    let small = create(volume, ROOT, b"small").unwrap();
    store_bytes(volume, small, 0, b"hello", 5).unwrap();
    let middle = create(volume, sub, b"middle").unwrap();
    store_bytes(volume, middle, 0, &[7; 40_000], 40_000).unwrap();
    let large = create(volume, sub, b"large").unwrap();
    store_bytes(volume, large, 2 << 20, &[9; 1_500_000], u64::MAX).unwrap();
    for number in 0..300 {
        create(volume, deep, format!("a name of some length, number {number}").as_bytes()).unwrap();
    }
    let link = |name: &'static [u8], text: &'static [u8], mode: u32| {
        let set = SetStatus { mode: Some(Mode(mode)), group: Some(100), ..SetStatus::default() };
        update(volume, move |tx| tx.symlink(sub, name, text, &set, ALICE).map(drop)).unwrap();
    };
    link(b"link", b"../small", 0o755);
    link(b"mount", b"#root.cell.", 0o644);
    update(volume, move |tx| {
        tx.link(ROOT, b"small2", small, ALICE)?;
        let acl =
            Acl::new(vec![(ViceId::ANYUSER, Rights::READ)], vec![(ViceId(-300), Rights::WRITE)]).unwrap();
        tx.set_acl(sub, acl)?;
        tx.remove_file(deep, b"a name of some length, number 7", ALICE).map(drop)
    })
    .unwrap();
}

#[test]
fn a_dump_of_what_was_restored_is_the_same_dump() {
    let world = World::new();
    let volume = world.volume();
    fill(&volume);
    now(volume.edit(|tx| {
        let header = tx.edit_header();
        (header.max_quota, header.offline_message) = (12_345, "back at noon".into());
        header.backup_date = UnixSeconds(77);
        Ok(())
    }))
    .unwrap();
    let first = dump(&volume, full());
    for (number, piece_len) in [1, 7, 1000, 1 << 20].into_iter().enumerate() {
        let copy = world.empty(VolumeId(COPY.0 + number as u32));
        let restored = restore(&copy, &first, piece_len).unwrap();
        assert_eq!((restored.bytes, restored.unchanged), (first.len() as u64, 0));
        let again = dump(&copy, full());
        assert!(vnodes(&first) == vnodes(&again), "pieces of {piece_len}");
        let ((_, was), (_, is)) = (headers(&first), headers(&again));
        let same = VolumeFields { volume: was.volume, name: was.name.clone(), parent: was.parent, ..is };
        assert_eq!(same, was);
        let (was, is) = (volume.header(), copy.header());
        assert_eq!((is.blocks_used, is.file_count), (was.blocks_used, was.file_count));
    }
}

#[test]
fn incremental_dumps_follow_one_another() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    fill(&volume);
    let mut last = volume.header().update_date;
    restore(&copy, &dump(&volume, full()), 5000).unwrap();
    for round in 0..4u32 {
        let name = format!("new {round}").into_bytes();
        let made = create(&volume, ROOT, &name).unwrap();
        store_bytes(&volume, made, 0, &[round as u8; 30_000], 30_000).unwrap();
        update(&volume, move |tx| {
            if round == 1 {
                tx.remove_file(ROOT, b"empty", ALICE)?;
                tx.remove_file(ROOT, b"small2", ALICE)?;
            }
            if round == 3 {
                tx.remove_file(ROOT, b"new 2", ALICE)?;
            }
            Ok(())
        })
        .unwrap();
        let update = dump(&volume, since(last, round % 2 == 1));
        last = volume.header().update_date;
        let restored = restore(&copy, &update, 5000).unwrap();
        assert!(restored.unchanged > 200 && restored.vnodes < 10, "{restored:?}");
        assert!(vnodes(&dump(&volume, full())) == vnodes(&dump(&copy, full())), "round {round}");
        assert_eq!(volume.header().blocks_used, copy.header().blocks_used);
        assert_eq!(volume.header().file_count, copy.header().file_count);
    }
    // New objects of a restored volume must not collide with those of the dumps.
    let made =
        update(&copy, |tx| tx.create_file(Fid::root(COPY), b"mine", &SetStatus::default(), ALICE)).unwrap();
    assert!(made.object.unique.0 >= headers(&dump(&volume, full())).1.next_unique);
}

/// Not only the directories: a reader of the dump may rely on the file's own record of its directory.
#[test]
fn an_incremental_dump_has_files_that_were_moved() {
    let world = World::new();
    let volume = world.volume();
    let (folder, file) = (make_dir(&volume, ROOT, b"d").unwrap(), create(&volume, ROOT, b"f").unwrap());
    let after = UnixSeconds(volume.header().update_date.0 + 1);
    update(&volume, move |tx| {
        let rename = Rename { old_directory: ROOT, old_name: b"f", new_directory: folder, new_name: b"f" };
        tx.rename(rename, Replacing::Allowed, ALICE).map(drop)
    })
    .unwrap();
    let part = dump(&volume, since(after, false));
    let record = [&[3][..], &file.vnode.0.to_be_bytes(), &file.unique.0.to_be_bytes()].concat();
    let at = part.windows(record.len()).position(|bytes| bytes == record).unwrap();
    assert_eq!(part[at + record.len()], b't', "it is bare");
}

#[test]
fn an_incremental_dump_of_another_state_is_refused() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    let first = dump(&volume, full());
    create(&volume, ROOT, b"a").unwrap();
    let between = volume.header().update_date;
    create(&volume, ROOT, b"b").unwrap();
    restore(&copy, &first, 1000).unwrap();
    let before = world.tables();
    // The copy lacks `a`, which this dump expects.
    let error = restore(&copy, &dump(&volume, since(UnixSeconds(between.0 + 1), false)), 1000).unwrap_err();
    assert!(error.to_string().contains("unchanged"), "{error}");
    assert_unchanged(&world, &before, "after all");
}

/// A few vnodes, so that every byte of the dump can be tried.
fn few(volume: &Arc<Volume>) {
    let file = create(volume, ROOT, b"file").unwrap();
    store_bytes(volume, file, 0, b"some bytes", 10).unwrap();
    let set = SetStatus::default();
    update(volume, move |tx| tx.symlink(ROOT, b"link", b"file", &set, ALICE).map(drop)).unwrap();
}

#[test]
fn a_cut_dump_changes_nothing_wherever_it_is_cut() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    few(&volume);
    let whole = dump(&volume, full());
    restore(&copy, &whole, 1 << 20).unwrap();
    create(&copy, Fid::root(COPY), b"of its own").unwrap();
    let before = world.tables();
    for len in 0..whole.len() {
        let error = restore(&copy, &whole[..len], 1 << 20).unwrap_err();
        assert!(matches!(&error, RestoreError::Dump(at) if at.offset == len as u64), "{len}: {error}");
        if len % 97 == 0 {
            assert_unchanged(&world, &before, &format!("cut to {len} bytes"));
        }
    }
    assert_unchanged(&world, &before, "after all");
}

#[test]
fn a_damaged_dump_is_refused_without_a_trace_or_is_another_dump() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    few(&volume);
    let whole = dump(&volume, full());
    restore(&copy, &whole, 1 << 20).unwrap();
    let (mut rng, mut refused) = (Rng(5), 0);
    // Most of a directory is free slots, of which a few are enough.
    let page = whole.len() - 2200..whole.len() - 300;
    for at in (0..whole.len()).filter(|at| !page.contains(at) || at % 61 == 0) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << rng.below(8);
        let before = world.tables();
        if restore(&copy, &damaged, 700).is_err() {
            assert_unchanged(&world, &before, &format!("byte {at}"));
            refused += 1;
        }
    }
    // The others are dates, numbers and rights with any value valid.
    assert!(refused > 100, "{refused} of {}", whole.len());
    restore(&copy, &whole, 1 << 20).unwrap();
    assert!(vnodes(&dump(&copy, full())) == vnodes(&whole));
}

#[test]
fn bytes_after_the_end_are_refused() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    let mut whole = dump(&volume, full());
    let before = world.tables();
    whole.push(b'\n');
    assert!(matches!(restore(&copy, &whole, 1 << 20), Err(RestoreError::Dump(_))));
    assert_unchanged(&world, &before, "after all");
}

#[test]
fn a_stream_that_is_dropped_leaves_nothing() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    fill(&volume);
    let whole = dump(&volume, full());
    let before = world.tables();
    for len in [100, 5000, whole.len() / 2, whole.len()] {
        let mut stream = RestoreStream::new(copy.clone(), as_itself(&copy));
        now(stream.push(Bytes::copy_from_slice(&whole[..len]))).unwrap();
        drop(stream);
        assert_unchanged(&world, &before, &format!("{len} bytes"));
    }
}

/// A dump of a root directory and whatever `change` adds.
fn made(change: impl FnOnce(&mut DumpWriter)) -> Vec<u8> {
    let world = World::new();
    let volume = world.volume();
    let root = dump(&volume, full());
    let mut writer = DumpWriter::default();
    writer.data(&root[..root.len() - 5]);
    change(&mut writer);
    writer.end();
    writer.take()
}

fn refusal(dump: &[u8]) -> String {
    let world = World::new();
    let copy = world.empty(COPY);
    let before = world.tables();
    let error = restore(&copy, dump, 1 << 20).unwrap_err();
    assert_unchanged(&world, &before, "after all");
    error.to_string()
}

#[test]
fn vnodes_that_cannot_be_are_refused() {
    let vnode = |number: u32, kind: FileKind, data: &'static [u8]| {
        made(move |writer| {
            let fields = VnodeFields { kind, parent: VnodeId(1), ..VnodeFields::default() };
            writer.vnode(VnodeId(number), Uniquifier(9), &fields, data.len() as u64);
            writer.data(data);
        })
    };
    for (dump, said) in [
        (vnode(0, FileKind::File, b""), "no vnode 0"),
        (vnode(2, FileKind::Directory, b""), "its number is even"),
        (vnode(3, FileKind::File, b""), "its number is odd"),
        (vnode(2, FileKind::Invalid, b""), "does not say what it is"),
        (vnode(3, FileKind::Directory, b""), "a directory cannot be 0 bytes long"),
        (vnode(3, FileKind::Directory, &[0; 2048]), "the directory is damaged"),
        (made(|writer| writer.bare_vnode(VnodeId(2), Uniquifier(2))), "the volume does not have it"),
    ] {
        let refusal = refusal(&dump);
        assert!(refusal.contains(said), "{refusal:?} should say {said:?}");
    }
    let mut writer = DumpWriter::default();
    let dump = made(|_| {});
    writer.data(&dump[..dump.len() - vnodes(&dump).len()]);
    writer.end();
    assert!(refusal(&writer.take()).contains("root directory"));
}

#[test]
fn a_damaged_directory_is_refused() {
    let world = World::new();
    let volume = world.volume();
    create(&volume, ROOT, b"a file with a name").unwrap();
    let whole = dump(&volume, full());
    let at = whole.windows(18).position(|window| window == b"a file with a name").unwrap();
    let mut damaged = whole;
    damaged[at + 3] ^= 1;
    let refusal = refusal(&damaged);
    assert!(refusal.contains("wrong hash chain"), "{refusal}");
}

#[test]
fn a_later_part_of_a_dump_replaces_what_an_earlier_one_brought() {
    let fields = |data_version| VnodeFields {
        kind: FileKind::File,
        link_count: 1,
        data_version,
        parent: VnodeId(1),
        ..VnodeFields::default()
    };
    let merged = made(|writer| {
        writer.vnode(VnodeId(2), Uniquifier(9), &fields(1), 5);
        writer.data(b"older");
        writer.volume(&VolumeFields { max_quota: 99, next_unique: 50, ..VolumeFields::default() });
        writer.vnode(VnodeId(2), Uniquifier(9), &fields(2), 6);
        writer.data(b"newer!");
    });
    let world = World::new();
    let copy = world.empty(COPY);
    restore(&copy, &merged, 100).unwrap();
    let fid = Fid::new(COPY, VnodeId(2), Uniquifier(9));
    assert_eq!(read_bytes(&copy, fid, 0, u64::MAX).unwrap(), b"newer!");
    assert_eq!((copy.header().max_quota, copy.header().file_count), (99, 2));
}

/// A full dump followed by an incremental one, as tools merge them: unchanged vnodes have no data in the
/// second part.
#[test]
fn a_merged_dump_has_what_its_first_part_brought() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    let (old, changed) = (create(&volume, ROOT, b"old").unwrap(), create(&volume, ROOT, b"changed").unwrap());
    for file in [old, changed] {
        store_bytes(&volume, file, 0, b"before", 6).unwrap();
    }
    let first = dump(&volume, full());
    let after = UnixSeconds(volume.header().update_date.0 + 1);
    store_bytes(&volume, changed, 0, b"after!", 6).unwrap();
    let (whole, second) = (dump(&volume, full()), dump(&volume, since(after, false)));
    let merged = |second: &[u8]| [&first[..first.len() - 5], behind_dump_header(second)].concat();
    let report = restore(&copy, &merged(&second), 100).unwrap();
    assert_eq!((report.vnodes, report.unchanged), (4, 2));
    assert!(vnodes(&dump(&copy, full())) == vnodes(&whole));
    // The same number with another uniquifier.
    let mut other = second;
    let at = other.windows(5).rposition(|bytes| bytes == [3, 0, 0, 0, 2]).unwrap();
    other[at + 8] ^= 1;
    let error = restore(&copy, &merged(&other), 100).unwrap_err();
    assert!(error.to_string().contains("unchanged"), "{error}");
}

/// The part from the volume's header on.
fn behind_dump_header(dump: &[u8]) -> &[u8] {
    let at = dump.windows(2).position(|bytes| bytes == [2, b'i']).unwrap();
    &dump[at..]
}

#[test]
fn a_restore_in_place_never_shows_a_version_again_with_other_data() {
    let world = World::new();
    let volume = world.volume();
    let file = create(&volume, ROOT, b"file").unwrap();
    store_bytes(&volume, file, 0, b"first", 5).unwrap();
    let early = dump(&volume, full());
    store_bytes(&volume, file, 0, b"second", 6).unwrap();
    let second = volume.fetch(file).unwrap().data_version;
    restore(&volume, &early, 100).unwrap();
    let restored = volume.fetch(file).unwrap();
    assert!(restored.data_version > second);
    assert_eq!(read_bytes(&volume, file, 0, u64::MAX).unwrap(), b"first");
    assert!(vnodes(&dump(&volume, full())) == vnodes(&early), "the lower half is the dump's");
    restore(&volume, &early, 100).unwrap();
    assert_eq!(volume.fetch(file).unwrap().data_version, restored.data_version, "the same again");
}

#[test]
fn the_header_becomes_what_cookie_and_dump_say() {
    let world = World::new();
    let volume = world.volume();
    now(volume.edit(|tx| {
        let header = tx.edit_header();
        header.max_quota = 555;
        header.creation_date = UnixSeconds(11);
        header.update_date = UnixSeconds(12);
        header.backup_date = UnixSeconds(13);
        header.access_date = UnixSeconds(14);
        header.expiration_date = UnixSeconds(15);
        header.owner = ViceId(7);
        header.day_use = 16;
        header.online = false;
        header.offline_message = "A volume utility is running.".into();
        Ok(())
    }))
    .unwrap();
    let bytes = dump(&volume, full());
    let copy = world.empty(COPY);
    let made_here = copy.header();
    let into = RestoreAs {
        name: VolumeName::new("other.name.readonly").unwrap(),
        kind: VolumeKind::ReadOnly,
        parent: VolumeId(5),
        clone: VolumeId(6),
        keep_usage: false,
        keep_service: false,
    };
    let mut stream = RestoreStream::new(copy.clone(), into);
    now(stream.push(bytes.into())).unwrap();
    now(stream.finish()).unwrap();
    let header = copy.header();
    assert_eq!((header.id, header.name.as_str()), (COPY, "other.name.readonly"));
    assert_eq!((header.kind, header.read_only), (VolumeKind::ReadOnly, VolumeId(6)));
    assert_eq!((header.max_quota, header.owner), (555, ViceId(7)));
    let dates = [
        header.creation_date,
        header.update_date,
        header.backup_date,
        header.access_date,
        header.expiration_date,
        header.copy_date,
    ];
    assert_eq!(dates[..5], [11, 12, 13, 14, 15].map(UnixSeconds));
    assert_eq!(dates[5], made_here.copy_date);
    assert_eq!((header.online, header.day_use), (false, 0));
    assert_eq!(header.offline_message, "", "what a tool left behind is no operator's message");
}

#[test]
fn a_frozen_clone_dumps_one_state_whatever_happens_to_its_source() {
    let world = World::new();
    let volume = world.volume();
    fill(&volume);
    let expected = dump(&volume, full());
    let clone = afs_volume::CloneSpec {
        id: COPY,
        name: VolumeName::new("root.cell.backup").unwrap(),
        kind: VolumeKind::Backup,
        snapshot: false,
    };
    let clone = now(world.store.clone_volume(VOLUME, clone)).unwrap();
    let mut stream = VolumeDump::new(clone, full());
    let mut bytes = Vec::new();
    let mut number = 0;
    while let Some(part) = now(stream.next()).unwrap() {
        bytes.extend_from_slice(&part);
        let fid = create(&volume, ROOT, format!("later {number}").as_bytes()).unwrap();
        store_bytes(&volume, fid, 0, b"later", 5).unwrap();
        number += 1;
    }
    assert!(number > 2);
    assert!(vnodes(&bytes) == vnodes(&expected));
}

/// A clone may be ahead of the clock. Where the volume is moved, changes and clones are not before it either.
#[test]
fn a_volume_is_not_earlier_elsewhere_than_its_last_clone() {
    let world = World::new();
    let (volume, copy) = (world.volume(), world.empty(COPY));
    let ahead = UnixSeconds(volume.header().creation_date.0 + 1000);
    now(volume.edit(move |tx| {
        tx.edit_header().clone_date = ahead;
        Ok(())
    }))
    .unwrap();
    restore(&copy, &dump(&volume, full()), 1 << 20).unwrap();
    create(&copy, Fid::root(COPY), b"f").unwrap();
    let name = VolumeName::new("copy.readonly").unwrap();
    let spec = CloneSpec { id: VolumeId(7), name, kind: VolumeKind::ReadOnly, snapshot: false };
    let clone = now(world.store.clone_volume(COPY, spec)).unwrap().header();
    assert!(copy.header().update_date >= ahead && clone.creation_date > ahead);
}
