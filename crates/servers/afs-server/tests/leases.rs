//! Leases of directories: what is lent to whom, numbered lists, and that every other call waits for the recall.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::time::Duration;

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, ANY_VERSION, Change, LeaseId, ListedChange, SetStatus, TakeLease};
use afs_wire::ids::{DataVersion, Fid, FileTime, PartitionNumber};
use afs_wire::vol::{self, AttachFlags};
use rig::leasing::*;
use rig::{CallResult, Cell, Claim, Client, Heard, mode, name};

fn names(client: &Client, dir: Fid) -> Vec<String> {
    entries(client, dir).into_keys().collect()
}

#[test]
fn a_list_makes_what_was_lent_and_the_other_client_sees_it_by_the_recall() {
    let cell = Cell::new(1);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let before = names(&b, dir);
    let lease = take(&a, dir);
    assert_eq!(lease.fids.len(), 10);
    let (file, sub) = (lease.fids[0], lease.fids[8]);
    assert!(!file.vnode.is_directory() && sub.vnode.is_directory());
    let first = list(dir, lease.lease, 1, &[created(dir, file, "f", b"one"), made_dir(dir, sub, "d")]);
    let reply = a.ask(first.clone()).unwrap();
    assert_eq!((reply.done.len(), reply.code), (2, AbortCode::OK));
    let again = a.ask(first).unwrap();
    assert_eq!(
        (objects(&again), again.code),
        (objects(&reply), reply.code),
        "what is sent again is said again"
    );
    let inner = created(sub, lease.fids[1], "inner", b"two");
    let second = list(dir, lease.lease, 2, &[inner, stored(file, b"three")]);
    let sent = send_when_recalled(&a, vec![second]);
    a.heard();
    let mut now = before;
    now.extend(["d".to_owned(), "f".to_owned()]);
    now.sort();
    assert_eq!(names(&b, dir), now);
    assert_eq!(a.heard(), [Heard::Recall(dir, lease.lease)]);
    assert_eq!(sent.lock().unwrap().len(), 1);
    assert_eq!((b.read(file), b.read(lease.fids[1])), (b"three".to_vec(), b"two".to_vec()));
    refused(a.ask(list(dir, lease.lease, 3, &[removed(dir, "f")])), ESTALE);
}

#[test]
fn only_who_changes_a_directory_alone_and_relies_on_it_gets_a_lease() {
    let cell = Cell::new(2);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let again = Errno::EAGAIN;
    a.fetch_status(dir).unwrap();
    refused(a.ask(ask_for(dir)), again);
    earn(&a, dir);
    b.fetch_status(dir).unwrap();
    refused(a.ask(ask_for(dir)), again);
    for n in 0..3 {
        a.create(dir, &format!("n{n}")).unwrap();
    }
    for (files, directories) in [(0, 0), (200, 57), (u32::MAX, u32::MAX)] {
        refused(a.ask(TakeLease { dir, files, directories, space: 0 }), Errno::EINVAL);
    }
    let lease = a.ask(ask_for(dir)).unwrap();
    let heard = b.heard();
    assert!(heard.contains(&Heard::Break(vec![dir])), "others do not rely on it any more: {heard:?}");
    refused(b.ask(ask_for(dir)), again);
    assert_eq!(a.refusal(ask_for(lease.fids[0])), AbortCode::VNOVNODE);
    // The one that has it gets another one.
    let other = a.ask(ask_for(dir)).unwrap();
    refused(a.ask(list(dir, lease.lease, 1, &[removed(dir, "n0")])), ESTALE);
    assert_eq!(a.ask(list(dir, other.lease, 1, &[removed(dir, "n0")])).unwrap().code, AbortCode::OK);
    a.ask(fs::ReturnLease { dir, lease: other.lease }).unwrap();
    refused(a.ask(fs::ReturnLease { dir, lease: other.lease }), ESTALE);
}

