//! Tests of this part alone: no server and no Venus.

use std::sync::atomic::Ordering;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, CHANGES_MAX, Change, CreateSmall, SetStatus, SmallData};
use afs_wire::ids::{DataVersion, FileTime, Uniquifier, UnixSeconds, VnodeId, VolumeId};
use afs_wire::xdr::Encode;

use super::journal::BYTES_MAX;
use super::*;
use crate::api::TokenOwner;
use crate::identity::User;
use crate::key::CellIndex;
use crate::vnode::Vnode;

const DIR: Key = Key { cell: CellIndex(0), fid: Fid::root(VolumeId(7)) };
const ALICE: User = Some(TokenOwner::Uid(1));
const BOB: User = Some(TokenOwner::Uid(2));

fn file(n: u32) -> Key {
    DIR.sibling(VnodeId(2 * n + 2), Uniquifier(n + 9))
}

fn name(text: &str) -> fs::Name {
    fs::Name::new(text).unwrap()
}

fn entry(user: User, object: Fid, vnode: Key, change: Change) -> Entry {
    let dirs = vec![(Arc::new(Vnode::new(DIR)), DataVersion(1))];
    let unlinked = matches!(change, Change::RemoveFile(_)).then_some(vnode);
    let (vnode, since, concerns) = (Arc::new(Vnode::new(vnode)), Instant::ZERO, vec![DIR, vnode]);
    let (time, decided) = (FileTime::default(), Decided::Change(change));
    Entry { user, since, object, time, decided, vnode, dirs, unlinked, concerns, cost: 1 }
}

fn create(user: User, n: u32, data: &[u8]) -> Entry {
    let create = fs::CreateFile { dir: DIR.fid, name: name(&format!("f{n}")), status: SetStatus::default() };
    let data = SmallData::new(data).unwrap();
    entry(user, file(n).fid, file(n), Change::CreateFile(CreateSmall { create, data }))
}

fn remove(user: User, n: u32) -> Entry {
    let remove = fs::RemoveFile { dir: DIR.fid, name: name(&format!("f{n}")) };
    entry(user, Fid::default(), file(n), Change::RemoveFile(remove))
}

fn link(user: User, n: u32) -> Entry {
    let link = fs::Link { dir: DIR.fid, name: name(&format!("l{n}")), existing: file(n).fid };
    entry(user, Fid::default(), file(n), Change::Link(link))
}

#[test]
fn leases_that_are_asked_for_are_bounded() {
    let leases = Leases::default();
    let dir = |n: usize| DIR.sibling(VnodeId(2 * n as u32 + 3), Uniquifier(1));
    let asking: Vec<_> = (0..LEASES_MAX).map(|n| leases.begin_asking(dir(n)).unwrap()).collect();
    assert!(leases.begin_asking(dir(LEASES_MAX)).is_none());
    drop(asking);
    assert!(leases.begin_asking(dir(LEASES_MAX)).is_some());
}

#[test]
fn recalls_that_come_before_their_lease_are_bounded_and_then_no_lease_is_taken() {
    let mut recalled = Recalled::default();
    (0..RECALLS_MAX as u64 - 1).for_each(|n| recalled.note(LeaseId(n)));
    assert!(!recalled.may_be(LeaseId(9999)));
    (0..100).for_each(|n| recalled.note(LeaseId(5000 + n)));
    assert!(recalled.0.len() == RECALLS_MAX && recalled.may_be(LeaseId(9999)));
}

#[test]
fn lists_are_numbered_and_have_the_changes_in_order_of_one_user() {
    let mut journal = Journal::default();
    (0..70).for_each(|n| journal.push(create(ALICE, n, b"")));
    (70..72).for_each(|n| journal.push(create(BOB, n, b"")));
    journal.push(create(ALICE, 72, b""));
    let mut seen = Vec::new();
    while let Some(list) = journal.list() {
        let again = journal.list().unwrap();
        assert!(Arc::ptr_eq(&list, &again), "a list is the same each time it is sent");
        seen.push((list.number.0, list.user, list.entries.len()));
        journal.list_is_over(list.entries.len());
    }
    assert_eq!(seen, [(1, ALICE, CHANGES_MAX), (2, ALICE, 6), (3, BOB, 2), (4, ALICE, 1)]);
    assert!(journal.is_empty() && journal.is_settled(73) && !journal.is_settled(74));
    assert!(!journal.concerns(DIR), "nothing is left");
}

