//! Names, status and data: one client, no errors.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, FileKind, SetStatus};
use afs_wire::ids::{DataVersion, Fid, Mode, Rights, Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId};
use rig::{Cell, Heard, SERVER_UUID};

#[test]
fn the_first_call_introduces_both_sides() {
    let cell = Cell::new(1);
    let client = cell.client(1);
    let status = client.fetch_status(cell.root()).unwrap();
    assert_eq!(client.heard(), [Heard::TellMe, Heard::Reset(SERVER_UUID)]);
    assert_eq!(status.status.kind, FileKind::Directory);
    assert_eq!((status.status.parent, status.status.parent_unique), (VnodeId(1), Uniquifier(1)));
    assert_eq!(status.status.anonymous_access, Rights::ALL);
    assert!((14400..14600).contains(&status.callback.expires_in));
    assert!(status.sync.creation.0 > 1_700_000_000);
    client.fetch_status(cell.root()).unwrap();
    assert_eq!(client.heard(), []);
}

#[test]
fn a_file_is_made_written_read_and_removed() {
    let cell = Cell::new(2);
    let client = cell.client(1);
    let before = client.fetch_status(cell.root()).unwrap().status;
    let made = client.create(cell.root(), "notes").unwrap();
    assert_eq!(
        (made.status.data_version, made.status.length, made.status.link_count),
        (DataVersion(0), 0, 1)
    );
    assert_eq!(made.status.mode, Mode(0o644));
    assert_eq!(made.status.owner, ViceId::ANONYMOUS);
    assert!(made.status.caller_access.0 & Rights::ADMINISTER.0 != 0);
    assert_eq!(made.dir_status.data_version.0, before.data_version.0 + 1);
    let stored = client.store(made.fid, 0, b"hello world").unwrap();
    assert_eq!((stored.status.length, stored.status.data_version), (11, DataVersion(1)));
    let (data, fetched) = client.fetch(made.fid, 0, 100).unwrap();
    assert_eq!((data.as_slice(), fetched.status.length), (&b"hello world"[..], 11));
    assert_eq!(client.fetch(made.fid, 6, 3).unwrap().0, b"wor");
    assert_eq!(client.fetch(made.fid, 11, 3).unwrap().0, b"");
    assert_eq!(client.fetch(made.fid, 500, 3).unwrap().0, b"");
    let removed = client.remove(cell.root(), "notes").unwrap();
    assert_eq!(removed.dir_status.data_version.0, before.data_version.0 + 2);
    assert_eq!(client.refusal(fs::FetchStatus { fid: made.fid }), AbortCode::VNOVNODE);
}

#[test]
fn large_data_travels_both_ways_in_both_widths() {
    let cell = Cell::new(3);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "large").unwrap().fid;
    let data: Vec<u8> = (0..3_500_000u32).map(|n| (n ^ n >> 9) as u8).collect();
    client.store(fid, 0, &data).unwrap();
    assert_eq!(client.read(fid), data);
    let part = fs::FetchData { fid, position: 1_000_000, length: 50_000 };
    assert_eq!(client.fetch_as(part, 4).unwrap().0, data[1_000_000..1_050_000]);
    let (position, file_length) = (3_000_000, 3_500_000);
    let narrow = fs::StoreData { fid, status: SetStatus::default(), position, length: 4, file_length };
    client.store_as(narrow, b"abcd").unwrap();
    let (tail, _) = client.fetch(fid, 2_999_999, 6).unwrap();
    assert_eq!(tail[1..5], *b"abcd");
    assert_eq!(client.fetch_status(fid).unwrap().status.length, 3_500_000);
}

#[test]
fn file_length_cuts_and_position_extends() {
    let cell = Cell::new(4);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    client.store(fid, 0, &[7; 10_000]).unwrap();
    let store = |position, length, file_length| fs::StoreData64 {
        fid,
        status: SetStatus::default(),
        position,
        length,
        file_length,
    };
    assert_eq!(client.store_as(store(0, 0, 100), b"").unwrap().status.length, 100);
    assert_eq!(client.store_as(store(0, 0, 5000), b"").unwrap().status.length, 100, "not grown by itself");
    assert_eq!(client.store_as(store(300, 0, 300), b"").unwrap().status.length, 300);
    let data = client.read(fid);
    assert!(data[..100].iter().all(|b| *b == 7) && data[100..].iter().all(|b| *b == 0));
    let last = client.store_as(store(50, 10, 60), b"0123456789").unwrap().status;
    assert_eq!((last.length, last.data_version), (60, DataVersion(5)));
}

