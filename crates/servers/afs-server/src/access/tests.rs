use super::*;

const ALICE: ViceId = ViceId(5);
const BOB: ViceId = ViceId(6);
const STAFF: ViceId = ViceId(-300);

fn acl(entries: &[(ViceId, &str)]) -> Acl {
    let entry = |(id, rights): &(ViceId, &str)| (*id, rights.parse().unwrap());
    Acl { positive: entries.iter().map(entry).collect(), negative: Vec::new() }
}

fn user(id: ViceId) -> Subject {
    Subject::new(id, [ViceId::AUTHUSER, ViceId::ANYUSER])
}

fn administrator() -> Subject {
    Subject::new(ViceId(1), [ViceId::ADMINISTRATORS, ViceId::AUTHUSER, ViceId::ANYUSER])
}

fn object<'a>(kind: FileKind, owner: ViceId, mode: u32, acl: &'a Acl) -> Object<'a> {
    Object { kind, owner, mode: Mode(mode), acl, volume_owner: ViceId(99) }
}

const FILE: FileKind = FileKind::File;
const DIR: FileKind = FileKind::Directory;
const LINK: FileKind = FileKind::Symlink;

const NOTHING: SetStatus = SetStatus { mod_time: None, owner: None, group: None, mode: None, fsync: false };
const CHOWN: SetStatus = SetStatus { owner: Some(BOB), ..NOTHING };
const CHGRP: SetStatus = SetStatus { group: Some(3), ..NOTHING };
const SETUID: SetStatus = SetStatus { mode: Some(Mode(0o4755)), ..NOTHING };
const CHMOD: SetStatus = SetStatus { mode: Some(Mode(0o600)), ..NOTHING };

const OK: Result<(), Errno> = Ok(());
const EACCES: Result<(), Errno> = Err(Errno::EACCES);
const EPERM: Result<(), Errno> = Err(Errno::EPERM);
const ENOTDIR: Result<(), Errno> = Err(Errno::ENOTDIR);

/// Subject, object kind, its owner, its mode, rights listed for the subject, operation, expected result.
type Row<'a> = (&'a str, FileKind, ViceId, u32, &'a str, Operation<'a>, Result<(), Errno>);