#[test]
fn a_client_that_never_answers_loses_the_lease_and_hears_of_it_before_its_next_call() {
    let cell = Cell::new(3);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    b.fetch_status(dir).unwrap();
    let lease = take(&a, dir);
    never_answer(&a);
    let begun = cell.world().now();
    b.create(dir, "of b").unwrap();
    assert!(cell.world().now() - begun < Duration::from_secs(6));
    a.heard();
    refused(a.ask(list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "late", b"")])), ESTALE);
    assert!(a.heard().contains(&Heard::Break(vec![dir])));
    assert!(b.fetch_status(lease.fids[0]).is_err());
    // Its numbers are for others.
    let fid = b.create(dir, "next").unwrap().fid;
    assert!(lease.fids.iter().any(|lent| lent.vnode == fid.vnode && lent.unique != fid.unique));
}

#[test]
fn wrong_lists_change_nothing_and_use_no_number() {
    let cell = Cell::new(4);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let other = a.make_dir(dir, "other").unwrap().fid;
    let outside = a.create(other, "outside").unwrap().fid;
    let lease = take(&a, dir);
    let (id, fid) = (lease.lease, lease.fids[0]);
    let einval = Errno::EINVAL;
    let good = created(dir, fid, "good", b"x");
    for number in [0, 2, u64::MAX] {
        refused(a.ask(list(dir, id, number, from_ref(&good))), einval);
    }
    refused(a.ask(list(dir, id, 1, &[])), einval);
    let mut not_lent = fid;
    not_lent.unique.0 += 1;
    for wrong in [
        created(dir, not_lent, "n", b""),
        created(dir, Fid::default(), "n", b""),
        created(other, fid, "n", b""),
        stored(outside, b""),
        removed(other, "outside"),
        ListedChange { object: fid, ..removed(dir, "good") },
        Change::Rename(fs::Rename {
            old_dir: dir,
            old_name: name("other"),
            new_dir: other,
            new_name: name("o"),
        })
        .into(),
    ] {
        refused(a.ask(list(dir, id, 1, &[good.clone(), wrong])), einval);
    }
    // Of another lease, and by another machine that knows the lease.
    refused(a.ask(list(dir, LeaseId(id.0 ^ 1), 1, from_ref(&good))), ESTALE);
    refused(b.ask(list(dir, id, 1, from_ref(&good))), ESTALE);
    refused(b.ask(fs::ReturnLease { dir, lease: id }), ESTALE);
    let reply = a.ask(list(dir, id, 1, from_ref(&good))).unwrap();
    assert_eq!((reply.done.len(), reply.code), (1, AbortCode::OK));
    refused(b.ask(list(dir, id, 1, from_ref(&good))), ESTALE);
    refused(a.ask(list(dir, id, 1, &[removed(dir, "good")])), einval);
    refused(a.ask(list(dir, id, 3, &[removed(dir, "good")])), einval);
    // A number that was used, and one of the other kind: the lease stays.
    for wrong in [created(dir, fid, "twice", b""), made_dir(dir, lease.fids[1], "file")] {
        let reply = a.ask(list(dir, id, 2, &[wrong, removed(dir, "good")])).unwrap();
        assert_eq!((reply.done.len(), reply.code), (0, einval.to_uae()));
    }
    let both = [created(dir, lease.fids[2], "p", b""), created(dir, lease.fids[2], "q", b"")];
    let reply = a.ask(list(dir, id, 2, &both)).unwrap();
    assert_eq!((reply.done.len(), reply.code), (1, einval.to_uae()));
    assert_eq!(names(&b, dir).iter().filter(|name| ["good", "p", "q"].contains(&name.as_str())).count(), 2);
}

