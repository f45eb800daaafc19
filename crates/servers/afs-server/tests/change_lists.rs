//! ChangeList: the single calls' results, rights, broken promises and records, in one transaction.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_rpc::CallError;
use afs_sim::crash::Rng;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, ANY_VERSION, CallBack, Change, ChangeReply, CreateSmall, PathText, SetStatus, SmallData, Status,
    StoreSmall, VolSync,
};
use afs_wire::ids::{DataVersion, Fid, Mode, UnixSeconds, VolumeId};
use afs_wire::rpc::{ServiceId, encode_call};
use rig::leasing::first_list;
use rig::{CallResult, Cell, Claim, Client, FILES, Heard, mode, name};

fn ask(client: &Client, changes: impl IntoIterator<Item = Change>) -> CallResult<fs::ChangeListReply> {
    let changes: Vec<Change> = changes.into_iter().collect();
    let volume = changes.first().map_or(VolumeId(0), |change| change.fids()[0].volume);
    client.ask(first_list(volume, changes))
}

fn refusal(outcome: CallResult<fs::ChangeListReply>) -> AbortCode {
    match outcome {
        Err(CallError::Abort(code)) => code,
        other => panic!("not refused: {other:?}"),
    }
}

fn create(dir: Fid, text: &str, data: &[u8]) -> Change {
    let create = fs::CreateFile { dir, name: name(text), status: mode(0o644) };
    Change::CreateFile(CreateSmall { create, data: SmallData::new(data).unwrap() })
}

fn make_dir(dir: Fid, text: &str) -> Change {
    Change::MakeDir(fs::MakeDir { dir, name: name(text), status: mode(0o755) })
}

fn remove(dir: Fid, text: &str) -> Change {
    Change::RemoveFile(fs::RemoveFile { dir, name: name(text) })
}

fn rename(dir: Fid, old: &str, new: &str) -> Change {
    Change::Rename(fs::Rename { old_dir: dir, old_name: name(old), new_dir: dir, new_name: name(new) })
}

fn store(fid: Fid, expected: DataVersion, data: &[u8]) -> Change {
    let (status, data) = (SetStatus::default(), SmallData::new(data).unwrap());
    Change::Store(StoreSmall { fid, status, expected, position: 0, file_length: 0, data })
}

/// The same by the single calls.
fn one(client: &Client, change: Change) -> Result<ChangeReply, CallError> {
    Ok(match change {
        Change::CreateFile(CreateSmall { create, data }) => {
            let mut reply = client.ask(create)?;
            if !data.is_empty() {
                reply.status = client.store(reply.fid, 0, &data)?.status;
            }
            ChangeReply::CreateFile(reply)
        }
        Change::MakeDir(call) => ChangeReply::MakeDir(client.ask(call)?),
        Change::Symlink(call) => ChangeReply::Symlink(client.ask(call)?),
        Change::Link(call) => ChangeReply::Link(client.ask(call)?),
        Change::Store(StoreSmall { fid, status, expected, position, file_length, data }) => {
            if expected != ANY_VERSION && client.fetch_status(fid)?.status.data_version != expected {
                return Err(CallError::Abort(Errno::EAGAIN.to_uae()));
            }
            let length = data.len() as u64;
            let call = fs::StoreData64 { fid, status, position, length, file_length };
            ChangeReply::Store(client.store_as(call, &data)?)
        }
        Change::StoreStatus(call) => ChangeReply::StoreStatus(client.ask(call)?),
        Change::RemoveFile(call) => ChangeReply::RemoveFile(client.ask(call)?),
        Change::RemoveDir(call) => ChangeReply::RemoveDir(client.ask(call)?),
        Change::Rename(call) => ChangeReply::Rename(client.ask(call)?),
    })
}