/// docs/protocol fileserver.md "5.4 Checks per operation", line by line.
#[test]
fn the_table_of_checks() {
    use Operation::*;
    let table: &[Row<'_>] = &[
        ("alice", DIR, BOB, 0, "", FetchStatus, OK),
        ("alice", LINK, BOB, 0, "l", FetchStatus, OK),
        ("alice", LINK, BOB, 0, "r", FetchStatus, EACCES),
        ("volume owner", LINK, BOB, 0, "", FetchStatus, OK),
        ("admin", LINK, BOB, 0, "", FetchStatus, OK),
        ("alice", FILE, BOB, 0, "r", FetchStatus, OK),
        ("alice", FILE, BOB, 0, "l", FetchStatus, EACCES),
        ("alice", FILE, ALICE, 0, "i", FetchStatus, OK),
        ("alice", FILE, BOB, 0, "i", FetchStatus, EACCES),
        ("anonymous", FILE, ViceId::ANONYMOUS, 0, "i", FetchStatus, EACCES),
        ("volume owner", FILE, BOB, 0, "", FetchStatus, EACCES),
        ("admin", FILE, BOB, 0, "", FetchStatus, OK),
        ("alice", DIR, BOB, 0, "l", FetchAcl, OK),
        ("alice", DIR, BOB, 0, "", FetchAcl, EACCES),
        ("volume owner", DIR, BOB, 0, "", FetchAcl, OK),
        ("admin", DIR, BOB, 0, "", FetchAcl, OK),
        ("alice", FILE, BOB, 0, "l", FetchAcl, EACCES),
        ("alice", FILE, BOB, 0, "r", FetchAcl, OK),
        ("alice", DIR, BOB, 0, "l", FetchData, OK),
        ("alice", DIR, BOB, 0, "r", FetchData, EACCES),
        ("volume owner", LINK, BOB, 0, "", FetchData, OK),
        ("admin", DIR, BOB, 0, "", FetchData, OK),
        ("alice", FILE, BOB, 0o400, "r", FetchData, OK),
        ("alice", FILE, BOB, 0o100, "r", FetchData, OK),
        ("alice", FILE, BOB, 0o277, "r", FetchData, EACCES),
        ("alice", FILE, ALICE, 0, "r", FetchData, OK),
        ("admin", FILE, BOB, 0, "r", FetchData, OK),
        ("admin", FILE, BOB, 0o700, "", FetchData, EACCES),
        ("alice", FILE, ALICE, 0, "i", FetchData, OK),
        ("anonymous", FILE, ViceId::ANONYMOUS, 0o777, "i", FetchData, EACCES),
        ("alice", FILE, BOB, 0o200, "w", StoreData(&NOTHING), OK),
        ("alice", FILE, BOB, 0o577, "w", StoreData(&NOTHING), EACCES),
        ("alice", FILE, BOB, 0o777, "r", StoreData(&NOTHING), EACCES),
        ("alice", FILE, ALICE, 0, "i", StoreData(&NOTHING), OK),
        ("alice", FILE, ALICE, 0, "w", StoreData(&NOTHING), EACCES),
        ("anonymous", FILE, ViceId::ANONYMOUS, 0, "i", StoreData(&NOTHING), OK),
        ("alice", FILE, ALICE, 0, "i", StoreData(&CHOWN), EPERM),
        ("alice", FILE, BOB, 0o777, "w", StoreData(&CHGRP), EPERM),
        ("alice", FILE, BOB, 0o777, "w", StoreData(&SETUID), EACCES),
        ("admin", FILE, BOB, 0o777, "", StoreData(&NOTHING), EACCES),
        ("admin", FILE, BOB, 0, "w", StoreData(&CHOWN), OK),
        ("admin", FILE, BOB, 0, "w", StoreData(&SETUID), OK),
        ("alice", FILE, ALICE, 0, "i", StoreStatus(&CHMOD), OK),
        ("alice", FILE, ALICE, 0, "i", StoreStatus(&CHOWN), EPERM),
        ("alice", FILE, BOB, 0, "i", StoreStatus(&CHMOD), EACCES),
        ("alice", FILE, BOB, 0, "w", StoreStatus(&CHMOD), OK),
        ("alice", FILE, BOB, 0, "w", StoreStatus(&SETUID), EACCES),
        ("alice", FILE, BOB, 0, "", StoreStatus(&CHGRP), EPERM),
        ("alice", DIR, BOB, 0, "d", StoreStatus(&CHMOD), OK),
        ("alice", DIR, BOB, 0, "i", StoreStatus(&CHMOD), OK),
        ("alice", DIR, BOB, 0, "w", StoreStatus(&CHMOD), EACCES),
        ("alice", LINK, BOB, 0, "w", StoreStatus(&CHMOD), OK),
        ("admin", FILE, BOB, 0, "", StoreStatus(&CHOWN), OK),
        ("admin", DIR, BOB, 0, "", StoreStatus(&SETUID), OK),
        ("alice", FILE, ALICE, 0, "rlidwka", StoreAcl, ENOTDIR),
        ("alice", DIR, BOB, 0, "a", StoreAcl, OK),
        ("alice", DIR, ALICE, 0, "rlidwk", StoreAcl, EACCES),
        ("volume owner", DIR, BOB, 0, "", StoreAcl, OK),
        ("admin", DIR, BOB, 0, "", StoreAcl, OK),
        ("alice", DIR, BOB, 0, "i", Insert, OK),
        ("alice", DIR, ALICE, 0, "rlwdka", Insert, EACCES),
        ("admin", DIR, BOB, 0, "", Insert, EACCES),
        ("alice", DIR, BOB, 0, "i", InsertMountPoint, EACCES),
        ("alice", DIR, BOB, 0, "ia", InsertMountPoint, OK),
        ("admin", DIR, BOB, 0, "i", InsertMountPoint, OK),
        ("admin", DIR, BOB, 0, "", InsertMountPoint, EACCES),
        ("alice", DIR, BOB, 0, "d", Delete, OK),
        ("alice", DIR, ALICE, 0, "rliwka", Delete, EACCES),
        ("admin", DIR, BOB, 0, "", Delete, EACCES),
        ("alice", FILE, BOB, 0, "k", ReadLock, OK),
        ("alice", FILE, BOB, 0, "w", ReadLock, OK),
        ("alice", FILE, ALICE, 0, "i", ReadLock, OK),
        ("alice", FILE, BOB, 0, "i", ReadLock, EACCES),
        ("alice", FILE, BOB, 0, "k", WriteLock, EACCES),
        ("alice", FILE, BOB, 0, "w", WriteLock, OK),
        ("alice", FILE, ALICE, 0, "i", WriteLock, OK),
    ];
    for (who, kind, owner, mode, listed, operation, expected) in table {
        let subject = match *who {
            "alice" => user(ALICE),
            "anonymous" => Subject::anonymous(),
            "volume owner" => user(ViceId(99)),
            "admin" => administrator(),
            other => panic!("{other}"),
        };
        let acl = acl(&[(subject.id(), listed)]);
        let object = object(*kind, *owner, *mode, &acl);
        assert_eq!(
            check(&subject, &object, *operation),
            *expected,
            "{who} {kind:?} {owner} {mode:o} {listed} {operation:?}"
        );
    }
}

