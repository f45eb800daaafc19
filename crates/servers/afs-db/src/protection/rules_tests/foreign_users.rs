//! Rules for users of other cells: registration, identity, quota and numbers.

use super::*;

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
    let restricted = Requester { identity: RequesterIdentity::foreign("yves@far.org"), restricted: true };
    assert_eq!(new(&mut rows, &restricted, "yves@far.org", NewId::User), refused(Refusal::Permission));
    assert_eq!(ids::max(&rows).unwrap().0, ViceId(4), "their ids are beside the counter");
    assert_eq!(delete::delete(&mut rows, &CELL, cell_group, NOW), refused(Refusal::BadArgument));
    delete::delete(&mut rows, &CELL, id, NOW).unwrap();
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
        assert_eq!(delete::delete(&mut rows, &by, ViceId(2), NOW), refused(Refusal::Permission));
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
    delete::delete(&mut rows, &CELL, last, NOW).unwrap();
    assert_eq!(status(&rows, "system:authuser@far.org").entry.group_quota, i32::MAX, "no overflow");
}
