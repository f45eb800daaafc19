//! Access lists over the wire, and the operations that they permit.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText, SetStatus};
use afs_wire::ids::{Mode, Rights, ViceId};
use rig::{Cell, Client};

fn text(entries: &str) -> AclText {
    AclText::new(format!("{entries}\0").into_bytes()).unwrap()
}

fn list(client: &Client, fid: afs_wire::ids::Fid) -> String {
    client.ask(fs::FetchAcl { fid }).unwrap().acl.to_string()
}

const EACCES: fn() -> Option<AbortCode> = || Some(Errno::EACCES.to_uae());

#[test]
fn lists_are_read_stored_and_inherited() {
    let cell = Cell::with(41, Default::default(), "rl");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    assert_eq!(list(&client, root), "2\n0\nsystem:administrators\t127\nsystem:anyuser\t9\n\0");
    let acl = text("2\n1\nsystem:administrators\t127\nsystem:anyuser\t13\nsystem:anyuser\t1\n");
    assert_eq!(client.refusal(fs::StoreAcl { fid: root, acl: acl.clone() }), Errno::EACCES.to_uae());
    let status = owner.ask(fs::StoreAcl { fid: root, acl: acl.clone() }).unwrap().status;
    assert_eq!(status.anonymous_access, "il".parse().unwrap());
    assert_eq!(list(&client, root).as_bytes(), &acl[..]);
    let dir = client.make_dir(root, "sub").unwrap();
    assert_eq!(list(&client, dir.fid).as_bytes(), &acl[..], "a copy of its parent's");
    let file = owner.create(root, "f").unwrap().fid;
    assert_eq!(owner.refusal(fs::StoreAcl { fid: file, acl }), Errno::ENOTDIR.to_uae());
    assert_eq!(list(&owner, file), list(&client, root), "a file shows its directory's");
}

/// `fs setacl` reads a list, changes an entry and writes all of it back.
#[test]
fn the_numbers_of_deleted_users_stay_on_a_list_that_has_them() {
    let cell = Cell::new(47);
    let owner = cell.owner();
    let (root, dir) = (cell.root(), owner.make_dir(cell.root(), "d").unwrap().fid);
    let store = |fid, entries: &str| owner.ask(fs::StoreAcl { fid, acl: text(entries) });
    store(dir, "1\n1\nalice\t127\nalice\t1\n").unwrap();
    cell.people.delete("alice");
    assert_eq!(list(&owner, dir), "1\n1\n5\t127\n5\t1\n\0");
    let more = "2\n1\nsystem:anyuser\t9\n5\t127\n5\t1\n";
    store(dir, more).unwrap();
    assert_eq!(list(&owner, dir), format!("{more}\0"));
    // Refused: the number on a list that did not have it, a number that no list has, and the number of a group that has a name.
    for (fid, entries) in [(root, more), (dir, "1\n0\n4000\t1\n"), (dir, "1\n0\n-101\t9\n")] {
        let refused = store(fid, entries).unwrap_err();
        assert_eq!(refused.abort_code(), Some(Errno::EINVAL.to_uae()), "{entries}");
    }
    store(dir, "1\n0\nsystem:anyuser\t9\n").unwrap();
    assert!(store(dir, more).is_err());
}

#[test]
fn bad_lists_are_refused_and_change_nothing() {
    let cell = Cell::new(42);
    let client = cell.client(1);
    let root = cell.root();
    let before = list(&client, root);
    let many = format!("21\n0\n{}", "system:anyuser\t1\n".repeat(21));
    let no_nul = AclText::new(b"0\n0\n".to_vec()).unwrap();
    let bad =
        ["x\n0\n", "1\n0\n", "1\n0\nnobody\t1\n", "1\n0\nanonymous\t1\n", "1\n0\n-204\t1\n", many.as_str()];
    for acl in bad.iter().map(|bad| text(bad)).chain([no_nul, AclText::default()]) {
        for old in [false, true] {
            let code = if old {
                client.refusal(fs::OldStoreAcl { fid: root, acl: acl.clone() })
            } else {
                client.refusal(fs::StoreAcl { fid: root, acl: acl.clone() })
            };
            assert_eq!(code, Errno::EINVAL.to_uae(), "{acl:?}");
        }
    }
    assert_eq!(list(&client, root), before);
    client.ask(fs::OldStoreAcl { fid: root, acl: text("0\n0\n") }).unwrap();
    assert_eq!(client.create(root, "f").unwrap_err().abort_code(), EACCES());
    assert_eq!(client.refusal(fs::FetchAcl { fid: root }), Errno::EACCES.to_uae());
    assert_eq!(list(&cell.owner(), root), "0\n0\n\0", "administrators look everywhere");
}