#[test]
fn changes_have_the_times_at_which_they_were_made_unless_these_go_back_or_are_far_ahead() {
    let cell = Cell::new(31);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let lease = take(&a, dir);
    let last = lease.status.server_mod_time;
    let mut number = 0;
    let mut times = |change: ListedChange, time: FileTime| {
        number += 1;
        let reply = a.ask(list(dir, lease.lease, number, &[ListedChange { time, ..change }])).unwrap();
        assert_eq!(reply.code, AbortCode::OK);
        let fs::ChangeReply::MakeDir(made) = &reply.done[0] else { panic!("{reply:?}") };
        let of = |status: &fs::Status| [status.client_mod_time, status.server_mod_time];
        (of(&made.dir_status), of(&made.status))
    };
    let (first, second) = (lease.fids[8], lease.fids[9]);
    let made = last.after(5);
    let both = ([made; 2], [made; 2]);
    assert_eq!(times(made_dir(dir, first, "in time"), made), both);
    let hour = 3_600_000_000_000;
    let (parent, sub) = times(made_dir(dir, second, "far ahead"), made.after(hour));
    assert!(
        parent[1] > made
            && parent[1] < made.after(hour)
            && parent[0] <= parent[1]
            && sub[0] < made.after(hour)
    );
    let earlier = ListedChange { time: last, ..created(dir, lease.fids[0], "earlier", b"") };
    let reply = a.ask(list(dir, lease.lease, 3, &[earlier])).unwrap();
    assert_eq!((reply.done.len(), reply.code), (1, AbortCode::OK));
    let after = b.fetch_status(dir).unwrap().status;
    assert!(after.server_mod_time > parent[1] && after.client_mod_time > last, "it went back");
}

#[test]
fn the_holder_of_a_lease_knows_how_many_names_its_files_have() {
    let cell = Cell::new(30);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let outside = a.create(dir, "outside").unwrap().fid;
    let lease = take(&a, dir);
    let [file, other] = [lease.fids[0], lease.fids[1]];
    let git = |file, n: u32| {
        let [from, to] = ["tmp", "object"].map(|kind| format!("{kind}{n}"));
        [created(dir, file, &from, b"data"), linked(dir, file, &to), removed(dir, &from)]
    };
    a.heard();
    let reply = a.ask(list(dir, lease.lease, 1, &git(file, 1))).unwrap();
    assert!(matches!(&reply.done[1], fs::ChangeReply::Link(linked) if linked.status.link_count == 2));
    let [make, link, remove] = git(other, 2);
    assert_eq!(a.ask(list(dir, lease.lease, 2, &[make, link])).unwrap().code, AbortCode::OK);
    assert_eq!(a.ask(list(dir, lease.lease, 3, &[remove])).unwrap().code, AbortCode::OK);
    assert_eq!(a.heard(), [], "it has decided the removals itself");
    refused(a.ask(list(dir, lease.lease, 4, &[linked(dir, outside, "second")])), Errno::EINVAL);
    for file in [file, other] {
        assert_eq!((b.fetch_status(file).unwrap().status.link_count, b.read(file)), (1, b"data".to_vec()));
    }
    assert!(names(&b, dir).iter().all(|name| !name.starts_with("tmp")));
}

