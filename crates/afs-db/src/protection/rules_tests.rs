//! The rules of docs/protocol ptserver.md, case by case, over a plain map.

use std::net::Ipv4Addr;

use afs_wire::ids::ViceId;

use super::{
    After, BAD_ID, Change, Fields, GROUPS_MAX, Kinds, MEMBERS_MAX, NewEntry, NewId, Privacy, ProtectionError,
    Refusal, Requester, RequesterIdentity, Status, bootstrap, change, cps, create, delete, fields, ids, list,
    members, rows,
};
use crate::MemoryRows;

const CELL: Requester = Requester::CELL;
const ADMINISTRATORS: ViceId = ViceId::ADMINISTRATORS;

fn refused<T>(refusal: Refusal) -> Result<T, ProtectionError> {
    Err(refusal.into())
}

fn as_user(name: &str) -> Requester {
    Requester { identity: RequesterIdentity::Local(name.into()), restricted: false }
}

fn foreign(name: &str) -> Requester {
    Requester { identity: RequesterIdentity::Foreign(name.into()), restricted: false }
}

const ANONYMOUS: Requester = Requester { identity: RequesterIdentity::Anonymous, restricted: false };

fn new(rows: &mut MemoryRows, by: &Requester, name: &str, id: NewId) -> Result<ViceId, ProtectionError> {
    create::create(rows, by, &NewEntry { name: name.into(), id, owner: ViceId(0) })
}

fn group(rows: &mut MemoryRows, by: &Requester, name: &str, owner: i32) -> Result<ViceId, ProtectionError> {
    create::create(rows, by, &NewEntry { name: name.into(), id: NewId::Group, owner: ViceId(owner) })
}

/// admin 1, alice 2, bob 3, carol 4.
fn cell() -> MemoryRows {
    let mut rows = MemoryRows::default();
    bootstrap::bootstrap(&mut rows, "admin").unwrap();
    for name in ["alice", "bob", "carol"] {
        new(&mut rows, &CELL, name, NewId::User).unwrap();
    }
    rows
}

fn id(rows: &MemoryRows, name: &str) -> ViceId {
    rows::id_of(rows, name).unwrap().unwrap()
}

fn status(rows: &MemoryRows, name: &str) -> Status {
    list::status(rows, &CELL, id(rows, name)).unwrap()
}

fn join(rows: &mut MemoryRows, member: &str, group: &str) -> Result<(), ProtectionError> {
    let (member, group) = (id(rows, member), id(rows, group));
    members::add(rows, &CELL, member, group)
}

fn ids(raw: &[i32]) -> Vec<ViceId> {
    raw.iter().copied().map(ViceId).collect()
}

#[test]
fn a_new_database_has_six_entries_and_its_first_user() {
    let mut rows = MemoryRows::default();
    bootstrap::bootstrap(&mut rows, "Admin").unwrap();
    let first = rows.clone();
    bootstrap::bootstrap(&mut rows, "somebody").unwrap();
    assert_eq!(format!("{first:?}"), format!("{rows:?}"), "once is enough");
    let all = list::entries(&rows, &CELL, Kinds { users: true, groups: true }, After::START, 100).unwrap();
    let names: Vec<_> = all.items.iter().map(|status| (status.entry.id.0, &*status.entry.name)).collect();
    let expected = [
        (1, "admin"),
        (32766, "anonymous"),
        (-205, "system:backup"),
        (-204, "system:administrators"),
        (-203, "system:ptsviewers"),
        (-102, "system:authuser"),
        (-101, "system:anyuser"),
    ];
    assert_eq!(names, expected);
    assert!(all.items.iter().all(|s| (s.entry.owner, s.entry.creator) == (ADMINISTRATORS, ADMINISTRATORS)));
    assert_eq!(ids::max(&rows), Ok((ViceId(1), ViceId(-205))));
    assert_eq!(members::members_of(&rows, ADMINISTRATORS), Ok(ids(&[1])));
    // An administrator who was removed stays removed.
    members::remove(&mut rows, &CELL, ViceId(1), ADMINISTRATORS).unwrap();
    bootstrap::bootstrap(&mut rows, "admin").unwrap();
    assert_eq!(members::members_of(&rows, ADMINISTRATORS), Ok(vec![]));
}