/// Without times, and without the promise, which an object that is gone again does not get.
fn timeless(reply: ChangeReply) -> ChangeReply {
    fn still(status: Status) -> Status {
        let (client_mod_time, server_mod_time) = Default::default();
        Status { client_mod_time, server_mod_time, ..status }
    }
    let sync = VolSync { creation: UnixSeconds(0) };
    let created = |reply: fs::CreateReply| {
        let (status, dir_status) = (still(reply.status), still(reply.dir_status));
        fs::CreateReply { status, dir_status, callback: CallBack::NONE, sync, ..reply }
    };
    let changed = |reply: fs::StatusReply| fs::StatusReply { status: still(reply.status), sync };
    let removed = |reply: fs::RemoveReply| fs::RemoveReply { dir_status: still(reply.dir_status), sync };
    match reply {
        ChangeReply::CreateFile(reply) => ChangeReply::CreateFile(created(reply)),
        ChangeReply::MakeDir(reply) => ChangeReply::MakeDir(created(reply)),
        ChangeReply::Symlink(reply) => {
            let (status, dir_status) = (still(reply.status), still(reply.dir_status));
            ChangeReply::Symlink(fs::SymlinkReply { status, dir_status, sync, ..reply })
        }
        ChangeReply::Link(reply) => {
            let (status, dir_status) = (still(reply.status), still(reply.dir_status));
            ChangeReply::Link(fs::LinkReply { status, dir_status, sync })
        }
        ChangeReply::Store(reply) => ChangeReply::Store(changed(reply)),
        ChangeReply::StoreStatus(reply) => ChangeReply::StoreStatus(changed(reply)),
        ChangeReply::RemoveFile(reply) => ChangeReply::RemoveFile(removed(reply)),
        ChangeReply::RemoveDir(reply) => ChangeReply::RemoveDir(removed(reply)),
        ChangeReply::Rename(reply) => {
            let [old_dir_status, new_dir_status] = [reply.old_dir_status, reply.new_dir_status].map(still);
            ChangeReply::Rename(fs::RenameReply { old_dir_status, new_dir_status, sync })
        }
    }
}

/// A change in one directory, of names that may be there or not, and of one file that is.
fn random_change(rng: &mut Rng, dir: Fid, file: Fid) -> Change {
    let [text, other] = [(); 2].map(|()| format!("n{}", rng.below(7)));
    let data = vec![7; [0, 1, 500, 16_384][rng.below(4) as usize]];
    match rng.below(14) {
        0..=3 => create(dir, &text, &data),
        4 => make_dir(dir, &text),
        5 => {
            let (name, contents) = (name(&text), PathText::truncated(b"to"));
            Change::Symlink(fs::Symlink { dir, name, contents, status: mode(0o755) })
        }
        6 => Change::Link(fs::Link { dir, name: name(&text), existing: file }),
        7 => store(file, ANY_VERSION, &data),
        8 => store(file, DataVersion(rng.below(6)), &data),
        9 => {
            let status = SetStatus { mode: Some(Mode(0o600)), ..SetStatus::default() };
            Change::StoreStatus(fs::StoreStatus { fid: file, status })
        }
        10 | 11 => remove(dir, &text),
        12 => Change::RemoveDir(fs::RemoveDir { dir, name: name(&text) }),
        _ => rename(dir, &text, &other),
    }
}