#[test]
fn more_is_lent_to_the_holder_of_a_lease_within_bounds() {
    let cell = Cell::new(31);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let foreign = b.make_dir(dir, "of b").unwrap().fid;
    let lease = take(&a, dir);
    let id = lease.lease;
    let more = |files, directories| fs::LendMore {
        dir,
        lease: id,
        files,
        directories,
        left: u64::MAX,
        space: u64::MAX,
        returned: fs::LentFids::new(),
    };
    for (files, directories) in [(0, 0), (200, 57), (u32::MAX, u32::MAX)] {
        refused(a.ask(more(files, directories)), Errno::EINVAL);
    }
    refused(b.ask(more(1, 0)), ESTALE);
    refused(a.ask(fs::LendMore { lease: LeaseId(id.0 ^ 1), ..more(1, 0) }), ESTALE);
    let mut all: BTreeSet<Fid> = lease.fids.iter().copied().collect();
    let first = a.ask(more(200, 56)).unwrap();
    assert!(first.fids.len() == 256 && lease.space + first.space <= 16 << 20);
    all.extend(first.fids.iter());
    for _ in 0..2 {
        all.extend(a.ask(more(200, 56)).unwrap().fids.iter());
    }
    refused(a.ask(more(200, 56)), Errno::EAGAIN);
    let again = a.ask(fs::LendMore { left: 1 << 20, ..more(1, 0) }).unwrap();
    assert_eq!(again.space, 15 << 20, "what is not needed is released");
    all.extend(again.fids.iter());
    all.extend(a.ask(more(245, 0)).unwrap().fids.iter());
    refused(a.ask(more(1, 0)), Errno::EAGAIN);
    assert_eq!(all.len(), 1024, "each is lent once");
    let [file, sub] = [first.fids[0], first.fids[255]];
    let changes = [made_dir(dir, sub, "sub"), created(sub, file, "inner", b"data")];
    assert_eq!(a.ask(list(dir, id, 1, &changes)).unwrap().code, AbortCode::OK);
    // What is given back is lent no more; what another client made stays its own.
    let unused = first.fids[1];
    let returned = fs::LentFids::first_of([file, unused, file, foreign]);
    refused(a.ask(fs::LendMore { returned: returned.clone(), ..more(3, 0) }), Errno::EAGAIN);
    let instead = a.ask(fs::LendMore { returned, ..more(2, 0) }).unwrap().fids;
    all.extend(instead.iter());
    refused(a.ask(more(1, 0)), Errno::EAGAIN);
    refused(a.ask(list(dir, id, 2, &[stored(file, b"more")])), Errno::EINVAL);
    refused(a.ask(list(dir, id, 2, &[created(sub, unused, "unused", b"")])), Errno::EINVAL);
    assert_eq!(
        a.ask(list(dir, id, 2, &[created(sub, instead[0], "instead", b"")])).unwrap().code,
        AbortCode::OK
    );
    a.heard();
    assert_eq!((b.read(file), a.heard()), (b"data".to_vec(), vec![]), "it is no object of the lease");
    // What is lent later is recalled, and taken back, with what was lent at first.
    assert_eq!(b.read(instead[0]), b"");
    assert_eq!(a.heard(), [Heard::Recall(dir, id)]);
    refused(a.ask(more(1, 0)), ESTALE);
    let next = b.create(dir, "next").unwrap().fid;
    assert!(all.iter().any(|lent| lent.vnode == next.vnode) && !all.contains(&next));
}

#[test]
fn a_directory_that_a_client_has_just_made_is_lent_to_it() {
    let cell = Cell::new(32);
    let (a, b, root) = (cell.client(1), cell.client(2), cell.root());
    let [alone, seen] = ["alone", "seen"].map(|text| a.make_dir(root, text).unwrap().fid);
    refused(b.ask(ask_for(alone)), Errno::EAGAIN);
    assert_eq!(a.ask(ask_for(alone)).unwrap().fids.len(), 10);
    b.fetch_status(seen).unwrap();
    refused(a.ask(ask_for(seen)), Errno::EAGAIN);
}

fn done<T: std::fmt::Debug>(outcome: CallResult<T>) {
    outcome.unwrap();
}