#[test]
fn negative_entries_take_away() {
    let mut acl = acl(&[(ViceId::ANYUSER, "rlidwk"), (ALICE, "a")]);
    acl.negative.push((ALICE, "wd".parse().unwrap()));
    let object = object(DIR, BOB, 0, &acl);
    assert_eq!(rights(&user(ALICE), &object), "rlika".parse().unwrap());
    assert_eq!(rights(&user(BOB), &object), "rlidwk".parse().unwrap());
    assert_eq!(anonymous_rights(&user(ALICE), &acl), "rlidwk".parse().unwrap());
}

#[test]
fn administrators_look_everywhere_and_owners_administer_their_files() {
    let acl = acl(&[(ALICE, "ra")]);
    assert_eq!(rights(&administrator(), &object(DIR, BOB, 0, &acl)), Rights::LOOKUP);
    assert_eq!(rights(&user(ALICE), &object(DIR, BOB, 0, &acl)), "ra".parse().unwrap());
    assert_eq!(rights(&user(ALICE), &object(FILE, BOB, 0, &acl)), Rights::READ);
    assert_eq!(rights(&user(BOB), &object(FILE, BOB, 0, &acl)), Rights::ADMINISTER);
}

/// `tar x` by an administrator keeps the numbers of a machine, and a user of the cell, or a group, may have the same.
#[test]
fn the_number_of_a_user_of_a_machine_gives_no_user_or_group_of_the_cell_a_right() {
    let everything = acl(&[(ALICE, "rlidwka"), (BOB, "i")]);
    let nothing = acl(&[]);
    for uid in [0, ALICE.0 as u32, 1000, ViceId::ANONYMOUS.0 as u32, ViceId::MACHINE_UID_MAX] {
        let kept = ViceId::of_machine(uid).unwrap();
        let of_same_number = Subject::new(ViceId(uid as i32), [kept, ViceId::AUTHUSER]);
        let file = object(FILE, kept, 0, &everything);
        assert!(!rights(&user(ALICE), &file).contains(Rights::ADMINISTER));
        assert_eq!(check(&user(BOB), &file, Operation::FetchData), EACCES);
        assert_eq!(check(&of_same_number, &object(FILE, kept, 0, &nothing), Operation::FetchData), EACCES);
        let root = Object { volume_owner: kept, ..object(DIR, kept, 0o777, &nothing) };
        assert_eq!(check(&of_same_number, &root, Operation::StoreAcl), EACCES, "{uid}");
    }
}

#[test]
fn a_volume_may_belong_to_a_group() {
    let acl = acl(&[]);
    let object = Object { volume_owner: STAFF, ..object(DIR, BOB, 0, &acl) };
    let member = Subject::new(ALICE, [STAFF]);
    assert_eq!(check(&member, &object, Operation::StoreAcl), OK);
    assert_eq!(check(&user(BOB), &object, Operation::StoreAcl), EACCES);
}

#[test]
fn only_administrators_set_more_than_nine_bits() {
    assert_eq!(settable_mode(&user(ALICE), Mode(0o6755)), Mode(0o755));
    assert_eq!(settable_mode(&administrator(), Mode(0o106755)), Mode(0o6755));
}

#[test]
fn a_host_gives_what_its_groups_may_and_an_entry_against_the_caller_does_not_take_it() {
    let lab = ViceId(-400);
    let mut acl = acl(&[(lab, "rl"), (ALICE, "w")]);
    acl.negative.push((ALICE, "r".parse().unwrap()));
    let object = object(DIR, BOB, 0, &acl);
    let elsewhere = user(ALICE);
    let here = user(ALICE).on_host_in([lab]);
    assert_eq!(rights(&elsewhere, &object), Rights::WRITE);
    assert_eq!(rights(&here, &object), "rlw".parse().unwrap());
    assert_eq!(anonymous_rights(&elsewhere, &acl), Rights::NONE);
    assert_eq!(anonymous_rights(&here, &acl), "rl".parse().unwrap());
    let administrators = Subject::anonymous().on_host_in([ViceId::ADMINISTRATORS]);
    assert!(!administrators.is_administrator(), "a host makes nobody an administrator");
}

/// `A` to `H` are stored and shown, and have no meaning for the server.
#[test]
fn rights_of_their_own_are_for_those_who_gave_them() {
    let acl = acl(&[(ALICE, "ABCDEFGH")]);
    let object = object(DIR, BOB, 0, &acl);
    assert_eq!(rights(&user(ALICE), &object), Rights(0xff00_0000));
    for operation in [
        Operation::FetchData,
        Operation::Insert,
        Operation::Delete,
        Operation::StoreAcl,
        Operation::WriteLock,
    ] {
        assert_eq!(check(&user(ALICE), &object, operation), EACCES);
    }
}
