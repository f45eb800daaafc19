//! Rules of changes: deletion, names, owners and numbers.

use super::*;

#[test]
fn the_last_administrator_is_not_deleted() {
    let mut rows = cell();
    let (admin, alice) = (ViceId(1), ViceId(2));
    for by in [CELL, as_user("admin")] {
        assert_eq!(delete::delete(&mut rows, &by, admin, NOW), refused(Refusal::Permission));
    }
    join(&mut rows, "alice", "system:administrators").unwrap();
    delete::delete(&mut rows, &CELL, admin, NOW).unwrap();
    assert_eq!(delete::delete(&mut rows, &as_user("alice"), alice, NOW), refused(Refusal::Permission));
}

#[test]
fn deletion_leaves_no_trace_but_orphans() {
    let mut rows = cell();
    let alice = as_user("alice");
    group(&mut rows, &alice, "alice:friends", 0).unwrap();
    group(&mut rows, &CELL, "staff", 0).unwrap();
    for (member, group) in [("alice", "staff"), ("bob", "alice:friends"), ("alice:friends", "staff")] {
        join(&mut rows, member, group).unwrap();
    }
    for fixed in [-101, -102, -204, 32766] {
        assert_eq!(delete::delete(&mut rows, &CELL, ViceId(fixed), NOW), refused(Refusal::Permission));
    }
    assert_eq!(delete::delete(&mut rows, &as_user("bob"), ViceId(-206), NOW), refused(Refusal::Permission));
    assert_eq!(
        delete::delete(&mut rows, &alice, ViceId(2), NOW),
        refused(Refusal::Permission),
        "not oneself"
    );
    delete::delete(&mut rows, &CELL, ViceId(2), NOW).unwrap();
    let orphans = list::owned(&rows, &CELL, ViceId(0), After::START, 10).unwrap();
    assert_eq!((orphans.items, orphans.next), (ids(&[-206]), None));
    assert_eq!(status(&rows, "alice:friends").entry.owner, ViceId(0));
    assert_eq!(list::elements(&rows, &CELL, ViceId(-207)), Ok(ids(&[-206])));
    // RequesterIdentity gets the id again does not get what its last owner had.
    new(&mut rows, &CELL, "eve", NewId::Given(ViceId(2))).unwrap();
    assert_eq!((status(&rows, "eve").count, status(&rows, "staff").count), (0, 1));
    assert_eq!(
        members::add(&mut rows, &as_user("eve"), ViceId(3), ViceId(-206)),
        refused(Refusal::Permission)
    );
    delete::delete(&mut rows, &CELL, ViceId(-206), NOW).unwrap();
    assert_eq!((status(&rows, "bob").count, status(&rows, "staff").count), (0, 0));
    assert_eq!(list::owned(&rows, &CELL, ViceId(0), After::START, 10).unwrap().items, []);
}

fn rename(rows: &mut MemoryRows, by: &Requester, id: i32, name: &str) -> Result<(), ProtectionError> {
    change::change(rows, by, ViceId(id), &Change { name: Some(name.into()), ..Change::default() }, NOW)
}

fn chown(rows: &mut MemoryRows, by: &Requester, id: i32, owner: i32) -> Result<(), ProtectionError> {
    change::change(rows, by, ViceId(id), &Change { owner: Some(ViceId(owner)), ..Change::default() }, NOW)
}

#[test]
fn names_change_within_the_rules() {
    let mut rows = cell();
    let alice = as_user("alice");
    group(&mut rows, &alice, "alice:a", 0).unwrap();
    group(&mut rows, &alice, "alice:b", 0).unwrap();
    rename(&mut rows, &alice, -206, "Alice:c").unwrap();
    assert_eq!(id(&rows, "alice:c"), ViceId(-206));
    assert_eq!(rows::id_of(&rows, "alice:a"), Ok(None));
    assert_eq!(rename(&mut rows, &alice, -206, "alice:b"), refused(Refusal::NameExists));
    assert_eq!(rename(&mut rows, &alice, -206, "bob:b"), refused(Refusal::BadName));
    assert_eq!(rename(&mut rows, &alice, -206, "plain"), refused(Refusal::BadName));
    assert_eq!(rename(&mut rows, &as_user("bob"), -206, "alice:d"), refused(Refusal::Permission));
    assert_eq!(rename(&mut rows, &alice, 2, "queen"), refused(Refusal::Permission));
    assert_eq!(rename(&mut rows, &CELL, 2, "queen:x"), refused(Refusal::BadName));
    assert_eq!(rename(&mut rows, &CELL, 2, "alice@far.org"), refused(Refusal::Permission));
    assert_eq!(rename(&mut rows, &CELL, -204, "system:gods"), refused(Refusal::Permission));
    rename(&mut rows, &CELL, 2, "queen").unwrap();
    rename(&mut rows, &CELL, 2, "queen").unwrap();
    group(&mut rows, &CELL, "system:authuser@far.org", 0).unwrap();
    assert_eq!(rename(&mut rows, &CELL, -208, "system:authuser@near.org"), refused(Refusal::Permission));
}