#[test]
fn users_are_made_by_administrators() {
    let mut rows = cell();
    assert_eq!(new(&mut rows, &as_user("admin"), "Dave", NewId::User), Ok(ViceId(5)));
    let dave = status(&rows, "dave").entry;
    assert_eq!((dave.owner, dave.creator, dave.privacy), (ADMINISTRATORS, ViceId(1), Privacy::USER));
    assert_eq!((dave.group_quota, dave.user_quota), (20, 20));
    for by in [as_user("alice"), ANONYMOUS, as_user("nobody")] {
        assert_eq!(new(&mut rows, &by, "eve", NewId::User), refused(Refusal::Permission));
    }
    assert_eq!(new(&mut rows, &CELL, "ALICE", NewId::User), refused(Refusal::NameExists));
    let given = |id| NewId::Given(ViceId(id));
    assert_eq!(new(&mut rows, &CELL, "eve", given(2)), refused(Refusal::IdExists));
    assert_eq!(new(&mut rows, &CELL, "eve", given(0)), refused(Refusal::Permission));
    assert_eq!(new(&mut rows, &CELL, "eve", NewId::Given(BAD_ID)), refused(Refusal::BadArgument));
    assert_eq!(new(&mut rows, &CELL, "eve", given(100)), Ok(ViceId(100)));
    assert_eq!(new(&mut rows, &CELL, "frank", NewId::User), Ok(ViceId(101)));
    assert_eq!(new(&mut rows, &CELL, "a:b", NewId::User), refused(Refusal::BadName));
}

#[test]
fn groups_are_named_after_their_owner_and_cost_their_creator() {
    let mut rows = cell();
    let alice = as_user("alice");
    assert_eq!(new(&mut rows, &alice, "alice:friends", NewId::Group), Ok(ViceId(-206)));
    assert_eq!(status(&rows, "alice").entry.group_quota, 19);
    let friends = status(&rows, "alice:friends").entry;
    assert_eq!((friends.owner, friends.creator, friends.privacy), (ViceId(2), ViceId(2), Privacy::GROUP));
    assert_eq!(group(&mut rows, &alice, "bob:x", 0), refused(Refusal::BadName));
    assert_eq!(group(&mut rows, &alice, "bob:x", 3), Ok(ViceId(-207)));
    assert_eq!(group(&mut rows, &alice, "friends", 0), refused(Refusal::BadName));
    assert_eq!(group(&mut rows, &alice, "alice:a:b", 0), refused(Refusal::BadName));
    assert_eq!(group(&mut rows, &alice, "alice:", 0), refused(Refusal::BadName));
    assert_eq!(group(&mut rows, &alice, "alice:x@y", 0), refused(Refusal::BadName));
    assert_eq!(group(&mut rows, &alice, "system:x", -204), refused(Refusal::Permission));
    assert_eq!(group(&mut rows, &alice, "alice:y", -206), refused(Refusal::GroupEmpty));
    assert_eq!(group(&mut rows, &alice, "alice:y", 77), refused(Refusal::NoEntry));
    for everybody in [-101, -102, 32766] {
        assert_eq!(group(&mut rows, &alice, "anonymous:y", everybody), refused(Refusal::Permission));
    }
    join(&mut rows, "bob", "alice:friends").unwrap();
    assert_eq!(group(&mut rows, &alice, "alice:y", -206), Ok(ViceId(-208)));
    assert_eq!(group(&mut rows, &ANONYMOUS, "anonymous:z", 0), refused(Refusal::Permission));
    // Administrators may do without a prefix, and for nothing.
    assert_eq!(group(&mut rows, &as_user("admin"), "staff", 0), Ok(ViceId(-209)));
    assert_eq!(status(&rows, "admin").entry.group_quota, 20);
    assert_eq!(group(&mut rows, &CELL, "system:new", 0), Ok(ViceId(-210)));
    // The next id may be asked for by anyone, others by administrators; a group that owns itself is theirs too.
    let given = |name: &str, id, owner| NewEntry {
        name: name.into(),
        id: NewId::Given(ViceId(id)),
        owner: ViceId(owner),
    };
    assert_eq!(create::create(&mut rows, &alice, &given("alice:n", -211, 0)), Ok(ViceId(-211)));
    assert_eq!(create::create(&mut rows, &alice, &given("alice:m", -300, 0)), refused(Refusal::Permission));
    assert_eq!(create::create(&mut rows, &alice, &given("own:m", -212, -212)), refused(Refusal::NoEntry));
    assert_eq!(create::create(&mut rows, &CELL, &given("own:m", -300, -300)), Ok(ViceId(-300)));
}

