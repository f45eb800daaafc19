//! Tests with sound and with damaged protection databases.

use std::sync::Arc;

use afs_kv::{Config, Kv, MemoryMedium};
use afs_rpc::Parts;
use afs_wire::ids::ViceId;

use super::*;
use crate::import::Merged;
use crate::import::samples::ProtectionFile;
use crate::protection::{EmbeddedProtectionDb, NewEntry, NewId, Privacy, ProtectionDb, Requester};
use crate::test_answers::wait;

/// Alice and sixty more in one group, which is in another; somebody of a foreign cell.
fn sample() -> ProtectionFile {
    let mut file = ProtectionFile::new();
    let many: Vec<i32> = (1..=61).collect();
    file.entry("alice", 1, -204, &[-206, -207]);
    for id in &many[1..] {
        file.entry(&format!("u{id}"), *id, -204, &[-206]);
    }
    file.entry("staff", -206, 1, &many);
    file.entry("alice:all", -207, 1, &[1, -206]);
    let cell = file.entry("system:authuser@other.test", -208, -204, &[0x1_ff30]);
    file.file.word(cell + 96, 3);
    file.entry("joe@other.test", 0x1_ff30, -204, &[-208]);
    // The group in a group says so in a list of its own.
    let staff = find(&file, -206);
    file.file.word(staff + 120, -207i32 as u32);
    file
}

fn find(file: &ProtectionFile, id: i32) -> u32 {
    let end = file.file.get(12);
    (65_600..end)
        .step_by(192)
        .find(|at| file.file.get(at + 4) == id as u32 && file.file.get(*at) != 4)
        .unwrap()
}

fn read_file(file: &ProtectionFile) -> ReadProtection {
    read(&file.file.bytes(), None).unwrap()
}

fn said(read: &ReadProtection) -> String {
    read.findings.kept().iter().map(|finding| format!("{finding}\n")).collect()
}

fn part(read: &ReadProtection) -> Part {
    Part {
        entries: read.entries.clone(),
        memberships: read.memberships.clone(),
        max_user: read.max_user,
        max_group: read.max_group,
        first: true,
        last: true,
        merge: false,
        replace: false,
    }
}

#[test]
fn users_groups_and_memberships_are_read() {
    let read = read_file(&sample());
    assert_eq!(said(&read), "");
    assert_eq!(read.entries.len(), 6 + 61 + 4);
    assert_eq!(read.memberships.len(), 61 + 2 + 1);
    assert!(read.memberships.contains(&(ViceId(-206), ViceId(-207))));
    assert_eq!((read.max_user, read.max_group), (ViceId(400), ViceId(-300)));
    let entry = |id| read.entries.iter().find(|entry| entry.id == ViceId(id)).unwrap();
    assert_eq!((entry(1).owner, entry(1).group_quota, entry(1).privacy), (ViceId(-204), 20, Privacy::USER));
    assert_eq!((entry(-208).last_foreign, entry(-208).group_quota), (3, 20));
}

#[test]
fn a_membership_recorded_on_one_side_suffices_and_is_reported() {
    let mut file = sample();
    let alice = find(&file, 1);
    file.file.word(alice + 36, 0x8000_0000);
    file.file.word(find(&file, -207) + 36, 0x8000_0000);
    let read = read_file(&file);
    assert_eq!(read.memberships, read_file(&sample()).memberships);
    assert_eq!((read.findings.damages(), read.findings.differences()), (0, 2));
    assert!(said(&read).contains("only group -206 says that 1 is in it"), "{}", said(&read));
    assert!(said(&read).contains("only 1 says that it is in group -207"), "{}", said(&read));
}

#[test]
fn memberships_of_nobody_are_left_out() {
    let mut file = sample();
    file.file.word(find(&file, -207) + 44, 4711);
    let read = read_file(&file);
    assert_eq!(read.memberships, read_file(&sample()).memberships);
    assert!(
        said(&read).contains("4711 is said to be in group -207, but one of them is not there"),
        "{}",
        said(&read)
    );
}

#[test]
fn lists_that_go_nowhere_or_in_circles_end() {
    let staff = |file: &ProtectionFile| find(file, -206);
    for to in [7, 65_600, u32::MAX] {
        let mut file = sample();
        let at = staff(&file);
        file.file.word(at + 12, to);
        let read = read_file(&file);
        assert_eq!(read.memberships, read_file(&sample()).memberships, "the users say the same");
        assert!(
            said(&read).contains(&format!("goes on at address {to}, where no more of it is")),
            "{}",
            said(&read)
        );
        assert!(said(&read).contains("nothing leads to this list of members of -206"), "{}", said(&read));
    }
    let mut file = sample();
    let first = file.file.get(staff(&file) + 12);
    file.file.word(first + 12, first);
    assert!(said(&read_file(&file)).contains("where no more of it is"));
}

#[test]
fn broken_chains_lose_nothing() {
    let mut file = sample();
    let bucket = 32_836 + 4;
    assert_ne!(file.file.get(bucket), 0);
    file.file.word(bucket, 65_600 + 1);
    let read = read_file(&file);
    assert_eq!(read.entries, read_file(&sample()).entries);
    assert!(
        said(&read).contains("a hash chain of ids leads to address 65601, where no entry is"),
        "{}",
        said(&read)
    );
    assert!(said(&read).contains("not every hash chain leads to alice (1)"), "{}", said(&read));
}

#[test]
fn impossible_entries_are_left_out_and_named() {
    let mut file = sample();
    file.file.put(find(&file, 61) + 128, &[0xff, 0xfe]);
    file.file.word(find(&file, 60), 8);
    file.file.put(find(&file, 59) + 128, b"u58\0");
    file.file.put(find(&file, 57) + 128, b"U57\0");
    let read = read_file(&file);
    assert_eq!(read.entries.len(), 6 + 58 + 4);
    for text in [
        "(61) cannot be a user or group",
        "unknown kind 8",
        "u58 (59) has a name or id of another",
        "U57 (57) has capital letters",
    ] {
        assert!(said(&read).contains(text), "{text} is missing:\n{}", said(&read));
    }
}