#[test]
fn a_list_fits_into_a_request_and_a_journal_is_bounded() {
    let mut journal = Journal::default();
    let mut pushed = 0;
    while !journal.is_full() {
        journal.push(create(ALICE, pushed, &[7; 16 << 10]));
        pushed += 1;
    }
    assert!((120..130).contains(&pushed), "{pushed}");
    while let Some(list) = journal.list() {
        assert!(list.changes().to_bytes().len() < 64 << 10 && !list.entries.is_empty());
        journal.list_is_over(list.entries.len());
    }
    (0..512).for_each(|n| journal.push(create(ALICE, n, b"")));
    assert!(journal.is_full() && journal.is_due());
}

/// What waits in one journal fills the others too, but not one in which nothing waits: its next change would wait for nothing.
#[test]
fn all_journals_together_are_bounded() {
    let all = Arc::default();
    let mut journals: Vec<Journal> = (0..40).map(|_| Journal::beside(&all)).collect();
    for journal in &mut journals {
        (0..60).for_each(|n| journal.push(create(ALICE, n, &[7; 16 << 10])));
    }
    assert!(journals[0].is_full() && !journals[0].has_room(1));
    let mut empty = Journal::beside(&all);
    assert!(!empty.is_full() && !empty.has_room(1 << 20));
    empty.push(create(ALICE, 1, b""));
    assert!(empty.is_full());
    journals.truncate(20);
    assert!(!empty.is_full() && empty.has_room(1 << 20), "what is over counts no more");
    while let Some(list) = journals[0].list() {
        journals[0].list_is_over(list.entries.len());
    }
    drop(journals);
    assert!(all.load(Ordering::SeqCst) < 1000);
}

#[test]
fn a_whole_file_is_stored_between_two_lists() {
    let mut journal = Journal::default();
    journal.push(create(ALICE, 1, b""));
    let (fid, data) = (file(1).fid, vec![7; 100_000].into());
    let store = WholeStore { fid, status: SetStatus::default(), expected: DataVersion(1), data };
    let change = Change::StoreStatus(fs::StoreStatus { fid, status: SetStatus::default() });
    journal.push(Entry { decided: Decided::Store(store), ..entry(ALICE, Fid::default(), file(1), change) });
    journal.push(create(ALICE, 2, b""));
    assert!(!journal.is_due() && !journal.join_status(file(1), ALICE, &SetStatus::default()));
    for _ in 0..2 {
        let Some(Next::List(list)) = journal.next() else { panic!("the creation is first") };
        assert_eq!(list.changes().len(), 1);
    }
    journal.list_is_over(1);
    assert!(journal.concerns_once(file(1)));
    for _ in 0..2 {
        let Some(Next::Store(first)) = journal.next() else { panic!("then the store") };
        assert_eq!(first.vnode.key, file(1));
    }
    assert!(!journal.has_room(BYTES_MAX) && journal.has_room(BYTES_MAX / 2));
    journal.first_is_over();
    assert!(!journal.concerns(file(1)) && matches!(journal.next(), Some(Next::List(_))));
}

#[test]
fn what_a_list_has_not_made_waits_again_in_front() {
    let mut journal = Journal::default();
    (0..5).for_each(|n| journal.push(create(ALICE, n, b"")));
    journal.list().unwrap();
    journal.push(create(ALICE, 5, b""));
    journal.list_is_over(2);
    assert!(!journal.concerns(file(1)) && journal.concerns(file(2)) && journal.is_settled(2));
    let mut left = Vec::new();
    while let Some(first) = journal.first() {
        left.push(first.vnode.key);
        journal.first_is_over();
    }
    assert_eq!(left, [2, 3, 4, 5].map(file));
    assert!(journal.is_empty() && journal.is_settled(6));
}