#[test]
fn a_list_has_the_replies_of_its_changes_one_by_one() {
    for seed in 0..6 {
        let (single, list) = (Cell::new(700 + seed), Cell::new(700 + seed));
        let clients = [single.client(1), list.client(1)];
        let dir = single.root();
        let [file, same] = [0, 1].map(|at: usize| clients[at].create(dir, "file").unwrap().fid);
        assert_eq!(file, same);
        let mut rng = Rng(900 + seed);
        for _ in 0..25 {
            let changes: Vec<_> = (0..1 + rng.below(6)).map(|_| random_change(&mut rng, dir, file)).collect();
            let (mut expected, mut failed) = (Vec::new(), AbortCode::OK);
            for change in changes.clone() {
                match one(&clients[0], change) {
                    Ok(reply) => expected.push(timeless(reply)),
                    Err(CallError::Abort(code)) => {
                        failed = code;
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            match ask(&clients[1], changes.clone()) {
                Ok(reply) => {
                    let done: Vec<_> = reply.done.into_iter().map(timeless).collect();
                    assert_eq!((done, reply.code), (expected, failed), "seed {seed}: {changes:?}");
                }
                refused => {
                    assert!(expected.is_empty(), "seed {seed}: {changes:?}: {refused:?}");
                    assert_eq!(refusal(refused), failed, "seed {seed}: {changes:?}");
                }
            }
        }
    }
}

#[test]
fn what_a_list_made_is_there_after_a_crash_with_its_data() {
    let mut cell = Cell::new(720);
    let (client, dir) = (cell.client(1), cell.root());
    let files = (0..20).map(|n| create(dir, &format!("f{n}"), &[n; 2000]));
    let reply = ask(&client, files).unwrap();
    assert_eq!((reply.done.len(), reply.code), (20, AbortCode::OK));
    cell.restart();
    for (n, made) in reply.done.into_iter().enumerate() {
        let ChangeReply::CreateFile(made) = made else { panic!("{made:?}") };
        assert_eq!((made.status.length, made.status.data_version), (2000, DataVersion(1)));
        assert_eq!(client.read(made.fid), vec![n as u8; 2000]);
    }
}

#[test]
fn other_clients_hear_of_all_changes_before_the_reply_and_the_caller_of_none() {
    let cell = Cell::new(721);
    let (client, other, dir) = (cell.client(1), cell.client(2), cell.root());
    let file = client.create(dir, "file").unwrap().fid;
    other.fetch_status(dir).unwrap();
    other.fetch_status(file).unwrap();
    client.fetch_status(dir).unwrap();
    let _ = (client.heard(), other.heard());
    let changes = [create(dir, "a", b"x"), store(file, ANY_VERSION, b"new"), create(dir, "b", b"")];
    let reply = ask(&client, changes).unwrap();
    let mut broken: Vec<Fid> = Vec::new();
    for heard in other.heard() {
        let Heard::Break(fids) = heard else { panic!("{heard:?}") };
        broken.extend(fids);
    }
    broken.sort_unstable();
    let mut expected = [dir, file];
    expected.sort_unstable();
    assert_eq!(broken, expected, "each once");
    assert_eq!(client.heard(), []);
    // The new files are promised to the caller.
    let ChangeReply::CreateFile(made) = &reply.done[0] else { panic!("{reply:?}") };
    assert!(made.callback.expires_in > 0);
    other.store(made.fid, 0, b"y").unwrap();
    assert_eq!(client.heard(), [Heard::Break(vec![made.fid])]);
}

#[test]
fn a_file_that_the_list_removes_again_is_not_promised() {
    let cell = Cell::new(722);
    let (client, dir) = (cell.client(1), cell.root());
    let reply = ask(&client, [create(dir, "a", b"x"), remove(dir, "a")]).unwrap();
    let ChangeReply::CreateFile(made) = &reply.done[0] else { panic!("{reply:?}") };
    assert_eq!(made.callback, CallBack::NONE);
    assert_eq!(client.refusal(fs::FetchStatus { fid: made.fid }), AbortCode::VNOVNODE);
}

#[test]
fn a_list_ends_at_the_first_change_that_fails() {
    let cell = Cell::new(723);
    let (client, dir) = (cell.client(1), cell.root());
    let reply =
        ask(&client, [create(dir, "a", b"1"), create(dir, "a", b"2"), create(dir, "b", b"3")]).unwrap();
    assert_eq!((reply.done.len(), reply.code), (1, Errno::EEXIST.to_uae()));
    assert_eq!(client.refusal(fs::RemoveFile { dir, name: name("b") }), Errno::ENOENT.to_uae());
    assert_eq!(refusal(ask(&client, [remove(dir, "b"), create(dir, "c", b"")])), Errno::ENOENT.to_uae());
    assert_eq!(client.refusal(fs::RemoveFile { dir, name: name("c") }), Errno::ENOENT.to_uae());
}

#[test]
fn lists_of_other_volumes_and_of_nothing_are_refused_with_nothing_changed() {
    let cell = Cell::new(724);
    let (client, dir) = (cell.client(1), cell.root());
    let elsewhere = Fid { volume: VolumeId(dir.volume.0 + 77), ..dir };
    let exdev = Errno::EXDEV.to_uae();
    assert_eq!(refusal(ask(&client, [create(dir, "a", b""), create(elsewhere, "b", b"")])), exdev);
    let moved = fs::Rename { old_dir: dir, old_name: name("a"), new_dir: elsewhere, new_name: name("a") };
    assert_eq!(refusal(ask(&client, [create(dir, "a", b""), Change::Rename(moved)])), exdev);
    let linked = fs::Link { dir, name: name("l"), existing: elsewhere };
    assert_eq!(refusal(ask(&client, [create(dir, "a", b""), Change::Link(linked)])), exdev);
    assert_eq!(client.refusal(fs::RemoveFile { dir, name: name("a") }), Errno::ENOENT.to_uae());
    assert_eq!(client.refusal(first_list(dir.volume, [])), Errno::EINVAL.to_uae());
    let list = first_list(elsewhere.volume, [create(elsewhere, "a", b"")]);
    assert_eq!(client.refusal(list), AbortCode::VNOVOL);
}

#[test]
fn bytes_that_cannot_be_are_refused() {
    let cell = Cell::new(725);
    let (client, dir) = (cell.client(1), cell.root());
    let file = client.create(dir, "file").unwrap().fid;
    let status = SetStatus::default();
    let big = |position, file_length| {
        let (expected, data) = (ANY_VERSION, SmallData::new(b"x").unwrap());
        Change::Store(StoreSmall { fid: file, status, expected, position, file_length, data })
    };
    for change in [big(u64::MAX, 0), big(i64::MAX as u64, 0), big(0, u64::MAX), big((1 << 52) + 1, 0)] {
        assert_eq!(refusal(ask(&client, [change.clone()])), Errno::EFBIG.to_uae(), "{change:?}");
        let reply = ask(&client, [store(file, ANY_VERSION, b"y"), change]).unwrap();
        assert_eq!((reply.done.len(), reply.code), (1, Errno::EFBIG.to_uae()));
    }
    let changes = [create(dir, "n", b"data"), remove(dir, "n"), store(file, ANY_VERSION, b"z")];
    let list = first_list(dir.volume, changes);
    let bytes = encode_call(&list);
    let mut rng = Rng(17);
    for _ in 0..300 {
        let mut wrong = bytes.clone();
        for _ in 0..1 + rng.below(3) {
            let at = 4 + rng.below(bytes.len() as u64 - 4) as usize;
            wrong[at] = rng.next() as u8;
        }
        wrong.truncate(wrong.len() - if rng.chance(20) { rng.below(40) as usize } else { 0 });
        // Any reply, and no harm.
        let _ = client.raw(FILES, ServiceId::FILE, wrong);
    }
    client.store(file, 0, b"well").unwrap();
    assert_eq!(client.read(file), b"well");
}

#[test]
fn each_change_is_recorded_as_its_single_call() {
    let cell = Cell::new(726);
    let (client, dir) = (cell.client(1).acting_as(&Claim::of("alice")), cell.root());
    client.fetch_status(dir).unwrap();
    cell.recorded();
    ask(&client, [create(dir, "a", b"x"), remove(dir, "b"), create(dir, "c", b"x")]).unwrap();
    let enoent = Errno::ENOENT.to_uae().0;
    let calls: Vec<_> =
        cell.recorded().into_iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
    let expected = [format!("CreateFile {dir}/a -> 0"), format!("RemoveFile {dir}/b -> {enoent}")];
    assert_eq!(calls, expected);
}