#[test]
fn a_used_up_quota_refuses_and_deleting_gives_back() {
    let mut rows = cell();
    let alice = as_user("alice");
    for n in 0..20 {
        group(&mut rows, &alice, &format!("alice:{n}"), 0).unwrap();
    }
    assert_eq!(group(&mut rows, &alice, "alice:more", 0), refused(Refusal::NoMore));
    let gone = id(&rows, "alice:7");
    delete::delete(&mut rows, &alice, gone).unwrap();
    group(&mut rows, &alice, "alice:more", 0).unwrap();
    // Administrators pay nothing and get nothing above what they began with.
    let made = group(&mut rows, &as_user("admin"), "admin:g", 0).unwrap();
    delete::delete(&mut rows, &CELL, made).unwrap();
    assert_eq!(status(&rows, "admin").entry.group_quota, 20);
}

#[test]
fn memberships_count_on_both_sides() {
    let mut rows = cell();
    group(&mut rows, &as_user("alice"), "alice:friends", 0).unwrap();
    join(&mut rows, "bob", "alice:friends").unwrap();
    join(&mut rows, "carol", "alice:friends").unwrap();
    assert_eq!((status(&rows, "alice:friends").count, status(&rows, "bob").count), (2, 1));
    assert_eq!(join(&mut rows, "bob", "alice:friends"), refused(Refusal::IdExists));
    assert_eq!(join(&mut rows, "bob", "alice"), refused(Refusal::NotGroup));
    assert_eq!(join(&mut rows, "bob", "system:authuser"), refused(Refusal::Permission));
    assert_eq!(join(&mut rows, "anonymous", "alice:friends"), refused(Refusal::Permission));
    assert_eq!(join(&mut rows, "system:anyuser", "alice:friends"), refused(Refusal::Permission));
    let friends = id(&rows, "alice:friends");
    assert_eq!(members::add(&mut rows, &CELL, ViceId(99), friends), refused(Refusal::NoEntry));
    assert_eq!(members::add(&mut rows, &CELL, ViceId(2), ViceId(-999)), refused(Refusal::NoEntry));
    assert_eq!(list::elements(&rows, &CELL, friends), Ok(ids(&[3, 4])));
    assert_eq!(list::elements(&rows, &CELL, ViceId(3)), Ok(vec![friends]));
    members::remove(&mut rows, &as_user("alice"), ViceId(3), friends).unwrap();
    assert_eq!(members::remove(&mut rows, &CELL, ViceId(3), friends), refused(Refusal::NoEntry));
    assert_eq!((status(&rows, "alice:friends").count, status(&rows, "bob").count), (1, 0));
}

