//! Exact semantics and error codes of `docs/protocol/fileserver.md`, sections 4, 6, 7 and 11, in cases that
//! the random test does not cover.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use afs_volume::{
    Actor, LITERAL_MAX, Object, Rename, Replacing, SLOT_LEN, StoreData, VolumeError, VolumeSpec,
};
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{
    Fid, Mode, Rights, Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId, VolumeKind, VolumeName,
};
use support::model::kind_of;
use support::*;

fn refused<T>(answer: Result<T, VolumeError>) -> String {
    answer.err().map_or_else(|| "Ok".into(), |error| kind_of(&error))
}

fn rename(old_directory: Fid, old: &'static str, new_directory: Fid, new: &'static str) -> Rename<'static> {
    Rename { old_directory, old_name: old.as_bytes(), new_directory, new_name: new.as_bytes() }
}

#[test]
fn a_new_volume_has_its_root() {
    let (store, volume) = memory_store();
    let root = volume.fetch(ROOT).unwrap();
    assert_eq!((root.vnode, root.unique, root.kind), (VnodeId(1), Uniquifier(1), FileKind::Directory));
    assert_eq!((root.parent, root.link_count, root.length), (VnodeId(1), 2, 2048));
    assert_eq!(root.acl.as_deref(), Some(&Acl::of_new_volume()));
    assert_eq!((volume.header().file_count, volume.header().blocks_used), (1, 2));
    assert_eq!(volume.header().kind, VolumeKind::ReadWrite);
    assert_eq!(refused(now(store.create_volume(spec(0)))), "VolumeExists");
    let same_name = VolumeSpec { id: VolumeId(7), ..spec(0) };
    assert_eq!(refused(now(store.create_volume(same_name))), "VolumeExists");
    assert_eq!(refused(now(store.create_volume(VolumeSpec { id: VolumeId(0), ..spec(0) }))), "Invalid");
}