/// A call of another client.
type Attempt = (&'static str, fn(&Client, Fid, Fid, Fid));

const OTHERS: &[Attempt] = &[
    ("FetchStatus", |b, dir, _, _| done(b.fetch_status(dir))),
    ("FetchStatus of a file", |b, _, file, _| done(b.fetch_status(file))),
    ("FetchData", |b, dir, _, _| done(b.fetch(dir, 0, 10))),
    ("FetchData of a file", |b, _, file, _| done(b.fetch(file, 0, 10))),
    ("FetchACL", |b, dir, _, _| done(b.ask(fs::FetchAcl { fid: dir }))),
    ("BulkStatus", |b, dir, file, other| {
        let fids = fs::Fids::first_of([other, file, dir]);
        b.ask(fs::BulkStatus { fids }).unwrap();
    }),
    ("InlineBulkStatus", |b, dir, _, other| {
        let fids = fs::Fids::first_of([other, dir]);
        b.ask(fs::InlineBulkStatus { fids }).unwrap();
    }),
    ("CreateFile", |b, dir, _, _| done(b.create(dir, "b"))),
    ("MakeDir", |b, dir, _, _| done(b.make_dir(dir, "b"))),
    ("Symlink", |b, dir, _, _| done(b.symlink(dir, "b", "to", 0o755))),
    ("RemoveFile", |b, dir, _, _| done(b.remove(dir, "held back"))),
    ("RemoveDir of a name", |b, dir, _, _| refused(b.remove_dir(dir, "nothing"), Errno::ENOENT)),
    ("RemoveDir of the directory", |b, _, _, other| {
        let code = b.remove_dir(other, "dir").unwrap_err().abort_code();
        assert_eq!(code, Some(Errno::EEXIST.to_uae()));
    }),
    ("Rename of the directory", |b, _, _, other| done(b.rename(other, "dir", other, "moved"))),
    ("Rename from it", |b, dir, _, other| done(b.rename(dir, "held back", other, "x"))),
    ("Rename into it", |b, dir, _, other| done(b.rename(other, "plain", dir, "held back"))),
    ("Link", |b, dir, file, _| done(b.link(dir, "second", file))),
    ("StoreData", |b, _, file, _| done(b.store(file, 0, b"new"))),
    ("StoreStatus", |b, dir, _, _| {
        b.ask(fs::StoreStatus { fid: dir, status: mode(0o700) }).unwrap();
    }),
    ("StoreACL", |b, dir, _, _| {
        let acl = fs::AclText::new("1\n0\nsystem:anyuser\t127\n\0").unwrap();
        b.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    }),
    ("SetLock", |b, _, file, _| done(b.ask(fs::SetLock { fid: file, kind: fs::LockKind::READ }))),
    ("ChangeList", |b, dir, _, other| {
        let remove = |dir, text| Change::RemoveFile(fs::RemoveFile { dir, name: name(text) });
        let list = first_list(dir.volume, [remove(other, "plain"), remove(dir, "held back")]);
        assert_eq!(b.ask(list).unwrap().done.len(), 2);
    }),
    ("StoreRanges", |b, _, file, _| {
        let (status, expected) = (SetStatus::default(), ANY_VERSION);
        let store = fs::StoreRanges { fid: file, status, expected, file_length: 9, grown_to: 9, ranges: 0 };
        let _ = b.store_as(store, b"");
    }),
    ("GetCapability", |b, dir, _, _| {
        let (access, drive) = (fs::CapabilityAccess::READ, fs::OWN_DRIVE);
        let wanted = [fs::CapabilityRequest { fid: dir, access, drive }];
        b.ask(fs::GetCapability { wanted: fs::CapabilityRequests::first_of(wanted) }).unwrap();
    }),
    ("GetCapability of a drive", |b, _, file, _| {
        let (access, drive) = (fs::CapabilityAccess::READ, afs_wire::xdr::Fixed([1; 16]));
        let wanted = [fs::CapabilityRequest { fid: file, access, drive }];
        b.ask(fs::GetCapability { wanted: fs::CapabilityRequests::first_of(wanted) }).unwrap();
    }),
    ("GetLayout", |b, _, file, _| {
        let version = afs_wire::ids::DataVersion(1);
        let wanted = [fs::LayoutRequest { fid: file, version, start: 0, end: 10 }];
        b.ask(fs::GetLayout { wanted: fs::LayoutRequests::first_of(wanted) }).unwrap();
    }),
];

#[test]
fn every_call_of_others_waits_until_what_the_holder_did_is_there() {
    for (seed, (call, attempt)) in OTHERS.iter().enumerate() {
        let cell = Cell::new(100 + seed as u64);
        cell.open_data_path();
        let (a, b, root) = (cell.client(1), cell.client(2), cell.root());
        let dir = a.make_dir(root, "dir").unwrap().fid;
        b.create(root, "plain").unwrap();
        b.fetch_status(dir).unwrap();
        let lease = take(&a, dir);
        let file = lease.fids[0];
        let first = list(dir, lease.lease, 1, &[created(dir, file, "sent", b"content")]);
        a.ask(first).unwrap();
        let held_back = list(dir, lease.lease, 2, &[created(dir, lease.fids[1], "held back", b"")]);
        let sent = send_when_recalled(&a, vec![held_back]);
        a.heard();
        attempt(&b, dir, file, root);
        let recalled: Vec<_> =
            a.heard().into_iter().filter(|heard| matches!(heard, Heard::Recall(..))).collect();
        assert_eq!(recalled, [Heard::Recall(dir, lease.lease)], "{call}");
        assert!(matches!(sent.lock().unwrap()[..], [Ok(())]), "{call}");
        refused(a.ask(list(dir, lease.lease, 3, &[removed(dir, "sent")])), ESTALE);
    }
}

const A: PartitionNumber = PartitionNumber(0);

#[test]
fn the_volume_service_recalls_what_is_lent_and_nothing_is_lent_meanwhile() {
    for (seed, flags) in
        [AttachFlags::BUSY, AttachFlags::OFFLINE, AttachFlags::READ_ONLY].into_iter().enumerate()
    {
        let cell = Cell::new(20 + seed as u64);
        let (a, owner, dir) = (cell.client(1), cell.owner(), cell.root());
        let lease = take(&a, dir);
        let sent = send_when_recalled(
            &a,
            vec![list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "f", b"x")])],
        );
        let open = vol::TransCreate { volume: dir.volume, partition: A, flags };
        let transaction = owner.ask(open).unwrap().transaction;
        assert!(matches!(sent.lock().unwrap()[..], [Ok(())]), "it came before the volume was busy");
        if flags == AttachFlags::READ_ONLY {
            earn(&a, dir);
            refused(a.ask(ask_for(dir)), Errno::EAGAIN);
        }
        owner.ask(vol::EndTrans { transaction }).unwrap();
        a.read(lease.fids[0]);
        take(&a, dir);
    }
}