#[test]
fn data_goes_with_the_name_that_waits_and_to_no_other() {
    let mut journal = Journal::default();
    journal.push(create(ALICE, 1, b""));
    journal.push(create(ALICE, 2, b""));
    let data = SmallData::new(*b"data").unwrap();
    let add = |journal: &mut Journal, n, user| {
        journal.add_data(&SmallFile { key: file(n), user, data: &data, time: UnixSeconds(5).into() })
    };
    assert!(!add(&mut journal, 1, BOB), "it would be stored by another user");
    assert!(!add(&mut journal, 3, ALICE));
    assert!(add(&mut journal, 1, ALICE) && !add(&mut journal, 1, ALICE), "it has data");
    let list = journal.list().unwrap();
    assert!(!add(&mut journal, 2, ALICE), "a list stays as it is");
    let Decided::Change(Change::CreateFile(first)) = &list.entries[0].decided else { panic!() };
    assert_eq!(
        (first.data.as_bytes(), first.create.status.mod_time),
        (&b"data"[..], Some(UnixSeconds(5).into()))
    );
}

/// Else what a program wrote first would be there in the end.
#[test]
fn data_does_not_go_with_the_name_if_other_data_of_the_file_waits_after_it() {
    let (fid, data) = (file(1).fid, SmallData::new(*b"last").unwrap());
    let whole = WholeStore {
        fid,
        status: SetStatus::default(),
        expected: DataVersion(1),
        data: vec![7; 100_000].into(),
    };
    let (status, expected) = (SetStatus::default(), DataVersion(1));
    let small = fs::StoreSmall { fid, status, expected, position: 0, file_length: 0, data: data.clone() };
    for decided in [Decided::Store(whole), Decided::Change(Change::Store(small.clone()))] {
        let mut journal = Journal::default();
        journal.push(create(ALICE, 1, b""));
        let change = Change::Store(small.clone());
        journal.push(Entry { decided, ..entry(BOB, Fid::default(), file(1), change) });
        assert!(!journal.add_data(&SmallFile {
            key: file(1),
            user: ALICE,
            data: &data,
            time: UnixSeconds(5).into()
        }));
    }
}

#[test]
fn a_status_goes_with_the_last_change_of_the_same_object_and_user_alone() {
    let mut journal = Journal::default();
    let set = |mode: Option<u32>, time: Option<u32>| SetStatus {
        mode: mode.map(afs_wire::ids::Mode),
        mod_time: time.map(|time| UnixSeconds(time).into()),
        ..SetStatus::default()
    };
    journal.push(create(ALICE, 1, b""));
    assert!(!journal.join_status(file(1), BOB, &set(Some(0o600), None)), "it would be set by another user");
    assert!(!journal.join_status(file(2), ALICE, &set(Some(0o600), None)));
    assert!(journal.join_status(file(1), ALICE, &set(Some(0o600), Some(5))));
    assert!(journal.join_status(file(1), ALICE, &set(None, Some(6))));
    journal.push(create(ALICE, 2, b""));
    assert!(!journal.join_status(file(1), ALICE, &set(Some(0o644), None)), "file 2 was made before this");
    let list = journal.list().unwrap();
    let Decided::Change(Change::CreateFile(first)) = &list.entries[0].decided else { panic!() };
    assert_eq!(first.create.status, set(Some(0o600), Some(6)));
    assert!(!journal.join_status(file(2), ALICE, &set(None, Some(6))), "a list stays as it is");
    journal.list_is_over(2);
    journal.push(remove(ALICE, 2));
    assert!(!journal.join_status(file(2), ALICE, &set(None, Some(6))));
}