#[test]
fn fids_are_checked() {
    let (_store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    assert_eq!((file.vnode, file.unique), (VnodeId(2), Uniquifier(2)));
    for (fid, expected) in [
        (Fid { volume: VolumeId(0), ..file }, "Invalid"),
        (Fid { vnode: VnodeId(0), ..file }, "Invalid"),
        (Fid { volume: VolumeId(9), ..file }, "NoVolume"),
        (Fid { unique: Uniquifier(0), ..file }, "NoVnode"),
        (Fid { vnode: VnodeId(4), ..file }, "NoVnode"),
    ] {
        assert_eq!(refused(volume.fetch(fid)), expected);
        assert_eq!(refused(update(&volume, move |tx| tx.vnode(fid))), expected);
    }
    assert_eq!(refused(create(&volume, file, b"x")), "NotDirectory");
}

#[test]
fn new_objects_have_the_documented_status() {
    let (_store, volume) = memory_store();
    let plain = update(&volume, |tx| tx.create_file(ROOT, b"plain", &SetStatus::default(), ALICE)).unwrap();
    assert_eq!(plain.object.mode, Mode(0o777));
    assert_eq!((plain.object.owner, plain.object.author), (ALICE.id, ALICE.id));
    assert_eq!((plain.object.data_version.0, plain.object.length, plain.object.link_count), (0, 0, 1));
    assert_eq!(plain.directory.data_version.0, 2);
    assert_eq!(plain.directory.author, ALICE.id);
    let set = SetStatus {
        mod_time: Some(UnixSeconds(5).into()),
        mode: Some(Mode(0o6755)),
        group: Some(42),
        ..SetStatus::default()
    };
    let made = update(&volume, move |tx| tx.make_dir(ROOT, b"dir", &set, ALICE)).unwrap();
    assert_eq!((made.object.mode, made.object.group), (Mode(0o755), 42));
    assert_eq!((made.object.client_mod_time, made.object.link_count), (UnixSeconds(5).into(), 2));
    assert_eq!(made.object.acl, volume.fetch(ROOT).unwrap().acl);
    assert_eq!(made.directory.link_count, 3);
    let by_admin = update(&volume, move |tx| tx.create_file(ROOT, b"suid", &set, ADMIN)).unwrap();
    assert_eq!(by_admin.object.mode, Mode(0o6755));
    let foreign = SetStatus { owner: Some(ViceId(5)), ..SetStatus::default() };
    assert_eq!(
        refused(update(&volume, move |tx| tx.create_file(ROOT, b"x", &foreign, ALICE))),
        "NotPermitted"
    );
    let given = update(&volume, move |tx| tx.create_file(ROOT, b"x", &foreign, ADMIN)).unwrap();
    assert_eq!(given.object.owner, ViceId(5));
}

#[test]
fn vnode_numbers_are_reused_and_uniquifiers_are_not() {
    let (_store, volume) = memory_store();
    let first = create(&volume, ROOT, b"a").unwrap();
    update(&volume, |tx| tx.remove_file(ROOT, b"a", ALICE)).unwrap();
    let second = create(&volume, ROOT, b"b").unwrap();
    assert_eq!(first.vnode, second.vnode);
    assert!(second.unique > first.unique);
    assert_eq!(refused(volume.fetch(first)), "NoVnode");
    assert_eq!(make_dir(&volume, ROOT, b"d").unwrap().vnode, VnodeId(3));
}

#[test]
fn names_of_every_length_and_any_bytes() {
    let (_store, volume) = memory_store();
    for len in 1..=256usize {
        let name: Vec<u8> = (0..len).map(|at| 0x80 | (at as u8) | (len as u8 & 0x7f)).collect();
        let fid = create(&volume, ROOT, &name).unwrap();
        let found = update(&volume, move |tx| {
            let root = tx.directory(ROOT)?;
            tx.lookup(&root, &name)
        });
        assert_eq!(found.unwrap(), Some((fid.vnode, fid.unique)));
    }
    assert_eq!(refused(create(&volume, ROOT, &[b'x'; 257])), "NameTooLong");
    for bad in [&b""[..], b"a/b", b"a\0b"] {
        assert_eq!(refused(create(&volume, ROOT, bad)), "Invalid");
    }
    for taken in [b".", &b".."[..]] {
        assert_eq!(refused(create(&volume, ROOT, taken)), "Exists");
    }
}

#[test]
fn a_directory_of_64000_entries() {
    let (_store, volume) = memory_store();
    let directory = make_dir(&volume, ROOT, b"big").unwrap();
    for batch in 0..64u32 {
        update(&volume, move |tx| {
            for number in batch * 1000..(batch + 1) * 1000 {
                tx.create_file(directory, format!("f{number}").as_bytes(), &SetStatus::default(), ALICE)?;
            }
            Ok(())
        })
        .unwrap();
    }
    let record = volume.fetch(directory).unwrap();
    assert_eq!(record.data_version.0, 64_000);
    let data = read_bytes(&volume, directory, 0, u64::MAX).unwrap();
    assert_eq!(data.len() as u64, record.length);
    let mut blob = afs_wire::dir::Blob::from_bytes(data).unwrap();
    assert_eq!(afs_wire::dir::check(&mut blob).unwrap().entries, 64_000);
    assert_eq!(refused(update(&volume, |tx| tx.remove_dir(ROOT, b"big", ALICE))), "NotEmpty");
    // It fills up in the end, with a clear error that changes nothing.
    let answer = update(&volume, move |tx| {
        for number in 0..1000 {
            tx.create_file(directory, format!("g{number}").as_bytes(), &SetStatus::default(), ALICE)?;
        }
        Ok(())
    });
    assert_eq!(answer.err().map(|error| error.code()), Some(Errno::EFBIG.to_uae()));
    assert_eq!(volume.fetch(directory).unwrap().data_version.0, 64_000);
}

#[test]
fn a_directory_of_many_pages_goes_in_the_background() {
    let (store, volume) = memory_store();
    let directory = make_dir(&volume, ROOT, b"big").unwrap();
    let name = |number: u32| format!("a name that takes two slots {number}").into_bytes();
    update(&volume, move |tx| {
        for number in 0..4000 {
            tx.create_file(directory, &name(number), &SetStatus::default(), ALICE)?;
        }
        for number in 0..4000 {
            tx.remove_file(directory, &name(number), ALICE)?;
        }
        Ok(())
    })
    .unwrap();
    assert!(volume.fetch(directory).unwrap().length > 100 * 2048, "a directory does not shrink");
    update(&volume, |tx| tx.remove_dir(ROOT, b"big", ALICE)).unwrap();
    let again = make_dir(&volume, ROOT, b"small").unwrap();
    assert_eq!(again.vnode, directory.vnode, "its number can be used at once");
    run_background(&store);
    assert_eq!(read_bytes(&volume, again, 0, u64::MAX).unwrap().len(), 2048);
    assert_eq!((volume.header().file_count, volume.header().blocks_used), (2, 4));
}

#[test]
fn links_stay_within_their_directory() {
    let (_store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    let directory = make_dir(&volume, ROOT, b"d").unwrap();
    let text = SetStatus::default();
    let link = update(&volume, move |tx| tx.symlink(ROOT, b"s", b"text", &text, ALICE)).unwrap();
    let link = link.object.fid(VOLUME);
    let linked = update(&volume, move |tx| tx.link(ROOT, b"g", file, ALICE)).unwrap();
    assert_eq!((linked.object.link_count, linked.object.data_version.0), (2, 0));
    for (target, into, expected) in [
        (file, directory, "CrossDevice"),
        (Fid { volume: VolumeId(5), ..file }, ROOT, "CrossDevice"),
        (directory, ROOT, "IsDirectory"),
        (ROOT, ROOT, "IsDirectory"),
        (link, ROOT, "IsDirectory"),
        (Fid { vnode: VnodeId(100), ..file }, ROOT, "NoVnode"),
    ] {
        assert_eq!(refused(update(&volume, move |tx| tx.link(into, b"h", target, ALICE))), expected);
    }
    assert_eq!(refused(update(&volume, move |tx| tx.link(ROOT, b"f", file, ALICE))), "Exists");
    let across = rename(ROOT, "f", directory, "f");
    assert_eq!(
        refused(update(&volume, move |tx| tx.rename(across, Replacing::Allowed, ALICE))),
        "CrossDevice"
    );
    let removed = update(&volume, |tx| tx.remove_file(ROOT, b"f", ALICE)).unwrap();
    assert!(matches!(removed.object, Object::Remains(record) if record.link_count == 1));
    let removed = update(&volume, |tx| tx.remove_file(ROOT, b"g", ALICE)).unwrap();
    assert!(matches!(removed.object, Object::Gone(gone) if gone == file));
}

#[test]
fn rename_replaces_an_empty_directory_and_frees_it() {
    let (_store, volume) = memory_store();
    let from = make_dir(&volume, ROOT, b"from").unwrap();
    let to = make_dir(&volume, ROOT, b"to").unwrap();
    let moved = make_dir(&volume, from, b"m").unwrap();
    let replaced = make_dir(&volume, to, b"r").unwrap();
    let before = volume.header().file_count;
    let answer =
        update(&volume, move |tx| tx.rename(rename(from, "m", to, "r"), Replacing::Allowed, ALICE)).unwrap();
    assert!(answer.moved_directory);
    assert!(matches!(answer.replaced, Some(Object::Gone(gone)) if gone == replaced));
    assert_eq!((answer.old_directory.link_count, answer.new_directory.link_count), (2, 3));
    assert_eq!((answer.old_directory.data_version.0, answer.new_directory.data_version.0), (2, 2));
    assert_eq!(answer.object.data_version.0, 1, "its .. changed");
    assert_eq!(volume.header().file_count, before - 1);
    assert_eq!(refused(volume.fetch(replaced)), "NoVnode");
    let found = update(&volume, move |tx| {
        let moved = tx.directory(moved)?;
        tx.lookup(&moved, b"..")
    });
    assert_eq!(found.unwrap(), Some((to.vnode, to.unique)));
}

#[test]
fn rename_asks_before_replacing_and_refuses_loops() {
    use Replacing::{Allowed, Denied, Never};
    let (_store, volume) = memory_store();
    let outer = make_dir(&volume, ROOT, b"outer").unwrap();
    let inner = make_dir(&volume, outer, b"inner").unwrap();
    create(&volume, ROOT, b"f").unwrap();
    create(&volume, ROOT, b"g").unwrap();
    let answer = |rename: Rename<'static>, replacing: Replacing| {
        refused(update(&volume, move |tx| tx.rename(rename, replacing, ALICE)))
    };
    assert_eq!(answer(rename(ROOT, "f", ROOT, "g"), Denied), "AccessDenied");
    assert_eq!(answer(rename(ROOT, "f", ROOT, "g"), Never), "Exists");
    assert_eq!(answer(rename(ROOT, "f", ROOT, "f"), Never), "Exists");
    assert_eq!(answer(rename(ROOT, "f", ROOT, "outer"), Never), "Exists");
    assert_eq!(answer(rename(ROOT, "none", ROOT, "g"), Never), "NotFound");
    assert_eq!(answer(rename(ROOT, "outer", inner, "x"), Allowed), "Loop");
    assert_eq!(answer(rename(ROOT, "outer", outer, "x"), Allowed), "Loop");
    assert_eq!(answer(rename(ROOT, "f", ROOT, "f"), Allowed), "Invalid");
    assert_eq!(answer(rename(ROOT, "f", ROOT, "outer"), Allowed), "IsDirectory");
    assert_eq!(answer(rename(ROOT, "outer", ROOT, "f"), Allowed), "NotDirectory");
    assert_eq!(answer(rename(outer, "inner", ROOT, "outer"), Allowed), "Invalid");
    assert_eq!(answer(rename(ROOT, "f", ROOT, "a/b"), Allowed), "Invalid");
    assert_eq!(answer(rename(ROOT, "f", Fid::root(VolumeId(8)), "x"), Allowed), "CrossDevice");
    assert_eq!(answer(rename(ROOT, "none", ROOT, "x"), Allowed), "NotFound");
    let done =
        update(&volume, |tx| tx.rename(rename(ROOT, "f", ROOT, "g"), Replacing::Allowed, ALICE)).unwrap();
    assert_eq!(done.old_directory, done.new_directory);
    assert_eq!(done.object.data_version.0, 0);
    let new = update(&volume, |tx| tx.rename(rename(ROOT, "g", ROOT, "h"), Never, ALICE)).unwrap();
    assert!(new.replaced.is_none());
}

#[test]
fn status_changes_follow_the_rules() {
    let (_store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    let set = |set: SetStatus, actor: Actor| update(&volume, move |tx| tx.set_status(file, &set, actor));
    let mode = |mode| SetStatus { mode: Some(Mode(mode)), ..SetStatus::default() };
    assert_eq!(set(mode(0o4755), ALICE).unwrap().mode, Mode(0o755));
    let admin_set = set(mode(0o6755), ADMIN).unwrap();
    assert_eq!((admin_set.mode, admin_set.data_version.0), (Mode(0o6755), 0));
    // A store by another user clears the set-id bits.
    store_bytes(&volume, file, 0, b"x", 1).unwrap();
    assert_eq!(volume.fetch(file).unwrap().mode, Mode(0o755));
    let owner = SetStatus { owner: Some(ViceId(9)), ..SetStatus::default() };
    assert_eq!(update(&volume, move |tx| tx.set_status(ROOT, &owner, ADMIN)).unwrap().owner, ViceId(9));
    assert_eq!(volume.header().owner, ViceId(9));
    let link = update(&volume, |tx| tx.symlink(ROOT, b"s", b"t", &SetStatus::default(), ALICE)).unwrap();
    let link = link.object.fid(VOLUME);
    assert_eq!(refused(update(&volume, move |tx| tx.set_status(link, &mode(0o644), ADMIN))), "Invalid");
    let acl = Acl { positive: vec![(ViceId::ANYUSER, Rights::READ)], negative: vec![] };
    let given = acl.clone();
    assert_eq!(update(&volume, move |tx| tx.set_acl(ROOT, given)).unwrap().acl.as_deref(), Some(&acl));
    assert_eq!(refused(update(&volume, move |tx| tx.set_acl(file, acl))), "NotDirectory");
}

#[test]
fn quota_is_charged_and_refused_as_documented() {
    let store = open(&afs_sim::crash::CrashDisk::new(), &afs_sim::crash::CrashDisk::new()).unwrap();
    let volume = now(store.create_volume(spec(5))).unwrap();
    let file = create(&volume, ROOT, b"f").unwrap();
    assert_eq!(volume.header().blocks_used, 3);
    make_dir(&volume, ROOT, b"d").unwrap();
    assert_eq!(refused(create(&volume, ROOT, b"g")), "OverQuota");
    assert_eq!(refused(make_dir(&volume, ROOT, b"e")), "OverQuota");
    // A store may exceed the quota by a megabyte, because its data is already in flight.
    store_bytes(&volume, file, 0, &vec![1; 500_000], u64::MAX).unwrap();
    assert_eq!(volume.header().blocks_used, 4 + 489);
    let answer = store_bytes(&volume, file, 0, &vec![1; 2_000_000], u64::MAX);
    assert_eq!(answer.err().map(|error| error.code()), Some(AbortCode::VOVERQUOTA));
    assert_eq!(read_bytes(&volume, file, 0, u64::MAX).unwrap(), vec![1; 500_000]);
    // Truncation and removal are always permitted and credit the blocks.
    store_bytes(&volume, file, 0, b"", 10).unwrap();
    assert_eq!(volume.header().blocks_used, 5);
    update(&volume, |tx| tx.remove_file(ROOT, b"f", ALICE)).unwrap();
    assert_eq!(volume.header().blocks_used, 4);
    now(volume.edit(|tx| {
        tx.edit_header().max_quota = 0;
        Ok(())
    }))
    .unwrap();
    create(&volume, ROOT, b"g").unwrap();
}

#[test]
fn stores_cut_grow_and_leave_holes() {
    let (_store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    store_bytes(&volume, file, 3 * SLOT_LEN + 5, b"end", u64::MAX).unwrap();
    let data = read_bytes(&volume, file, 0, u64::MAX).unwrap();
    assert_eq!(data.len() as u64, 3 * SLOT_LEN + 8);
    assert!(data[..data.len() - 3].iter().all(|byte| *byte == 0));
    store_bytes(&volume, file, 0, b"", 2).unwrap();
    assert_eq!(read_bytes(&volume, file, 0, 10).unwrap(), [0, 0]);
    // Without bytes the position alone extends it.
    store_bytes(&volume, file, 2 * SLOT_LEN, b"", u64::MAX).unwrap();
    assert_eq!(volume.fetch(file).unwrap().length, 2 * SLOT_LEN);
    assert_eq!(read_bytes(&volume, file, 2 * SLOT_LEN - 3, 10).unwrap(), [0, 0, 0]);
    assert_eq!(read_bytes(&volume, file, 5 * SLOT_LEN, 10).unwrap(), b"");
    assert_eq!(volume.fetch(file).unwrap().data_version.0, 3);
    let store = StoreData { fid: ROOT, file_length: 0, status: SetStatus::default(), expected: None };
    let nothing = now(volume.write_data(0).unwrap().finish()).unwrap();
    assert_eq!(refused(update(&volume, move |tx| tx.store_data(store, nothing, ALICE))), "IsDirectory");
    assert_eq!(refused(volume.write_data(u64::MAX)), "TooLarge");
}

#[test]
fn a_long_file_is_cut_without_touching_each_slot() {
    let (store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    // Sparse, so that it is long without being large.
    for slot in [0, 1, 2, 100, 5000] {
        store_bytes(&volume, file, slot * SLOT_LEN, format!("slot {slot}").as_bytes(), u64::MAX).unwrap();
    }
    store_bytes(&volume, file, 0, b"", SLOT_LEN + 3).unwrap();
    run_background(&store);
    assert_eq!(read_bytes(&volume, file, SLOT_LEN, 100).unwrap(), b"slo");
    store_bytes(&volume, file, 6000 * SLOT_LEN, b"", u64::MAX).unwrap();
    for slot in [2, 100, 5000] {
        assert_eq!(read_bytes(&volume, file, slot * SLOT_LEN, 10).unwrap(), [0; 10], "slot {slot} is cut");
    }
    // Both the kept and the removed part are long.
    store_bytes(&volume, file, 5000 * SLOT_LEN, b"again", u64::MAX).unwrap();
    store_bytes(&volume, file, 0, b"", 3000 * SLOT_LEN).unwrap();
    store_bytes(&volume, file, 6000 * SLOT_LEN, b"", u64::MAX).unwrap();
    assert_eq!(read_bytes(&volume, file, 5000 * SLOT_LEN, 5).unwrap(), [0; 5]);
    assert_eq!(read_bytes(&volume, file, 0, 6).unwrap(), b"slot 0");
    update(&volume, |tx| tx.remove_file(ROOT, b"f", ALICE)).unwrap();
    run_background(&store);
    assert_eq!(volume.header().blocks_used, 2);
}

#[test]
fn a_read_only_volume_refuses_changes() {
    let (_store, volume) = memory_store();
    now(volume.edit(|tx| {
        tx.edit_header().kind = VolumeKind::ReadOnly;
        Ok(())
    }))
    .unwrap();
    let error = create(&volume, ROOT, b"f").unwrap_err();
    assert_eq!(error.code(), Errno::EROFS.to_uae());
}

#[test]
fn a_refusal_of_the_caller_undoes_everything() {
    let (_store, volume) = memory_store();
    let answer = update(&volume, |tx| {
        tx.create_file(ROOT, b"f", &SetStatus::default(), ALICE)?;
        Err::<(), _>(AbortCode::VICETOKENDEAD.into())
    });
    assert_eq!(answer.err().map(|error| error.code()), Some(AbortCode::VICETOKENDEAD));
    assert_eq!((volume.header().file_count, volume.fetch(ROOT).unwrap().data_version.0), (1, 1));
}

#[test]
fn large_link_texts_are_refused_and_others_kept_as_they_are() {
    let (_store, volume) = memory_store();
    let contents = vec![0xfe; LITERAL_MAX + 1];
    let answer = update(&volume, move |tx| tx.symlink(ROOT, b"s", &contents, &SetStatus::default(), ALICE));
    assert_eq!(refused(answer), "NameTooLong");
    let mode = SetStatus { mode: Some(Mode(0o644)), ..SetStatus::default() };
    let made = update(&volume, move |tx| tx.symlink(ROOT, b"m", b"#root.cell.", &mode, ALICE)).unwrap();
    assert_eq!((made.object.kind, made.object.mode), (FileKind::Symlink, Mode(0o644)));
    assert_eq!(read_bytes(&volume, made.object.fid(VOLUME), 0, 99).unwrap(), b"#root.cell.");
}

#[test]
fn a_volume_that_reuses_a_number_shows_nothing_of_the_old_one() {
    let (store, volume) = memory_store();
    let file = create(&volume, ROOT, b"f").unwrap();
    assert!(volume.vnode(file.vnode).unwrap().is_some());
    assert_eq!(volume.vnode(VnodeId(1)).unwrap().unwrap().data_version.0, 2);
    now(store.delete_volume(VOLUME)).unwrap();
    run_background(&store);
    let volume = now(store.create_volume(spec(0))).unwrap();
    assert_eq!(volume.vnode(file.vnode).unwrap(), None);
    assert_eq!(volume.vnode(VnodeId(1)).unwrap().unwrap().data_version.0, 1);
}

#[test]
fn volumes_are_renamed_and_deleted_with_all_they_have() {
    let (index, data) = (afs_sim::crash::CrashDisk::new(), afs_sim::crash::CrashDisk::new());
    let store = open(&index, &data).unwrap();
    let volume = now(store.create_volume(spec(0))).unwrap();
    let name = |text| VolumeName::new(text).unwrap();
    let other = VolumeSpec { id: VolumeId(3), name: name("other"), ..spec(0) };
    now(store.create_volume(other)).unwrap();
    assert_eq!(refused(now(store.rename_volume(VolumeId(3), name("root.cell")))), "VolumeExists");
    now(store.rename_volume(VolumeId(3), name("third"))).unwrap();
    assert_eq!(store.volume(VolumeId(3)).unwrap().header().name, name("third"));
    for number in 0..300 {
        let file = create(&volume, ROOT, format!("f{number}").as_bytes()).unwrap();
        assert!(volume.vnode(file.vnode).unwrap().is_some());
        store_bytes(&volume, file, 0, &vec![7; number * 200], u64::MAX).unwrap();
    }
    now(store.delete_volume(VolumeId(3))).unwrap();
    run_background(&store);
    now(store.create_volume(VolumeSpec { id: VolumeId(3), name: name("third"), ..spec(0) })).unwrap();
    now(store.delete_volume(VOLUME)).unwrap();
    assert!(store.volume(VOLUME).is_none());
    assert_eq!(refused(create(&volume, ROOT, b"late")), "NoVolume");
    // The id is free at once, and the old content is deleted meanwhile. Half deleted, then restarted.
    now(store.create_volume(spec(0))).unwrap();
    now(store.delete_volume(VOLUME)).unwrap();
    now(store.background_step()).unwrap();
    drop((volume, store));
    let store = open(&index, &data).unwrap();
    assert_eq!(store.volumes().len(), 1);
    run_background(&store);
    let volume = now(store.create_volume(spec(0))).unwrap();
    assert_eq!(volume.header().file_count, 1);
    assert_eq!(read_bytes(&volume, ROOT, 0, u64::MAX).unwrap().len(), 2048);
    let report = now(store.sweep()).unwrap();
    assert_eq!((report.live, report.missing.len()), (0, 0));
}

#[test]
fn all_of_this_holds_with_data_on_drives_of_every_kind() {
    support::kinds::run_over_each("semantics", &["a_directory_of_"]);
}
