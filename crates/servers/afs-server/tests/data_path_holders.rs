//! The data path: the holders of capabilities, what a clear drive serves, and the end of a data path.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use afs_datapath::capability::Refusal;
use afs_datapath::session::{Error, Failure};
use afs_server::{Policy, Requirement};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, ANY_VERSION, AclText};
use afs_wire::ids::{Fid, Uuid};
use rig::drive::{READ, WRITE};
use rig::people::{BOB, LAB, STAFF};
use rig::{Cell, Claim, Client, Manner};

fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

/// A file in a directory of its own with an access list.
fn file_in(cell: &Cell, name: &str, list: &str) -> Fid {
    let owner = cell.owner();
    let dir = owner.make_dir(cell.root(), name).unwrap().fid;
    owner.ask(fs::StoreAcl { fid: dir, acl: acl(list) }).unwrap();
    owner.create(dir, "f").unwrap().fid
}

fn refused<T>(outcome: Result<T, Error>) -> Option<Refusal> {
    match outcome.err() {
        Some(Error::Failed(Failure::Refused(refusal))) => Some(refusal),
        None => None,
        other => panic!("not refused: {other:?}"),
    }
}

/// The user was a holder before, with the groups of then.
#[test]
fn who_joins_a_group_uses_its_rights_at_once() {
    let cell = Cell::new(461);
    cell.open_data_path();
    let fid = file_in(&cell, "d", "2\n0\nadmin:staff\t9\nadmin\t127\n");
    let open = file_in(&cell, "e", "2\n0\nsystem:anyuser\t9\nadmin\t127\n");
    let bob = cell.client(1).acting_as(&Claim::of("bob"));
    let path = bob.path();
    let before = path.handle(open, READ);
    cell.people.add(BOB, STAFF);
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 9), bob.version(fid)).unwrap(), b"");
    assert_eq!(refused(path.read(&before, open, (0, 9), bob.version(open))), Some(Refusal::Revoked));
}

/// Carol's sessions have the same machine and the same host record.
#[test]
fn a_session_without_the_group_gets_no_capability_and_ends_none_of_another() {
    let cell = Cell::new(466);
    cell.open_data_path();
    let fid = file_in(&cell, "d", "2\n0\nadmin:staff\t9\nadmin\t127\n");
    let client = cell.client(1);
    let carol = client.acting_as(&Claim::of("carol"));
    let narrowed = client.acting_as(&Claim::of("carol").without(&[STAFF.0]));
    let version = carol.version(fid);
    let path = carol.path();
    let handle = path.handle(fid, READ);
    assert_eq!(narrowed.no_capability(fid, READ), Errno::EACCES.to_uae());
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"");
    // By what the session may still use, the other one is no other.
    let open = file_in(&cell, "e", "2\n0\nsystem:anyuser\t9\nadmin\t127\n");
    let theirs = narrowed.path();
    let of_open = theirs.handle(open, READ);
    assert_eq!(theirs.read(&of_open, open, (0, 9), narrowed.version(open)).unwrap(), b"");
    assert_eq!(refused(theirs.read(&of_open, fid, (0, 9), version)), Some(Refusal::OtherObject));
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"");
}

/// The groups of a host are those of one of its addresses.
#[test]
fn a_client_with_two_addresses_has_a_holder_at_each() {
    let cell = Cell::new(462);
    cell.open_data_path();
    let fid = file_in(&cell, "d", "2\n0\nadmin:lab\t9\nadmin\t127\n");
    let open = file_in(&cell, "e", "2\n0\nsystem:anyuser\t9\nadmin\t127\n");
    let here = cell.client(1);
    let other = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1)), 7001);
    cell.world().add_address(here.node, other.ip());
    let there = Client::on(cell.world(), here.node, other, Uuid([1; 16]), Manner::Modern);
    cell.people.add_host(here.address.ip(), LAB);
    let path = here.path();
    let of_lab = path.handle(fid, READ);
    let of_open = path.present(&there.capability(open, READ).unwrap());
    let version = here.version(fid);
    assert_eq!(path.read(&of_lab, fid, (0, 9), version).unwrap(), b"");
    assert_eq!(path.read(&of_open, open, (0, 9), here.version(open)).unwrap(), b"");
}

/// 4,096 files are listed for which there are capabilities of their own.
#[test]
fn more_capabilities_of_single_files_than_are_listed_revoke_all() {
    let cell = Cell::new(463);
    cell.open_data_path();
    let owner = cell.owner();
    let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
    owner.ask(fs::StoreAcl { fid: dir, acl: acl("1\n0\nowen\t4\n") }).unwrap();
    let owen = cell.client(1).acting_as(&Claim::of("owen"));
    let path = owen.path();
    let first = owen.create(dir, "first").unwrap().fid;
    let handle = path.handle(first, WRITE);
    let store = || path.store(&handle, first, &[(0, 3)], b"abc").map(drop);
    for number in 1..4096 {
        let fid = owen.create(dir, &format!("n{number}")).unwrap().fid;
        owen.capability(fid, WRITE).unwrap();
    }
    assert_eq!(refused(store()), None);
    let last = owen.create(dir, "last").unwrap().fid;
    owen.capability(last, WRITE).unwrap();
    assert_eq!(refused(store()), Some(Refusal::Revoked), "nothing tells any more what it rests on");
}

/// The user's own connection meets the requirement, and a clear drive does not.
#[test]
fn a_requirement_ends_capabilities_of_a_clear_drive_of_users_that_meet_it() {
    let cell = Cell::new(464);
    cell.open_data_path();
    let token = cell.tokens.rxgk("alice", 6000);
    let alice = cell.client(1).acting_with(&cell.tokens.by_rxgk(&token));
    let fid = alice.create(cell.root(), "f").unwrap().fid;
    let (path, version) = (alice.path(), alice.version(fid));
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"");
    cell.policy.set(Policy::default().of_volume("root.cell", Requirement::Auth));
    alice.fetch_status(fid).unwrap();
    assert_eq!(refused(path.read(&handle, fid, (0, 9), version)), Some(Refusal::NotAllowed));
}

#[test]
fn a_closed_data_path_is_told_to_nobody_and_what_is_durable_is_committed() {
    let cell = Cell::new(465);
    cell.open_data_path();
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    let path = client.path();
    let handle = path.handle(fid, WRITE);
    let ticket = path.store(&handle, fid, &[(0, 3)], b"new").unwrap();
    let told = client.ask(fs::DataPath {}).unwrap();
    cell.files().close_data_path();
    cell.sim.run_for(std::time::Duration::from_secs(1));
    assert!(!path.lives());
    assert!(client.connect(&told, afs_datapath::session::Security::Clear).is_err());
    assert_eq!(client.refusal(fs::DataPath {}), AbortCode::RXGEN_OPCODE);
    assert_eq!(client.no_capability(fid, READ), AbortCode::RXGEN_OPCODE);
    client.commit(ticket, fid, ANY_VERSION).unwrap();
    assert_eq!(client.read(fid), b"new");
}