#[test]
fn a_new_owner_gives_the_group_its_prefix() {
    let mut rows = cell();
    let alice = as_user("alice");
    group(&mut rows, &alice, "alice:a", 0).unwrap();
    group(&mut rows, &CELL, "bob:b", 3).unwrap();
    assert_eq!(chown(&mut rows, &alice, -206, -204), refused(Refusal::Permission));
    assert_eq!(chown(&mut rows, &alice, -206, 99), refused(Refusal::NoEntry));
    assert_eq!(chown(&mut rows, &alice, -206, 32766), refused(Refusal::Permission));
    assert_eq!(chown(&mut rows, &CELL, -206, -101), refused(Refusal::Permission));
    assert_eq!(chown(&mut rows, &CELL, 3, 2), refused(Refusal::Permission), "users have one owner");
    assert_eq!(chown(&mut rows, &alice, -206, -206), refused(Refusal::GroupEmpty));
    chown(&mut rows, &alice, -206, 3).unwrap();
    assert_eq!(id(&rows, "bob:a"), ViceId(-206));
    assert_eq!(rows::id_of(&rows, "alice:a"), Ok(None));
    assert_eq!(chown(&mut rows, &alice, -206, 2), refused(Refusal::Permission), "it is hers no more");
    let owned = |rows: &MemoryRows, id| list::owned(rows, &CELL, ViceId(id), After::START, 10).unwrap().items;
    assert_eq!((owned(&rows, 2), owned(&rows, 3)), (vec![], ids(&[-207, -206])));
    // To the group itself: its members own it.
    join(&mut rows, "carol", "bob:a").unwrap();
    chown(&mut rows, &as_user("bob"), -206, -206).unwrap();
    rename(&mut rows, &as_user("carol"), -206, "ours:a").unwrap();
    assert_eq!(status(&rows, "ours:a").entry.owner, ViceId(-206));
    // A taken name refuses the whole change.
    group(&mut rows, &CELL, "alice:b", 2).unwrap();
    assert_eq!(chown(&mut rows, &as_user("bob"), -207, 2), refused(Refusal::NameExists));
    assert_eq!(status(&rows, "bob:b").entry.owner, ViceId(3));
}

#[test]
fn another_id_takes_everything_along() {
    let mut rows = cell();
    group(&mut rows, &as_user("alice"), "alice:a", 0).unwrap();
    group(&mut rows, &CELL, "staff", 0).unwrap();
    join(&mut rows, "alice", "staff").unwrap();
    join(&mut rows, "bob", "alice:a").unwrap();
    let renumber = |rows: &mut MemoryRows, by: &Requester, from, to| {
        change::change(rows, by, ViceId(from), &Change { id: Some(ViceId(to)), ..Change::default() }, NOW)
    };
    assert_eq!(renumber(&mut rows, &as_user("alice"), -206, -300), refused(Refusal::Permission));
    assert_eq!(renumber(&mut rows, &CELL, 2, 3), refused(Refusal::IdExists));
    assert_eq!(renumber(&mut rows, &CELL, 2, -3), refused(Refusal::Permission));
    assert_eq!(renumber(&mut rows, &CELL, -206, i32::MIN), refused(Refusal::Permission));
    renumber(&mut rows, &CELL, 2, 50).unwrap();
    renumber(&mut rows, &CELL, -206, -300).unwrap();
    assert_eq!(list::elements(&rows, &CELL, ViceId(-207)), Ok(ids(&[50])));
    assert_eq!(list::elements(&rows, &CELL, ViceId(3)), Ok(ids(&[-300])));
    assert_eq!(status(&rows, "alice:a").entry.owner, ViceId(50));
    assert_eq!((status(&rows, "alice").count, status(&rows, "alice:a").count), (1, 1));
    assert_eq!(list::owned(&rows, &CELL, ViceId(50), After::START, 9).unwrap().items, ids(&[-300]));
    assert_eq!(list::elements(&rows, &CELL, ViceId(2)), refused(Refusal::NoEntry));
    assert_eq!(new(&mut rows, &CELL, "next", NewId::User), Ok(ViceId(51)));
}