#[test]
fn short_data_changes_nothing() {
    let cell = Cell::new(5);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    client.store(fid, 0, b"whole").unwrap();
    let short =
        fs::StoreData64 { fid, status: SetStatus::default(), position: 0, length: 100, file_length: 100 };
    let refused = client.store_as(short, b"too few").unwrap_err();
    assert_eq!(refused.abort_code(), Some(AbortCode(-32)));
    assert_eq!(client.read(fid), b"whole");
    assert_eq!(client.fetch_status(fid).unwrap().status.data_version, DataVersion(1));
}

#[test]
fn bounds_of_positions() {
    let cell = Cell::new(6);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    let too_big = Some(Errno::EFBIG.to_uae());
    for (position, length) in [(-1, 1), (0, -1), (1, i64::MAX)] {
        assert_eq!(client.fetch(fid, position, length).unwrap_err().abort_code(), too_big);
    }
    let status = SetStatus::default();
    let store = fs::StoreData { fid, status, position: 0x8000_0000, length: 0, file_length: 0 };
    assert_eq!(client.store_as(store, b"").unwrap_err().abort_code(), too_big);
    let store = fs::StoreData64 { fid, status, position: u64::MAX, length: 1, file_length: 0 };
    assert_eq!(client.store_as(store, b"x").unwrap_err().abort_code(), too_big);
}

#[test]
fn directories_links_and_renames() {
    let cell = Cell::new(7);
    let client = cell.client(1);
    let root = cell.root();
    let a = client.make_dir(root, "a").unwrap();
    let b = client.make_dir(root, "b").unwrap();
    assert_eq!((a.status.link_count, a.status.length, a.dir_status.link_count), (2, 2048, 3));
    let f = client.create(a.fid, "f").unwrap().fid;
    let linked = client.link(a.fid, "g", f).unwrap();
    assert_eq!((linked.status.link_count, linked.status.data_version), (2, DataVersion(0)));
    let exdev = Errno::EXDEV.to_uae();
    assert_eq!(client.link(b.fid, "h", f).unwrap_err().abort_code(), Some(exdev));
    assert_eq!(client.rename(a.fid, "f", b.fid, "f").unwrap_err().abort_code(), Some(exdev));
    client.remove(a.fid, "g").unwrap();
    let renamed = client.rename(a.fid, "f", b.fid, "f2").unwrap();
    assert_eq!(renamed.new_dir_status.data_version.0, b.status.data_version.0 + 1);
    let status = client.fetch_status(f).unwrap().status;
    assert_eq!((status.parent, status.link_count), (b.fid.vnode, 1));
    let moved = client.rename(root, "a", b.fid, "a").unwrap();
    assert_eq!((moved.old_dir_status.link_count, moved.new_dir_status.link_count), (3, 3));
    let refused = |answer: Result<fs::RenameReply, _>| {
        let answer: Result<_, afs_rpc::CallError> = answer;
        answer.unwrap_err().abort_code().unwrap()
    };
    assert_eq!(refused(client.rename(root, "b", a.fid, "b")), Errno::ELOOP.to_uae());
    assert_eq!(refused(client.rename(root, "nothing", root, "x")), Errno::ENOENT.to_uae());
    assert_eq!(refused(client.rename(root, "b", root, "x/y")), Errno::EINVAL.to_uae());
    assert_eq!(refused(client.rename(root, "b", root, "..")), Errno::EINVAL.to_uae());
    let code =
        |answer: Result<fs::RemoveReply, afs_rpc::CallError>| answer.unwrap_err().abort_code().unwrap();
    assert_eq!(code(client.remove_dir(root, "b")), Errno::EEXIST.to_uae());
    assert_eq!(code(client.remove_dir(b.fid, "f2")), Errno::ENOTDIR.to_uae());
    assert_eq!(code(client.remove(root, "b")), Errno::EISDIR.to_uae());
    assert_eq!(code(client.remove(root, "..")), Errno::EINVAL.to_uae());
    client.remove(b.fid, "f2").unwrap();
    client.remove_dir(b.fid, "a").unwrap();
    client.remove_dir(root, "b").unwrap();
    assert_eq!(client.fetch_status(root).unwrap().status.link_count, 2);
}

#[test]
fn links_hold_their_text_and_mount_points_need_administer() {
    let cell = Cell::with(8, Default::default(), "rlidwk");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    let link = client.symlink(root, "link", "../x", 0o755).unwrap();
    assert_eq!((link.status.kind, link.status.length), (FileKind::Symlink, 4));
    assert_eq!(client.read(link.fid), b"../x");
    let refused = client.symlink(root, "mount", "#vol.", 0o644).unwrap_err();
    assert_eq!(refused.abort_code(), Some(Errno::EACCES.to_uae()));
    let mount = owner.symlink(root, "mount", "#vol.", 0o644).unwrap();
    assert_eq!(mount.status.mode, Mode(0o644));
    let chmod = fs::StoreStatus {
        fid: link.fid,
        status: SetStatus { mode: Some(Mode(0o600)), ..SetStatus::default() },
    };
    assert_eq!(client.refusal(chmod), Errno::EINVAL.to_uae());
}