#[test]
fn groups_in_groups_reach_five_deep_and_never_round() {
    let mut rows = cell();
    for n in 1..=6 {
        group(&mut rows, &CELL, &format!("g{n}"), 0).unwrap();
    }
    join(&mut rows, "alice", "g1").unwrap();
    for n in 1..5 {
        join(&mut rows, &format!("g{n}"), &format!("g{}", n + 1)).unwrap();
    }
    assert_eq!(join(&mut rows, "g5", "g6"), refused(Refusal::TooMany));
    assert_eq!(join(&mut rows, "g6", "g1"), refused(Refusal::TooMany));
    assert_eq!(join(&mut rows, "g5", "g1"), refused(Refusal::BadArgument));
    assert_eq!(join(&mut rows, "g1", "g1"), refused(Refusal::BadArgument));
    let g = |n: i32| -205 - n;
    let expected = [g(5), g(4), g(3), g(2), g(1), -102, -101, 2];
    assert_eq!(cps::subdomain(&rows, ViceId(2)), Ok(ids(&expected)));
    assert_eq!(list::is_member(&rows, &CELL, ViceId(2), ViceId(g(5))), Ok(true));
    assert_eq!(list::is_member(&rows, &CELL, ViceId(3), ViceId(g(5))), Ok(false));
    assert_eq!(list::supergroups(&rows, &CELL, ViceId(g(2))), Ok(ids(&[g(3)])));
    assert_eq!(list::elements(&rows, &CELL, ViceId(g(2))), Ok(ids(&[g(1)])));
    // A path is as long as its longest way, also where a shorter one exists.
    join(&mut rows, "g1", "g5").unwrap();
    assert_eq!(join(&mut rows, "g6", "g1"), refused(Refusal::TooMany));
}

#[test]
fn subdomains_are_sorted_and_say_who_is_of_this_cell() {
    let mut rows = cell();
    assert_eq!(cps::subdomain(&rows, ViceId::ANONYMOUS), Ok(ids(&[-101, 32766])));
    assert_eq!(cps::subdomain(&rows, ViceId::ANYUSER), Ok(ids(&[-101])));
    assert_eq!(cps::subdomain(&rows, ViceId(1)), Ok(ids(&[-204, -102, -101, 1])));
    assert_eq!(cps::subdomain(&rows, ViceId(77)), refused(Refusal::NoEntry));
    group(&mut rows, &CELL, "system:authuser@far.org", 0).unwrap();
    let far = new(&mut rows, &CELL, "zoe@far.org", NewId::User).unwrap();
    assert_eq!(cps::subdomain(&rows, far), Ok(vec![ViceId(-206), ViceId::ANYUSER, far]));
    assert_eq!(list::is_member(&rows, &CELL, far, ViceId::AUTHUSER), Ok(false));
    assert_eq!(list::is_member(&rows, &CELL, far, ViceId::ANYUSER), Ok(true));
}

#[test]
fn hosts_are_in_the_groups_of_their_networks() {
    let mut rows = cell();
    for (host, name) in [("10.1.2.3", "h"), ("10.1.0.0", "n"), ("10.9.0.0", "other")] {
        new(&mut rows, &CELL, host, NewId::User).unwrap();
        group(&mut rows, &CELL, name, 0).unwrap();
        join(&mut rows, host, name).unwrap();
    }
    let of = |rows: &MemoryRows, host| cps::of_host(rows, host).unwrap();
    assert_eq!(of(&rows, Ipv4Addr::new(10, 1, 2, 3)), ids(&[-207, -206]));
    assert_eq!(of(&rows, Ipv4Addr::new(10, 1, 9, 9)), ids(&[-207]));
    assert_eq!(of(&rows, Ipv4Addr::new(10, 2, 2, 3)), []);
    let host = Some(Ipv4Addr::new(10, 1, 2, 3));
    assert_eq!(list::cps_of(&rows, &CELL, ViceId(2), host), Ok(ids(&[-207, -206, -102, -101, 2])));
    assert_eq!(list::cps_of(&rows, &CELL, BAD_ID, host), Ok(ids(&[-207, -206])));
    assert_eq!(list::cps_of(&rows, &CELL, BAD_ID, None), refused(Refusal::NoEntry));
}