#[test]
fn a_drop_box_takes_and_shows_nothing() {
    let cell = Cell::with(43, Default::default(), "il");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    let fid = client.create(root, "gift").unwrap().fid;
    client.store(fid, 0, b"for you").unwrap();
    assert_eq!(client.fetch(fid, 0, 10).unwrap_err().abort_code(), EACCES());
    assert_eq!(client.refusal(fs::FetchStatus { fid }), Errno::EACCES.to_uae());
    assert_eq!(client.remove(root, "gift").unwrap_err().abort_code(), EACCES());
    assert_eq!(client.rename(root, "gift", root, "x").unwrap_err().abort_code(), EACCES());
    assert_eq!(client.fetch(root, 0, 4096).unwrap().0.len(), 2048, "names can be listed");
    assert_eq!(owner.fetch_status(fid).unwrap().status.length, 7);
    // Administrators may look up names everywhere, but read and write only where a list permits it, as it
    // does here.
    assert_eq!(owner.read(fid), b"for you");
}

#[test]
fn rights_are_shown_and_mode_bits_count_for_others() {
    let cell = Cell::with(44, Default::default(), "rlidwk");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    let fid = owner.create(root, "f").unwrap().fid;
    owner.store(fid, 0, b"data").unwrap();
    let status = client.fetch_status(fid).unwrap().status;
    assert_eq!(status.caller_access, "rlidwk".parse().unwrap());
    assert_eq!(owner.fetch_status(fid).unwrap().status.caller_access, Rights::ALL);
    let set =
        |bits| fs::StoreStatus { fid, status: SetStatus { mode: Some(Mode(bits)), ..SetStatus::default() } };
    owner.ask(set(0o200)).unwrap();
    assert_eq!(client.fetch(fid, 0, 10).unwrap_err().abort_code(), EACCES());
    assert_eq!(owner.read(fid), b"data");
    owner.ask(set(0o400)).unwrap();
    assert_eq!(client.store(fid, 0, b"x").unwrap_err().abort_code(), EACCES());
    assert_eq!(client.read(fid), b"data");
}

#[test]
fn no_user_makes_files_in_the_name_of_another() {
    let cell = Cell::new(45);
    let (client, owner) = (cell.client(1), cell.owner());
    let make = |name: &str| fs::CreateFile {
        dir: cell.root(),
        name: fs::Name::new(name.as_bytes()).unwrap(),
        status: SetStatus { owner: Some(ViceId(1)), ..SetStatus::default() },
    };
    assert_eq!(client.refusal(make("f")), Errno::EPERM.to_uae());
    assert_eq!(owner.ask(make("f")).unwrap().status.owner, ViceId(1));
}

#[test]
fn moving_needs_a_right_on_both_sides_and_replacing_one_more() {
    let cell = Cell::with(46, Default::default(), "rlidwk");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    let give = |dir, rights: u32| {
        let acl = text(&format!("2\n0\nsystem:administrators\t127\nsystem:anyuser\t{rights}\n"));
        owner.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    };
    let (from, to) = (owner.make_dir(root, "from").unwrap().fid, owner.make_dir(root, "to").unwrap().fid);
    owner.create(from, "f").unwrap();
    owner.create(to, "taken").unwrap();
    let (insert, delete, look) = (Rights::INSERT.0, Rights::DELETE.0, Rights::LOOKUP.0);
    give(from, look);
    give(to, look | insert);
    assert_eq!(client.rename(from, "f", to, "g").unwrap_err().abort_code(), EACCES());
    give(from, look | delete);
    give(to, look);
    assert_eq!(client.rename(from, "f", to, "g").unwrap_err().abort_code(), EACCES());
    give(to, look | insert);
    assert_eq!(client.rename(from, "f", to, "taken").unwrap_err().abort_code(), EACCES());
    client.rename(from, "f", to, "g").unwrap();
    give(to, look | insert | delete);
    client.rename(to, "g", to, "taken").unwrap();
}

/// As in AFS: the right to delete is one to take away, and what is taken is under the list of where it is taken.
#[test]
fn who_may_delete_may_take_to_a_directory_of_its_own_and_read_there() {
    let cell = Cell::with(48, Default::default(), "l");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    let (from, own) = (owner.make_dir(root, "from").unwrap().fid, owner.make_dir(root, "own").unwrap().fid);
    let fid = owner.create(from, "f").unwrap().fid;
    owner.store(fid, 0, b"secret").unwrap();
    for (dir, rights) in [(from, Rights::LOOKUP | Rights::DELETE), (own, Rights::ALL)] {
        let acl = text(&format!("2\n0\nsystem:administrators\t127\nsystem:anyuser\t{}\n", rights.0));
        owner.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
    }
    assert_eq!(client.fetch(fid, 0, 10).unwrap_err().abort_code(), EACCES());
    client.rename(from, "f", own, "f").unwrap();
    assert_eq!(client.read(fid), b"secret");
}