#[test]
fn names_that_cannot_be() {
    let cell = Cell::new(9);
    let client = cell.client(1);
    let root = cell.root();
    for bad in ["", "a/b"] {
        let refused = client.create(root, bad).unwrap_err();
        assert_eq!(refused.abort_code(), Some(Errno::EINVAL.to_uae()), "{bad}");
    }
    client.create(root, "once").unwrap();
    assert_eq!(client.create(root, "once").unwrap_err().abort_code(), Some(Errno::EEXIST.to_uae()));
    let bytes = fs::Name::new(vec![0xff, 0xfe, b' ', b'\n']).unwrap();
    client.ask(fs::CreateFile { dir: root, name: bytes.clone(), status: SetStatus::default() }).unwrap();
    client.ask(fs::RemoveFile { dir: root, name: bytes }).unwrap();
    client.create(root, &"x".repeat(255)).unwrap();
}

#[test]
fn missing_objects_are_refused() {
    let cell = Cell::new(10);
    let client = cell.client(1);
    let root = cell.root();
    let file = client.create(root, "f").unwrap().fid;
    let table = [
        (Fid { volume: VolumeId(0), ..root }, Errno::EINVAL.to_uae()),
        (Fid { vnode: VnodeId(0), ..root }, Errno::EINVAL.to_uae()),
        (Fid { volume: VolumeId(77), ..root }, AbortCode::VNOVOL),
        (Fid { vnode: VnodeId(77), ..root }, AbortCode::VNOVNODE),
        (Fid { unique: Uniquifier(77), ..root }, AbortCode::VNOVNODE),
        (Fid { unique: Uniquifier(0), ..file }, AbortCode::VNOVNODE),
    ];
    for (fid, code) in table {
        assert_eq!(client.refusal(fs::FetchStatus { fid }), code, "{fid}");
        let store =
            fs::StoreData64 { fid, status: SetStatus::default(), position: 0, length: 1, file_length: 1 };
        assert_eq!(client.store_as(store, b"x").unwrap_err().abort_code(), Some(code), "{fid}");
        assert_eq!(client.create(fid, "x").unwrap_err().abort_code(), Some(code), "{fid}");
    }
    assert_eq!(client.create(file, "x").unwrap_err().abort_code(), Some(Errno::ENOTDIR.to_uae()));
    assert_eq!(client.store(root, 0, b"x").unwrap_err().abort_code(), Some(Errno::EISDIR.to_uae()));
}

#[test]
fn status_can_be_set() {
    let cell = Cell::new(11);
    let (client, owner) = (cell.client(1), cell.owner());
    let fid = client.create(cell.root(), "f").unwrap().fid;
    let set = SetStatus {
        mode: Some(Mode(0o6750)),
        mod_time: Some(UnixSeconds(1_000_000).into()),
        ..SetStatus::default()
    };
    let status = client.ask(fs::StoreStatus { fid, status: set }).unwrap().status;
    assert_eq!((status.mode, status.client_mod_time), (Mode(0o750), UnixSeconds(1_000_000).into()));
    assert_eq!(status.data_version, DataVersion(0));
    let chown = SetStatus { owner: Some(ViceId(9)), ..SetStatus::default() };
    assert_eq!(client.refusal(fs::StoreStatus { fid, status: chown }), Errno::EPERM.to_uae());
    assert_eq!(owner.ask(fs::StoreStatus { fid, status: chown }).unwrap().status.owner, ViceId(9));
}

#[test]
fn bulk_status_is_all_or_nothing_and_inline_each_by_itself() {
    let cell = Cell::new(12);
    let client = cell.client(1);
    let f = client.create(cell.root(), "f").unwrap().fid;
    let missing = Fid { vnode: VnodeId(400), ..f };
    let fids = |fids: &[Fid]| fs::Fids::first_of(fids.iter().copied());
    assert_eq!(client.refusal(fs::BulkStatus { fids: fids(&[]) }), Errno::EINVAL.to_uae());
    assert_eq!(client.refusal(fs::BulkStatus { fids: fids(&[f, missing]) }), AbortCode::VNOVNODE);
    let good = client.ask(fs::BulkStatus { fids: fids(&[f, cell.root()]) }).unwrap();
    assert_eq!((good.statuses.len(), good.callbacks.len()), (2, 2));
    let mixed = client.ask(fs::InlineBulkStatus { fids: fids(&[missing, f, cell.root()]) }).unwrap();
    let codes: Vec<_> = mixed.statuses.iter().map(|status| status.error).collect();
    assert_eq!(codes, [AbortCode::VNOVNODE, AbortCode::OK, AbortCode::OK]);
    assert_eq!(mixed.callbacks[0].expires_in, 0);
    assert!((1..=2000).contains(&mixed.callbacks[1].expires_in), "bulk promises are short");
    assert!(mixed.sync.creation.0 > 0);
}