#[test]
fn foreign_users_register_themselves_and_nobody_else() {
    let mut rows = cell();
    let zoe = foreign("zoe@far.org");
    assert_eq!(new(&mut rows, &zoe, "zoe@far.org", NewId::User), refused(Refusal::BadName), "no such cell");
    let cell_group = group(&mut rows, &CELL, "system:authuser@far.org", 0).unwrap();
    let id = new(&mut rows, &zoe, "Zoe@far.org", NewId::User).unwrap();
    assert_eq!(id, ViceId(1 << 16 | (cell_group.0 & 0xffff)));
    assert_eq!(list::elements(&rows, &CELL, cell_group), Ok(vec![id]));
    assert_eq!(status(&rows, "system:authuser@far.org").entry.group_quota, 29);
    for (name, kind, owner) in [
        ("eve@far.org", NewId::User, 0),
        ("zoe", NewId::User, 0),
        ("zoe:x", NewId::Group, 0),
        ("zoe@far.org", NewId::Given(ViceId(77)), 0),
        ("zoe@far.org", NewId::User, 5),
    ] {
        let new = NewEntry { name: name.into(), id: kind, owner: ViceId(owner) };
        assert_eq!(create::create(&mut rows, &zoe, &new), refused(Refusal::Permission), "{name}");
    }
    let restricted =
        Requester { identity: RequesterIdentity::Foreign("yves@far.org".into()), restricted: true };
    assert_eq!(new(&mut rows, &restricted, "yves@far.org", NewId::User), refused(Refusal::Permission));
    assert_eq!(ids::max(&rows).unwrap().0, ViceId(4), "their ids are beside the counter");
    assert_eq!(delete::delete(&mut rows, &CELL, cell_group), refused(Refusal::BadArgument));
    delete::delete(&mut rows, &CELL, id).unwrap();
    assert_eq!(status(&rows, "system:authuser@far.org").entry.group_quota, 30);
    // The number is not given twice while there are others.
    assert_ne!(new(&mut rows, &zoe, "zoe@far.org", NewId::User), Ok(id));
}

#[test]
fn an_authenticated_foreign_caller_is_never_taken_for_a_local_one() {
    let mut rows = cell();
    for name in ["admin@far.org", "admin", "system:administrators"] {
        let by = foreign(name);
        assert_eq!(new(&mut rows, &by, "admin", NewId::User), refused(Refusal::Permission), "{name}");
        assert_eq!(new(&mut rows, &by, "admin:g", NewId::Group), refused(Refusal::Permission));
        assert_eq!(list::status(&rows, &by, ViceId(1)), refused(Refusal::Permission));
        assert_eq!(delete::delete(&mut rows, &by, ViceId(2)), refused(Refusal::Permission));
    }
    // A local principal that looks like a foreign user, a group or nobody is none of them.
    group(&mut rows, &CELL, "system:authuser@far.org", 0).unwrap();
    new(&mut rows, &CELL, "zoe@far.org", NewId::User).unwrap();
    for name in ["zoe@far.org", "system:administrators", "anonymous", "Admin", ""] {
        assert_eq!(list::status(&rows, &as_user(name), ViceId(1)), refused(Refusal::Permission), "{name}");
    }
}