#[test]
fn a_volume_whose_setting_forbids_leases_lends_nothing_until_it_allows_them_again() {
    let cell = Cell::new(24);
    let (a, owner, dir) = (cell.client(1), cell.owner(), cell.root());
    let set = |lending| {
        let open = vol::TransCreate { volume: dir.volume, partition: A, flags: AttachFlags::BUSY };
        let transaction = owner.ask(open).unwrap().transaction;
        owner.ask(vol::SetLending { transaction, lending }).unwrap();
        owner.ask(vol::EndTrans { transaction }).unwrap();
        let told = owner.ask(vol::GetLending { volume: dir.volume }).unwrap().lending;
        assert_eq!(told, lending);
    };
    let lease = take(&a, dir);
    let last = list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "f", b"x")]);
    let sent = send_when_recalled(&a, vec![last]);
    set(vol::Lending::Off);
    assert!(matches!(sent.lock().unwrap()[..], [Ok(())]), "what was decided came before the setting");
    assert_eq!(a.read(lease.fids[0]), b"x");
    earn(&a, dir);
    refused(a.ask(ask_for(dir)), Errno::EOPNOTSUPP);
    set(vol::Lending::On);
    take(&a, dir);
}

#[test]
fn a_restart_of_the_server_ends_all_leases() {
    let mut cell = Cell::new(23);
    let (a, dir) = (cell.client(1), cell.root());
    let lease = take(&a, dir);
    a.ask(list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "kept", b"x")])).unwrap();
    cell.restart();
    for number in [1, 2] {
        let lost = list(dir, lease.lease, number, &[created(dir, lease.fids[1], "lost", b"")]);
        refused(a.ask(lost), ESTALE);
    }
    assert_eq!(a.read(lease.fids[0]), b"x");
    // The numbers that were not used are used now, by others.
    let again: Vec<Fid> = (0..7).map(|n| a.create(dir, &format!("n{n}")).unwrap().fid).collect();
    assert!(again.iter().all(|fid| lease.fids[1..8].iter().any(|lent| lent.vnode == fid.vnode)));
    assert!(again.iter().all(|fid| !lease.fids.contains(fid)));
}