#[test]
fn groups_in_circles_and_too_deep_are_left_out() {
    let mut file = ProtectionFile::new();
    for id in 1..=8 {
        file.entry(
            &format!("g{id}"),
            -300 - id,
            -204,
            if id == 1 {
                &[]
            } else {
                std::slice::from_ref(&[-301, -302, -303, -304, -305, -306, -307][id as usize - 2])
            },
        );
    }
    let read = read_file(&file);
    let deep: Vec<i32> = read.memberships.iter().map(|(_, group)| group.0).collect();
    assert_eq!(deep, [-305, -304, -303, -302]);
    assert_eq!(read.findings.damages(), 3, "{}", said(&read));

    let mut circle = ProtectionFile::new();
    circle.entry("a", -301, -204, &[-302]);
    circle.entry("b", -302, -204, &[-301]);
    assert_eq!(read_file(&circle).memberships, []);
}

fn open() -> EmbeddedProtectionDb {
    let medium = Arc::new(MemoryMedium::default());
    EmbeddedProtectionDb::new(Kv::open(medium, crate::TABLES, Parts::inline(), Config::default()).unwrap())
}

fn write(db: &EmbeddedProtectionDb, part: &Part) -> Merged {
    wait(db.import(part.clone(), false)).unwrap()
}

fn name_of(db: &EmbeddedProtectionDb, id: i32) -> Option<String> {
    wait(db.names_of(vec![ViceId(id)])).unwrap().remove(0)
}

#[test]
fn imported_entries_are_read_back_unchanged() {
    let read = read_file(&sample());
    let db = open();
    // A cell that was started once and not used yet.
    wait(db.bootstrap("admin".into())).unwrap();
    let merged = write(&db, &part(&read));
    assert_eq!((merged.conflicts.len(), merged.memberships), (0, 64));
    let elements = |id| wait(db.elements(Requester::CELL, ViceId(id))).unwrap();
    assert_eq!(elements(-206).len(), 61);
    assert_eq!(elements(-207), [ViceId(-206), ViceId(1)]);
    // The first user of the new cell made room for theirs.
    assert_eq!(name_of(&db, 1).as_deref(), Some("alice"));
    assert_eq!(wait(db.ids_of(vec!["admin".into()])), Ok(vec![None]));
    assert_eq!(elements(-204), []);
    assert_eq!(wait(db.status(Requester::CELL, ViceId(-206))).unwrap().count, 61);
    assert_eq!(wait(db.max_ids()), Ok((ViceId(400), ViceId(-300))));
    // The next start of the cell changes nothing, and does not stop.
    wait(db.bootstrap("admin".into())).unwrap();
    assert_eq!(name_of(&db, 1).as_deref(), Some("alice"));
}

#[test]
fn a_database_in_use_is_left_alone_unless_it_is_to_be_merged() {
    let read = read_file(&sample());
    let db = open();
    let second = read.entries.iter().find(|entry| entry.id.0 == 2).unwrap().clone();
    write(&db, &Part { entries: vec![second], first: true, last: true, ..Part::default() });
    assert_eq!(write(&db, &part(&read)).conflicts, ["the protection database has users and groups already"]);
    let merging = Part { merge: true, ..part(&read) };
    assert_eq!(wait(db.import(merging.clone(), true)).unwrap().there, 1);
    assert_eq!(write(&db, &merging).added, 70);
    assert_eq!(write(&db, &merging).there, 71);

    let mut other = read.entries[10].clone();
    other.name = "somebody".into();
    let conflict = Part { entries: vec![other], merge: true, ..Part::default() };
    assert_eq!(write(&db, &conflict).conflicts.len(), 1);
}

#[test]
fn entries_in_conflict_are_replaced_on_request() {
    let read = read_file(&sample());
    let db = open();
    wait(db.bootstrap("admin".into())).unwrap();
    let theirs = |id: i32| read.entries.iter().find(|entry| entry.id.0 == id).unwrap().clone();
    // Somebody of the same name has another id here, and is in a group; somebody has the id of another.
    let own = NewEntry { name: theirs(1).name, id: NewId::Given(ViceId(77)), owner: ViceId(0) };
    wait(db.create(Requester::CELL, own)).unwrap();
    wait(db.add_member(Requester::CELL, ViceId(77), ViceId::BACKUP)).unwrap();
    let merged = write(&db, &Part { replace: true, ..part(&read) });
    assert_eq!(merged.conflicts, [""; 0]);
    assert_eq!(merged.memberships, 64);
    assert_eq!((name_of(&db, 1), name_of(&db, 77)), (Some(theirs(1).name), None));
    assert_eq!(wait(db.elements(Requester::CELL, ViceId::BACKUP)), Ok(vec![]));
    assert_eq!(write(&db, &Part { replace: true, ..part(&read) }).added, 0);
}

#[test]
fn an_import_that_was_interrupted_goes_on() {
    let read = read_file(&sample());
    let (db, whole) = (open(), part(&read));
    let first = Part { memberships: Vec::new(), last: false, ..whole.clone() };
    write(&db, &Part { entries: whole.entries[..30].to_vec(), ..first });
    assert_eq!(wait(db.import_unfinished()), Ok(true));
    let merged = write(&db, &whole);
    assert_eq!((merged.there, merged.added, merged.conflicts.len()), (30, 41, 0));
    assert_eq!(wait(db.import_unfinished()), Ok(false));
}