#[test]
fn a_foreign_cell_has_its_quota_and_ids_that_stay_positive() {
    let mut rows = cell();
    let cell_group = group(&mut rows, &CELL, "system:authuser@far.org", 0).unwrap();
    let quota = |group_quota| Fields { group_quota: Some(group_quota), ..Fields::default() };
    fields::set(&mut rows, &CELL, cell_group, quota(1)).unwrap();
    new(&mut rows, &foreign("a@far.org"), "a@far.org", NewId::User).unwrap();
    assert_eq!(new(&mut rows, &foreign("b@far.org"), "b@far.org", NewId::User), refused(Refusal::NoMore));
    fields::set(&mut rows, &CELL, cell_group, quota(i32::MAX)).unwrap();
    let mut entry = rows::find(&rows, cell_group).unwrap();
    entry.last_foreign = 0x7ffe;
    rows::put(&mut rows, &entry).unwrap();
    let last = new(&mut rows, &CELL, "b@far.org", NewId::User).unwrap();
    assert_eq!(last, ViceId(0x7fff << 16 | (cell_group.0 & 0xffff)));
    assert_eq!(new(&mut rows, &CELL, "c@far.org", NewId::User), refused(Refusal::NoIds));
    delete::delete(&mut rows, &CELL, last).unwrap();
    assert_eq!(status(&rows, "system:authuser@far.org").entry.group_quota, i32::MAX, "no overflow");
}

#[test]
fn counters_of_ids_end_where_numbers_end() {
    let mut rows = cell();
    let max = |id| NewId::Given(ViceId(id));
    new(&mut rows, &CELL, "last", max(i32::MAX)).unwrap();
    assert_eq!(new(&mut rows, &CELL, "eve", NewId::User), refused(Refusal::NoIds));
    new(&mut rows, &CELL, "lowest", max(i32::MIN + 1)).unwrap();
    assert_eq!(new(&mut rows, &CELL, "g", NewId::Group), refused(Refusal::NoIds));
    for (id, group) in [(-1, false), (1, true), (i32::MIN, true), (i32::MIN, false)] {
        assert_eq!(ids::set_max(&mut rows, &CELL, ViceId(id), group), refused(Refusal::BadArgument));
    }
    assert_eq!(ids::set_max(&mut rows, &as_user("alice"), ViceId(9), false), refused(Refusal::Permission));
    ids::set_max(&mut rows, &CELL, ViceId(32764), false).unwrap();
    assert_eq!(new(&mut rows, &CELL, "eve", NewId::User), Ok(ViceId(32765)));
    assert_eq!(new(&mut rows, &CELL, "frank", NewId::User), Ok(ViceId(32767)), "32766 is taken");
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
        assert_eq!(delete::delete(&mut rows, &CELL, ViceId(fixed)), refused(Refusal::Permission));
    }
    assert_eq!(delete::delete(&mut rows, &as_user("bob"), ViceId(-206)), refused(Refusal::Permission));
    assert_eq!(delete::delete(&mut rows, &alice, ViceId(2)), refused(Refusal::Permission), "not oneself");
    delete::delete(&mut rows, &CELL, ViceId(2)).unwrap();
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
    delete::delete(&mut rows, &CELL, ViceId(-206)).unwrap();
    assert_eq!((status(&rows, "bob").count, status(&rows, "staff").count), (0, 0));
    assert_eq!(list::owned(&rows, &CELL, ViceId(0), After::START, 10).unwrap().items, []);
}

fn rename(rows: &mut MemoryRows, by: &Requester, id: i32, name: &str) -> Result<(), ProtectionError> {
    change::change(rows, by, ViceId(id), &Change { name: Some(name.into()), ..Change::default() })
}