#[test]
fn leases_of_one_client_and_of_all_are_bounded() {
    let cell = Cell::new(24);
    let root = cell.root();
    let again = Errno::EAGAIN.to_uae();
    // A new directory is lent to the client that has made it.
    let lent = |client: &Client, name: &str, wanted: usize, files: u32| {
        let dirs = (0..wanted).map(|n| client.make_dir(root, &format!("{name} {n}")).unwrap().fid);
        let taken = dirs.map(|dir| client.ask(TakeLease { dir, files, directories: 0, space: u64::MAX }));
        let is_lent = |taken: &CallResult<fs::TakeLeaseReply>| match taken {
            Ok(_) => true,
            Err(CallError::Abort(code)) if *code == again => false,
            other => panic!("{other:?}"),
        };
        taken.filter(is_lent).count()
    };
    let anonymous: Vec<usize> = [(1, 300), (2, 300), (3, 1)]
        .into_iter()
        .map(|(number, wanted)| lent(&cell.client(number), &number.to_string(), wanted, 1))
        .collect();
    assert_eq!(anonymous, [300, 212, 0], "those without tokens have 512 together");
    let with_token = |number| cell.client(number).acting_as(&Claim::of("alice"));
    assert_eq!(lent(&with_token(50), "many", 514, 1), 512);
    assert_eq!(lent(&with_token(51), "large", 34, 256), 32, "a client has 8192 fids");
}

#[test]
fn quota_is_reserved_in_part_and_decides_in_the_list() {
    let cell = Cell::new(25);
    let (a, b, owner, dir) = (cell.client(1), cell.client(2), cell.owner(), cell.root());
    let used = b.ask(fs::GetVolumeStatus { volume: dir.volume }).unwrap().status.blocks_used;
    let set = fs::SetVolumeStatus { quota_max: Some(used + 400), ..fs::SetVolumeStatus::default() };
    let (name, empty) = (fs::Name::default(), fs::PathText::default());
    let call = fs::StoreVolumeStatus {
        volume: dir.volume,
        status: set,
        name,
        offline_message: empty.clone(),
        motd: empty,
    };
    owner.ask(call).unwrap();
    let lease = {
        earn(&a, dir);
        a.ask(TakeLease { dir, files: 60, directories: 0, space: u64::MAX }).unwrap()
    };
    assert!((90 << 10..=100 << 10).contains(&lease.space), "a quarter of what is left: {}", lease.space);
    let mut number = 0;
    let code = loop {
        let object = lease.fids[number];
        let change = created(dir, object, &format!("n{number}"), &[1; 16 << 10]);
        number += 1;
        let reply = a.ask(list(dir, lease.lease, number as u64, &[change])).unwrap();
        if reply.done.is_empty() {
            break reply.code;
        }
    };
    assert_eq!(code, AbortCode::VOVERQUOTA);
    let reply = a.ask(list(dir, lease.lease, number as u64, &[removed(dir, "n0")])).unwrap();
    assert_eq!(reply.code, AbortCode::OK, "the lease stays");
    a.ask(fs::ReturnLease { dir, lease: lease.lease }).unwrap();
}