#[test]
fn volumes_tell_and_take_their_status() {
    let cell = Cell::new(13);
    let (client, owner) = (cell.client(1), cell.owner());
    let volume = cell.volumes.root_cell;
    let told = client.ask(fs::GetVolumeStatus { volume }).unwrap();
    assert_eq!(
        (told.name.to_string().as_str(), told.status.online, told.status.writable),
        ("root.cell", true, true)
    );
    assert!(told.status.partition_blocks > 0);
    assert_eq!(client.refusal(fs::GetVolumeStatus { volume: VolumeId(0) }), Errno::EINVAL.to_uae());
    let empty = fs::PathText::default();
    let set = |quota, message: &str| fs::StoreVolumeStatus {
        volume,
        status: fs::SetVolumeStatus { quota_min: None, quota_max: quota },
        name: fs::Name::default(),
        offline_message: fs::PathText::new(message.as_bytes()).unwrap(),
        motd: empty.clone(),
    };
    assert_eq!(client.refusal(set(Some(10), "")), Errno::EACCES.to_uae());
    owner.ask(set(Some(50), "back soon")).unwrap();
    let told = client.ask(fs::GetVolumeStatus { volume }).unwrap();
    assert_eq!((told.status.quota_max, told.offline_message.to_string().as_str()), (50, "back soon"));
}

#[test]
fn quota_and_space_are_refused() {
    let cell = Cell::new(14);
    let (client, owner) = (cell.client(1), cell.owner());
    let fid = client.create(cell.root(), "f").unwrap().fid;
    let set = fs::StoreVolumeStatus {
        volume: cell.volumes.root_cell,
        status: fs::SetVolumeStatus { quota_min: None, quota_max: Some(20) },
        name: fs::Name::default(),
        offline_message: fs::PathText::default(),
        motd: fs::PathText::default(),
    };
    owner.ask(set).unwrap();
    let refused = client.store(fid, 0, &vec![1; 3 << 20]).unwrap_err();
    assert_eq!(refused.abort_code(), Some(AbortCode::VOVERQUOTA));
    client.store(fid, 0, &vec![1; 900 << 10]).unwrap();
    assert_eq!(client.create(cell.root(), "g").unwrap_err().abort_code(), Some(AbortCode::VOVERQUOTA));
    assert_eq!(client.fetch_status(fid).unwrap().status.length, 900 << 10);
}

#[test]
fn a_full_partition_loses_nothing() {
    let cell = Cell::new(15);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    client.store(fid, 0, &vec![5; 200_000]).unwrap();
    cell.drive.store().set_capacity(1 << 20);
    let refused = client.store(fid, 0, &vec![6; 8 << 20]).unwrap_err();
    assert_eq!(refused.abort_code(), Some(AbortCode::VDISKFULL));
    assert_eq!(client.read(fid), vec![5; 200_000]);
}

#[test]
fn locks_of_two_clients() {
    let cell = Cell::new(16);
    let (a, b) = (cell.client(1), cell.client(2));
    let fid = a.create(cell.root(), "f").unwrap().fid;
    let (read, write) = (fs::LockKind::READ, fs::LockKind::WRITE);
    a.ask(fs::SetLock { fid, kind: write }).unwrap();
    assert_eq!(a.fetch_status(fid).unwrap().status.lock_count, -1);
    for kind in [read, write] {
        assert_eq!(b.refusal(fs::SetLock { fid, kind }), Errno::EAGAIN.to_uae());
    }
    assert_eq!(b.refusal(fs::SetLock { fid, kind: fs::LockKind(2) }), Errno::EINVAL.to_uae());
    a.ask(fs::ExtendLock { fid }).unwrap();
    b.fetch_status(fid).unwrap();
    b.heard();
    a.ask(fs::ReleaseLock { fid }).unwrap();
    a.world.run_for(std::time::Duration::from_secs(1));
    assert_eq!(b.heard(), [Heard::Free(fid)], "those who wait ask again");
    b.ask(fs::SetLock { fid, kind: read }).unwrap();
    a.ask(fs::SetLock { fid, kind: read }).unwrap();
    assert_eq!(a.fetch_status(fid).unwrap().status.lock_count, 2);
    a.world.run_for(std::time::Duration::from_secs(301));
    assert_eq!(a.fetch_status(fid).unwrap().status.lock_count, 0);
    assert_eq!(a.refusal(fs::ExtendLock { fid: cell.root() }), Errno::EINVAL.to_uae());
    a.ask(fs::ReleaseLock { fid: cell.root() }).unwrap();
}
