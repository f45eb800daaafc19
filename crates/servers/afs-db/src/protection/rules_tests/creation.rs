//! Rules of creation: the first entries, users, groups, and the numbers they get.

use super::*;

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
    delete::delete(&mut rows, &alice, gone, NOW).unwrap();
    group(&mut rows, &alice, "alice:more", 0).unwrap();
    // Administrators pay nothing and get nothing above what they began with.
    let made = group(&mut rows, &as_user("admin"), "admin:g", 0).unwrap();
    delete::delete(&mut rows, &CELL, made, NOW).unwrap();
    assert_eq!(status(&rows, "admin").entry.group_quota, 20);
}

#[test]
fn counters_of_ids_end_where_numbers_end() {
    let mut rows = cell();
    let max = |id| NewId::Given(ViceId(id));
    let last = |rows: &mut MemoryRows| {
        let ends = [new(rows, &CELL, "last", max(i32::MAX)), new(rows, &CELL, "lowest", max(i32::MIN + 1))];
        assert!(ends.iter().all(Result::is_ok));
    };
    // One entry at the end of the numbers, by mistake, ends nothing.
    last(&mut rows);
    assert_eq!(new(&mut rows, &CELL, "dave", NewId::User), Ok(ViceId(5)));
    assert_eq!(new(&mut rows, &CELL, "f", NewId::Group), Ok(ViceId(-206)));
    new(&mut rows, &CELL, "last but one", max(i32::MAX - 1)).unwrap_err();
    new(&mut rows, &CELL, "second-to-last", max(i32::MAX - 1)).unwrap();
    assert_eq!(new(&mut rows, &CELL, "eve", NewId::User), refused(Refusal::NoIds));
    new(&mut rows, &CELL, "second-lowest", max(i32::MIN + 2)).unwrap();
    assert_eq!(new(&mut rows, &CELL, "g", NewId::Group), refused(Refusal::NoIds));
    for (id, group) in [(-1, false), (1, true), (i32::MIN, true), (i32::MIN, false)] {
        assert_eq!(ids::set_max(&mut rows, &CELL, ViceId(id), group), refused(Refusal::BadArgument));
    }
    assert_eq!(ids::set_max(&mut rows, &as_user("alice"), ViceId(9), false), refused(Refusal::Permission));
    ids::set_max(&mut rows, &CELL, ViceId(32764), false).unwrap();
    assert_eq!(new(&mut rows, &CELL, "eve", NewId::User), Ok(ViceId(32765)));
    assert_eq!(new(&mut rows, &CELL, "frank", NewId::User), Ok(ViceId(32767)), "32766 is taken");
}