fn chown(rows: &mut MemoryRows, by: &Requester, id: i32, owner: i32) -> Result<(), ProtectionError> {
    change::change(rows, by, ViceId(id), &Change { owner: Some(ViceId(owner)), ..Change::default() })
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
        change::change(rows, by, ViceId(from), &Change { id: Some(ViceId(to)), ..Change::default() })
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

#[test]
fn privacy_decides_who_sees_and_does_what() {
    let mut rows = cell();
    let (alice, bob, carol) = (as_user("alice"), as_user("bob"), as_user("carol"));
    let g = group(&mut rows, &alice, "alice:a", 0).unwrap();
    join(&mut rows, "bob", "alice:a").unwrap();
    let set = |rows: &mut MemoryRows, by: &Requester, privacy| {
        fields::set(rows, by, g, Fields { privacy_mask: 0xff, privacy, ..Fields::default() })
    };
    assert_eq!(set(&mut rows, &bob, 0), refused(Refusal::Permission));
    set(&mut rows, &alice, 0).unwrap();
    let outcomes = |rows: &MemoryRows, by: &Requester| {
        let sees = [
            list::status(rows, by, g).is_ok(),
            list::elements(rows, by, g).is_ok(),
            list::owned(rows, by, g, After::START, 9).is_ok(),
        ];
        let adds = members::add(&mut rows.clone(), by, ViceId(4), g).is_ok();
        let removes = members::remove(&mut rows.clone(), by, ViceId(3), g).is_ok();
        [sees[0], sees[1], sees[2], adds, removes]
    };
    assert_eq!(outcomes(&rows, &bob), [false; 5]);
    assert_eq!(outcomes(&rows, &alice), [true; 5]);
    assert_eq!(outcomes(&rows, &CELL), [true; 5]);
    set(&mut rows, &alice, 0x4b).unwrap();
    assert_eq!(outcomes(&rows, &bob), [true, true, false, true, true], "s-mar");
    assert_eq!(outcomes(&rows, &carol), [false; 5]);
    assert_eq!(outcomes(&rows, &ANONYMOUS), [false; 5]);
    set(&mut rows, &alice, 0xb4).unwrap();
    assert_eq!(outcomes(&rows, &carol), [true, true, true, true, false], "SOMA-");
    let restricted = Requester { restricted: true, ..alice.clone() };
    assert_eq!(outcomes(&rows, &restricted), [true, true, true, false, false]);
    join(&mut rows, "carol", "system:ptsviewers").unwrap();
    set(&mut rows, &alice, 0).unwrap();
    assert_eq!(outcomes(&rows, &carol), [true, true, true, false, false], "viewers see");
    // A user's own memberships are the user's to see.
    assert_eq!(list::elements(&rows, &bob, ViceId(3)), Ok(vec![g]));
    assert_eq!(list::elements(&rows, &alice, ViceId(3)), refused(Refusal::Permission));
    assert_eq!(list::cps_of(&rows, &alice, ViceId(3), None), refused(Refusal::Permission));
    assert_eq!(list::is_member(&rows, &alice, ViceId(3), g), Ok(true), "her group");
    assert_eq!(list::is_member(&rows, &alice, ViceId(3), ViceId(-204)), Ok(false), "a public one");
    assert_eq!(list::is_member(&rows, &ANONYMOUS, ViceId(3), g), refused(Refusal::Permission));
    assert_eq!(list::is_member(&rows, &CELL, ViceId(3), ViceId(2)), refused(Refusal::BadArgument));
}

#[test]
fn a_member_through_groups_in_groups_is_a_member() {
    let mut rows = cell();
    let g = group(&mut rows, &as_user("alice"), "alice:a", 0).unwrap();
    group(&mut rows, &CELL, "inner", 0).unwrap();
    join(&mut rows, "inner", "alice:a").unwrap();
    join(&mut rows, "bob", "inner").unwrap();
    fields::set(&mut rows, &CELL, g, Fields { privacy_mask: 0xff, privacy: 0x40, ..Fields::default() })
        .unwrap();
    assert!(list::status(&rows, &as_user("bob"), g).is_ok());
    assert_eq!(list::status(&rows, &as_user("carol"), g), refused(Refusal::Permission));
    // And an administrator through a group.
    join(&mut rows, "inner", "system:administrators").unwrap();
    assert_eq!(new(&mut rows, &as_user("bob"), "eve", NewId::User), Ok(ViceId(5)));
}

#[test]
fn quotas_are_for_administrators_to_set() {
    let mut rows = cell();
    let quota = |group_quota, user_quota| Fields { group_quota, user_quota, ..Fields::default() };
    let alice = as_user("alice");
    let g = group(&mut rows, &alice, "alice:a", 0).unwrap();
    assert_eq!(fields::set(&mut rows, &alice, g, quota(Some(9), None)), refused(Refusal::Permission));
    assert_eq!(
        fields::set(&mut rows, &CELL, ViceId(2), quota(Some(-1), None)),
        refused(Refusal::BadArgument)
    );
    assert_eq!(
        fields::set(&mut rows, &CELL, ViceId(2), quota(None, Some(i32::MIN))),
        refused(Refusal::BadArgument)
    );
    fields::set(&mut rows, &CELL, ViceId(2), quota(Some(0), Some(7))).unwrap();
    assert_eq!(group(&mut rows, &alice, "alice:b", 0), refused(Refusal::NoMore));
    for fixed in [-101, -102, 32766] {
        assert_eq!(
            fields::set(&mut rows, &CELL, ViceId(fixed), quota(Some(1), None)),
            refused(Refusal::Permission)
        );
    }
    assert_eq!(
        fields::set(&mut rows, &ANONYMOUS, ViceId(-101), Fields::default()),
        Ok(()),
        "no field, no change"
    );
}

#[test]
fn lists_come_in_pages() {
    let mut rows = cell();
    for n in 0..7 {
        group(&mut rows, &as_user("alice"), &format!("alice:{n}"), 0).unwrap();
    }
    for limit in [1, 3, 100] {
        let (mut after, mut owned) = (After::START, Vec::new());
        loop {
            let page = list::owned(&rows, &CELL, ViceId(2), after, limit).unwrap();
            assert!(page.items.len() <= limit);
            owned.extend(page.items);
            let Some(next) = page.next else { break };
            after = next;
        }
        assert_eq!(owned, ids(&[-212, -211, -210, -209, -208, -207, -206]));
        for (users, groups, count) in
            [(true, false, 5), (false, true, 12), (true, true, 17), (false, false, 0)]
        {
            let (mut after, mut found) = (After::START, Vec::new());
            loop {
                let page = list::entries(&rows, &CELL, Kinds { users, groups }, after, limit).unwrap();
                assert!(page.items.len() <= limit);
                found.extend(page.items.into_iter().map(|status| status.entry.id));
                let Some(next) = page.next else { break };
                assert!(!matches!(next, After(ViceId(0 | -1))), "these two mean something else on the wire");
                after = next;
            }
            assert_eq!(found.len(), count);
            assert!(found.iter().all(|id| if id.is_group() { groups } else { users }));
        }
    }
    for by in [as_user("alice"), ANONYMOUS] {
        let kinds = Kinds { users: true, groups: true };
        assert_eq!(list::entries(&rows, &by, kinds, After::START, 9), refused(Refusal::Permission));
        assert_eq!(list::owned(&rows, &by, ViceId(0), After::START, 9), refused(Refusal::Permission));
    }
    // Cursors that never came from here lead nowhere, and no further.
    for odd in [i32::MAX, i32::MIN, -1, 5] {
        list::owned(&rows, &CELL, ViceId(2), After(ViceId(odd)), 9).unwrap();
        list::entries(&rows, &CELL, Kinds { users: true, groups: true }, After(ViceId(odd)), 9).unwrap();
    }
}

#[test]
fn a_full_group_takes_nobody_more() {
    let mut rows = cell();
    let g = group(&mut rows, &CELL, "full", 0).unwrap();
    rows::set_count(&mut rows, g, MEMBERS_MAX as u32).unwrap();
    assert_eq!(join(&mut rows, "alice", "full"), refused(Refusal::TooMany));
}

#[test]
fn nobody_is_in_more_groups_than_clients_take() {
    let mut rows = cell();
    group(&mut rows, &CELL, "one", 0).unwrap();
    rows::set_count(&mut rows, ViceId(2), GROUPS_MAX as u32).unwrap();
    assert_eq!(join(&mut rows, "alice", "one"), refused(Refusal::TooMany));
    join(&mut rows, "bob", "one").unwrap();
}