#[test]
fn a_change_of_the_access_list_ends_the_lease_of_its_own_machine_too() {
    let cell = Cell::new(26);
    let (a, dir) = (cell.client(1), cell.root());
    let lease = take(&a, dir);
    let sent =
        send_when_recalled(&a, vec![list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "f", b"x")])]);
    let acl = fs::AclText::new("1\n0\nsystem:anyuser\t9\n\0").unwrap();
    cell.owner().ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    assert!(matches!(sent.lock().unwrap()[..], [Ok(())]), "by the rights of before");
    refused(a.ask(ask_for(dir)), Errno::EACCES);
    let acl = fs::AclText::new("1\n0\nsystem:anyuser\t127\n\0").unwrap();
    cell.owner().ask(fs::StoreAcl { fid: dir, acl: acl.clone() }).unwrap();
    let lease = take(&a, dir);
    a.heard();
    a.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    assert!(a.heard().contains(&Heard::Recall(dir, lease.lease)));
    refused(a.ask(fs::ReturnLease { dir, lease: lease.lease }), ESTALE);
}

#[test]
fn who_has_no_right_to_a_directory_takes_no_lease_from_anybody() {
    let cell = Cell::new(27);
    let alice = cell.client(1).acting_as(&Claim::of("alice"));
    let nobody = cell.client(2);
    let dir = alice.make_dir(cell.root(), "hers").unwrap().fid;
    let acl = fs::AclText::new("1\n0\nalice\t127\n\0").unwrap();
    alice.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    earn(&alice, dir);
    let _ = nobody.fetch(dir, 0, 10);
    let lease = alice.ask(ask_for(dir)).unwrap();
    alice.ask(list(dir, lease.lease, 1, &[created(dir, lease.fids[0], "f", b"x")])).unwrap();
    alice.heard();
    refused(nobody.fetch(dir, 0, 10), Errno::EACCES);
    refused(nobody.fetch(lease.fids[0], 0, 10), Errno::EACCES);
    refused(nobody.create(dir, "x"), Errno::EACCES);
    refused(nobody.ask(ask_for(dir)), Errno::EACCES);
    assert_eq!(alice.heard(), []);
    assert_eq!(alice.ask(list(dir, lease.lease, 2, &[removed(dir, "f")])).unwrap().code, AbortCode::OK);
}

#[test]
fn promises_of_others_are_broken_when_a_list_is_made() {
    let cell = Cell::new(28);
    let (a, b, dir) = (cell.client(1), cell.client(2), cell.root());
    let file = a.create(dir, "one").unwrap().fid;
    a.link(dir, "two", file).unwrap();
    b.fetch_status(file).unwrap();
    let lease = take(&a, dir);
    b.fetch_status(file).unwrap();
    b.heard();
    a.ask(list(dir, lease.lease, 1, &[removed(dir, "one")])).unwrap();
    assert_eq!(b.heard(), [Heard::Break(vec![file])]);
    assert_eq!(b.fetch_status(file).unwrap().status.link_count, 1);
    assert_eq!(a.ask(fs::ReturnLease { dir, lease: lease.lease }).ok(), Some(()));
}

#[test]
fn bytes_by_the_data_path_wait_for_the_recall_too() {
    let cell = Cell::new(29);
    cell.open_data_path();
    let (a, b, root) = (cell.client(1), cell.client(2), cell.root());
    let dir = a.make_dir(root, "dir").unwrap().fid;
    // A capability for all files of the directory, from before.
    let capability = b.capability(dir, fs::CapabilityAccess::READ).unwrap();
    let path = b.path();
    let lease = take(&a, dir);
    let file = lease.fids[0];
    a.ask(list(dir, lease.lease, 1, &[created(dir, file, "f", b"one")])).unwrap();
    let sent = send_when_recalled(&a, vec![list(dir, lease.lease, 2, &[stored(file, b"two")])]);
    let handle = path.present(&capability);
    // "two" is the third version: of the creation, of its data, of the list that comes with the recall.
    assert_eq!(path.read(&handle, file, (0, 3), DataVersion(2)).unwrap(), b"two");
    assert!(matches!(sent.lock().unwrap()[..], [Ok(())]));
}