#[test]
fn the_names_that_are_left_of_an_object_are_those_after_all_that_waits() {
    let mut journal = Journal::default();
    [create(ALICE, 1, b""), link(ALICE, 1), remove(ALICE, 1), create(ALICE, 2, b"")]
        .into_iter()
        .for_each(|entry| journal.push(entry));
    assert_eq!([file(1), file(2), file(3)].map(|key| journal.names_left(key)), [1, 1, 0]);
    journal.push(remove(ALICE, 1));
    assert_eq!(journal.names_left(file(1)), 0);
    journal.first_is_over();
    assert_eq!(journal.names_left(file(1)), -1);
}

#[test]
fn a_number_is_used_once_and_again_only_if_it_was_not_used() {
    let mut journal = Journal::default();
    (0..4).for_each(|n| journal.push(create(ALICE, n, b"")));
    assert_eq!(journal.list().unwrap().number.0, 1);
    journal.list_was_not_made();
    let change = create(ALICE, 0, b"").decided.change().unwrap().clone();
    assert_eq!(journal.send_alone(change.clone()).number.0, 1);
    assert_eq!(journal.alone().map(|alone| alone.number.0), Some(1), "the same each time that it is sent");
    journal.alone_is_over(false);
    assert!(journal.alone().is_none() && journal.send_alone(change.clone()).number.0 == 1);
    journal.alone_is_over(true);
    assert_eq!(journal.send_alone(change.clone()).number.0, 2);
    journal.begin_series();
    assert!(journal.alone().is_none() && journal.send_alone(change).number.0 == 1);
}

#[test]
fn a_lease_that_was_recalled_before_it_was_known_is_not_used() {
    let leases = Leases::default();
    let asking = leases.begin_asking(DIR).unwrap();
    assert!(leases.begin_asking(DIR).is_none(), "it is asked for once at a time");
    assert!(leases.recalled(DIR.fid, LeaseId(5)).is_none());
    {
        let table = leases.table.lock();
        assert!(table.asked[&DIR].may_be(LeaseId(5)) && !table.asked[&DIR].may_be(LeaseId(6)));
    }
    // A server that recalls without end.
    (0..1000).for_each(|n| drop(leases.recalled(DIR.fid, LeaseId(n + 10))));
    {
        let table = leases.table.lock();
        assert!(table.asked[&DIR].may_be(LeaseId(6)) && table.asked[&DIR].0.len() == RECALLS_MAX);
    }
    drop(asking);
    assert!(leases.begin_asking(DIR).is_some() && leases.of(DIR, Instant::ZERO).is_none());
}

#[test]
fn a_new_object_is_as_the_last_one_of_the_same_user() {
    let mut models = Models::default();
    let new = |kind| NewObject {
        kind,
        fid: file(4).fid,
        dir: DIR.fid,
        length: 3,
        mode: afs_wire::ids::Mode(0o640),
        time: UnixSeconds(77).into(),
    };
    let status = |kind, length| Status {
        kind,
        length,
        owner: afs_wire::ids::ViceId(12),
        error: AbortCode::OK,
        ..Status::default()
    };
    assert_eq!(models.new_object(TokenId::NONE, &new(fs::FileKind::File)), None);
    models.learn(TokenId::NONE, &status(fs::FileKind::File, 9));
    assert_eq!(models.new_object(TokenId::NONE, &new(fs::FileKind::File)), None, "that one was not empty");
    models.learn(TokenId::NONE, &status(fs::FileKind::File, 0));
    let made = models.new_object(TokenId::NONE, &new(fs::FileKind::Symlink)).unwrap();
    assert_eq!((made.kind, made.owner.0, made.length, made.mode.0), (fs::FileKind::Symlink, 12, 3, 0o640));
    assert_eq!((made.parent, made.client_mod_time.seconds().0), (DIR.fid.vnode, 77));
    assert_eq!(models.new_object(TokenId::NONE, &new(fs::FileKind::Directory)), None);
    models.learn(TokenId::NONE, &status(fs::FileKind::Directory, 2048));
    let made = models.new_object(TokenId::NONE, &new(fs::FileKind::Directory)).unwrap();
    assert_eq!((made.length, made.parent), (2048, file(4).fid.vnode));
}
