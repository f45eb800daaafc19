//! The data path: what is read and stored by capability, and who is refused.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_datapath::capability::{Access, Group, Refusal};
use afs_datapath::session::{Error, Failure};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, ANY_VERSION, AclText, CapabilityAccess, SetStatus};
use afs_wire::ids::{DataVersion, Fid};
use rig::drive::{BOTH, READ, WRITE, arguments};
use rig::people::{CAROL, LAB, OWEN, TEAM};
use rig::{Cell, Claim, Client, mode};

const MIB: u64 = 1 << 20;

fn refused<T>(outcome: Result<T, Error>) -> Refusal {
    match outcome.map(drop) {
        Err(Error::Failed(Failure::Refused(refusal))) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn failed<T>(outcome: Result<T, Error>) -> Failure {
    match outcome.map(drop) {
        Err(Error::Failed(failure)) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

fn pattern(len: u64) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 256) as u8 | 1).collect()
}

fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

/// A cell with its data path and two clients.
struct Desk {
    cell: Cell,
    a: Client,
    b: Client,
}

impl Desk {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        cell.open_data_path();
        let (a, b) = (cell.client(1), cell.client(2));
        Desk { cell, a, b }
    }

    fn file(&self, name: &str, content: &[u8]) -> Fid {
        let fid = self.a.create(self.cell.root(), name).unwrap().fid;
        self.a.store(fid, 0, content).unwrap();
        fid
    }

    /// A directory made by the owner of the cell, with an access list.
    fn dir(&self, name: &str, list: &str) -> Fid {
        let owner = self.cell.owner();
        let fid = owner.make_dir(self.cell.root(), name).unwrap().fid;
        owner.ask(fs::StoreAcl { fid, acl: acl(list) }).unwrap();
        fid
    }

    fn wait(&self, seconds: u64) {
        self.cell.sim.run_for(Duration::from_secs(seconds));
    }
}

#[test]
fn a_file_is_read_whole_and_by_ranges() {
    let desk = Desk::new(401);
    let content = pattern(3 * MIB + 17);
    let fid = desk.file("f", &content);
    let (path, version) = (desk.b.path(), desk.b.version(fid));
    let handle = path.handle(fid, READ);
    assert!(path.read(&handle, fid, (0, 1 << 40), version).unwrap() == content);
    for (start, end) in [(0, 1), (5, 5), (MIB - 1, MIB + 1), (3 * MIB, 4 * MIB), (4 * MIB, 5 * MIB)] {
        let within = content.get(start as usize..(end as usize).min(content.len())).unwrap_or_default();
        assert!(path.read(&handle, fid, (start, end), version).unwrap() == within, "{start}..{end}");
    }
    let told = desk.b.ask(fs::GetStatistics {}).unwrap().statistics;
    assert!(told.fetched_bytes as u64 > content.len() as u64, "{}", told.fetched_bytes);
}

#[test]
fn a_store_by_ranges_leaves_holes_and_is_one_change() {
    let desk = Desk::new(402);
    let fid = desk.file("f", b"as it was");
    let (path, before) = (desk.b.path(), desk.b.version(fid));
    let handle = path.handle(fid, WRITE);
    desk.a.heard();
    let sent = pattern(2 * MIB + 5);
    let ranges = [(4, 9), (MIB, 3 * MIB)];
    let ticket = path.store(&handle, fid, &ranges, &sent).unwrap();
    assert_eq!(desk.a.read(fid), b"as it was", "nothing is seen before the end");
    let status = desk.b.commit_as(ticket, fid, before, (6, 5 * MIB)).unwrap().status;
    assert_eq!((status.length, status.data_version), (5 * MIB, before.next()));
    let read = desk.a.read(fid);
    assert_eq!(&read[..4], b"as i");
    assert!(read[4..9] == sent[..5] && read[MIB as usize..3 * MIB as usize] == sent[5..]);
    assert!(read[9..MIB as usize].iter().chain(&read[3 * MIB as usize..]).all(|byte| *byte == 0));
    // The promise of the other client is broken.
    assert!(!desk.a.heard().is_empty());
    // By the data path the holes come as zeros.
    let handle = path.handle(fid, READ);
    assert!(path.read(&handle, fid, (0, 8 * MIB), before.next()).unwrap() == read);
}

#[test]
fn a_capability_covers_the_files_of_its_directory_and_no_others() {
    let desk = Desk::new(403);
    let dir = desk.dir("d", "1\n0\nsystem:anyuser\t127\n");
    let other = desk.dir("e", "1\n0\nsystem:anyuser\t127\n");
    let make = |dir, name: &str| {
        let fid = desk.a.create(dir, name).unwrap().fid;
        desk.a.store(fid, 0, name.as_bytes()).unwrap();
        fid
    };
    let (one, two, outside) = (make(dir, "one"), make(dir, "two"), make(other, "outside"));
    let path = desk.b.path();
    let given = desk.b.capability(one, READ).unwrap();
    assert_eq!((arguments(&given).group, arguments(&given).access), (Group::Directory(dir), Access::READ));
    assert_eq!(given.seconds, 300);
    let handle = path.present(&given);
    let version = |fid| desk.b.version(fid);
    assert_eq!(path.read(&handle, two, (0, 9), version(two)).unwrap(), b"two");
    assert_eq!(refused(path.read(&handle, outside, (0, 9), version(outside))), Refusal::OtherObject);
    assert_eq!(refused(path.store(&handle, one, &[(0, 1)], b"x")), Refusal::NotAllowed, "to be read only");
    let dir_itself = path.read(&handle, dir, (0, 9), DataVersion(1));
    assert_eq!(refused(dir_itself), Refusal::OtherObject);
    // A mode that lets nobody but the owner read.
    desk.cell.owner().ask(fs::StoreStatus { fid: two, status: mode(0o200) }).unwrap();
    desk.cell.owner().ask(fs::StoreStatus { fid: one, status: owner(OWEN) }).unwrap();
    desk.cell.owner().ask(fs::StoreStatus { fid: two, status: owner(OWEN) }).unwrap();
    assert_eq!(refused(path.read(&handle, two, (0, 9), DataVersion(1))), Refusal::NotAllowed);
    assert_eq!(desk.b.capability(two, READ).unwrap_err().abort_code(), Some(Errno::EACCES.to_uae()));
}

fn owner(owner: afs_wire::ids::ViceId) -> SetStatus {
    SetStatus { owner: Some(owner), ..SetStatus::default() }
}

/// Whoever has only heard the arguments, or got them from another, has no proof.
#[test]
fn the_capability_of_one_client_is_nothing_to_another() {
    let desk = Desk::new(404);
    let fid = desk.file("f", b"content");
    let version = desk.a.version(fid);
    let given = desk.a.capability(fid, READ).unwrap();
    let path = desk.b.path();
    let forged = path.present_as(&arguments(&given), [0; 32]);
    assert_eq!(refused(path.read(&forged, fid, (0, 9), version)), Refusal::Forged);
    let own = desk.b.capability(fid, READ).unwrap();
    let mixed = path.present_as(&arguments(&given), own.secret.0);
    assert_eq!(refused(path.read(&mixed, fid, (0, 9), version)), Refusal::Forged);
    let wider =
        afs_datapath::capability::Capability { access: Access::READ | Access::WRITE, ..arguments(&own) };
    let wider = path.present_as(&wider, own.secret.0);
    assert_eq!(refused(path.read(&wider, fid, (0, 9), version)), Refusal::Forged);
    let own = path.present(&own);
    assert_eq!(path.read(&own, fid, (0, 9), version).unwrap(), b"content", "the connection goes on");
}

#[test]
fn a_ticket_is_its_holders_alone_and_good_once() {
    let desk = Desk::new(405);
    let (fid, other) = (desk.file("f", b"old"), desk.file("g", b"old"));
    let path = desk.a.path();
    let handle = path.handle(fid, WRITE);
    let stale = Some(Errno::ESTALE.to_uae());
    let code = |outcome: rig::CallResult<fs::StatusReply>| outcome.err().and_then(|error| error.abort_code());
    let ticket = path.store(&handle, fid, &[(0, 3)], b"new").unwrap();
    assert_eq!(code(desk.b.commit(ticket, fid, ANY_VERSION)), stale, "another client");
    desk.b.capability(fid, WRITE).unwrap();
    assert_eq!(code(desk.b.commit(ticket, fid, ANY_VERSION)), stale, "another holder");
    let alice = desk.a.acting_as(&Claim::of("alice"));
    alice.capability(fid, WRITE).unwrap();
    assert_eq!(code(alice.commit(ticket, fid, ANY_VERSION)), stale, "another user of the same client");
    assert_eq!(desk.b.read(fid), b"old");
    desk.a.commit(ticket, fid, ANY_VERSION).unwrap();
    assert_eq!(desk.b.read(fid), b"new");
    assert_eq!(code(desk.a.commit(ticket, fid, ANY_VERSION)), stale, "once");
    let ticket = path.store(&handle, fid, &[(0, 3)], b"two").unwrap();
    assert_eq!(code(desk.a.commit(ticket, other, ANY_VERSION)), stale, "for another file");
    assert_eq!(code(desk.a.commit(ticket, fid, ANY_VERSION)), stale, "used up");
    let bytes = desk.cell.bytes_on_drive();
    let ticket = path.store(&handle, fid, &[(0, MIB)], &pattern(MIB)).unwrap();
    assert!(desk.cell.bytes_on_drive() > bytes);
    desk.wait(150);
    assert_eq!(desk.cell.bytes_on_drive(), bytes, "its time is over");
    assert_eq!(code(desk.a.commit(ticket, fid, ANY_VERSION)), stale);
}

#[test]
fn capabilities_expire_with_the_token_at_the_latest() {
    let desk = Desk::new(406);
    let fid = desk.file("f", b"content");
    let version = desk.a.version(fid);
    let path = desk.b.path();
    let handle = path.handle(fid, READ);
    desk.wait(290);
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"content");
    desk.wait(11);
    assert_eq!(refused(path.read(&handle, fid, (0, 9), version)), Refusal::Expired);
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"content");
    let token = desk.cell.tokens.rxgk("alice", 60);
    let alice = desk.b.acting_with(&desk.cell.tokens.by_rxgk(&token));
    let given = alice.capability(fid, READ).unwrap();
    assert!((50..=60).contains(&given.seconds), "{}", given.seconds);
}

#[test]
fn a_read_is_of_the_version_that_is_named_and_so_is_a_store() {
    let desk = Desk::new(407);
    let fid = desk.file("f", &pattern(4 * MIB));
    let (path, old) = (desk.b.path(), desk.b.version(fid));
    let handle = path.handle(fid, BOTH);
    let ticket = path.store(&handle, fid, &[(0, 3)], b"new").unwrap();
    let arriving = path.open(&handle, fid, (0, 4 * MIB), old).unwrap();
    desk.a.store(fid, 0, b"meanwhile").unwrap();
    assert!(path.rest(arriving).unwrap() == pattern(4 * MIB), "a read in progress is of one version");
    assert_eq!(failed(path.read(&handle, fid, (0, 9), old)), Failure::OtherVersion);
    assert_eq!(path.read(&handle, fid, (0, 9), old.next()).unwrap(), b"meanwhile");
    let refused = desk.b.commit(ticket, fid, old).unwrap_err();
    assert_eq!(refused.abort_code(), Some(Errno::EAGAIN.to_uae()));
    assert_eq!(desk.a.read(fid), b"meanwhile");
}

#[test]
fn a_write_beyond_the_quota_is_refused_before_its_bytes_and_at_the_end() {
    let desk = Desk::new(408);
    let (fid, other) = (desk.file("f", b""), desk.file("g", b""));
    let status = fs::SetVolumeStatus { quota_min: None, quota_max: Some(4096) };
    let (name, message) = (fs::Name::default(), fs::PathText::default());
    let volume = desk.cell.volumes.root_cell;
    let call =
        fs::StoreVolumeStatus { volume, status, name, offline_message: message.clone(), motd: message };
    desk.cell.owner().ask(call).unwrap();
    let path = desk.a.path();
    let handle = path.handle(fid, WRITE);
    assert_eq!(failed(path.store(&handle, fid, &[(0, 8 * MIB)], &pattern(8 * MIB))), Failure::NoSpace);
    // The quota is reserved from the beginning.
    let ticket = path.store(&handle, fid, &[(0, 3 * MIB)], &pattern(3 * MIB)).unwrap();
    let second = path.store(&handle, other, &[(0, 3 * MIB)], &pattern(3 * MIB));
    assert_eq!(failed(second), Failure::NoSpace);
    assert_eq!(desk.a.commit(ticket, fid, ANY_VERSION).unwrap().status.length, 3 * MIB);
}

#[test]
fn a_commit_is_refused_to_whoever_lost_the_right_meanwhile() {
    let desk = Desk::new(409);
    let dir = desk.dir("d", "1\n0\nsystem:anyuser\t127\n");
    let fid = desk.cell.owner().create(dir, "f").unwrap().fid;
    let path = desk.a.path();
    let handle = path.handle(fid, WRITE);
    let ticket = path.store(&handle, fid, &[(0, 3)], b"new").unwrap();
    desk.cell.owner().ask(fs::StoreAcl { fid: dir, acl: acl("1\n0\nsystem:anyuser\t9\n") }).unwrap();
    let refusal = desk.a.commit(ticket, fid, ANY_VERSION).unwrap_err().abort_code();
    assert_eq!(refusal, Some(Errno::EACCES.to_uae()));
    assert_eq!(desk.a.read(fid), b"");
    assert_eq!(refused(path.store(&handle, fid, &[(0, 3)], b"new")), Refusal::Revoked);
}

#[test]
fn a_capability_says_no_more_than_the_right_that_it_rests_on() {
    let desk = Desk::new(410);
    let list = "3\n0\nalice\t127\nowen\t4\nadmin:staff\t9\n";
    let dir = desk.dir("d", list);
    let alice = desk.a.acting_as(&Claim::of("alice"));
    let owen = desk.a.acting_as(&Claim::of("owen"));
    let carol = desk.a.acting_as(&Claim::of("carol"));
    let key = desk.a.acting_as(&Claim::of_key());
    let of = |client: &Client, fid, access| {
        client.capability(fid, access).map(|given| {
            let arguments = arguments(&given);
            (arguments.group, arguments.access)
        })
    };
    let no = |client: &Client, fid, access| {
        client.capability(fid, access).map(|given| arguments(&given).group).unwrap_err().abort_code()
    };
    let fid = alice.create(dir, "f").unwrap().fid;
    let eacces = Some(Errno::EACCES.to_uae());
    assert_eq!(of(&alice, fid, BOTH).unwrap(), (Group::Directory(dir), Access::READ | Access::WRITE));
    assert_eq!(of(&carol, fid, READ).unwrap(), (Group::Directory(dir), Access::READ));
    assert_eq!(no(&carol, fid, WRITE), eacces);
    assert_eq!(no(&owen, fid, READ), eacces, "insert is no right on the files of others");
    assert_eq!(no(&desk.a, fid, READ), eacces);
    assert_eq!(no(&key, fid, READ), eacces, "the list has no entry for administrators");
    // A drop box: the right to one's own file alone.
    let dropped = owen.create(dir, "dropped").unwrap().fid;
    let (group, access) = of(&owen, dropped, BOTH).unwrap();
    assert_eq!((group, access), (Group::File(dropped), Access::READ | Access::WRITE | Access::ANY_MODE));
    let path = owen.path();
    let handle = path.handle(dropped, BOTH);
    let ticket = path.store(&handle, dropped, &[(0, 3)], b"abc").unwrap();
    owen.commit(ticket, dropped, ANY_VERSION).unwrap();
    let version = alice.version(dropped);
    assert_eq!(path.read(&handle, dropped, (0, 9), version).unwrap(), b"abc");
    assert_eq!(refused(path.read(&handle, fid, (0, 9), version)), Refusal::OtherObject);
    // A file that its mode closes to all but its owner.
    alice.ask(fs::StoreStatus { fid, status: mode(0) }).unwrap();
    assert_eq!(of(&alice, fid, READ).unwrap(), (Group::File(fid), Access::READ | Access::ANY_MODE));
    assert_eq!(no(&carol, fid, READ), eacces);
    // Administrators are not bound by modes, where the list gives them rights.
    let list = "1\n0\nsystem:anyuser\t127\n";
    desk.cell.owner().ask(fs::StoreAcl { fid: dir, acl: acl(list) }).unwrap();
    let all = Access::READ | Access::WRITE | Access::ANY_MODE;
    assert_eq!(of(&key, fid, BOTH).unwrap(), (Group::Directory(dir), all));
    // For the files of a directory; and what has no bytes of a file.
    assert_eq!(of(&alice, dir, READ).unwrap(), (Group::Directory(dir), Access::READ));
    assert_eq!(no(&alice, fid, CapabilityAccess(0)), Some(Errno::EINVAL.to_uae()));
    assert_eq!(no(&alice, fid, CapabilityAccess(5)), Some(Errno::EINVAL.to_uae()));
}

/// The groups of a host are those of the machine at its address.
#[test]
fn the_rights_of_a_host_are_for_connections_from_the_host() {
    let desk = Desk::new(411);
    let dir = desk.dir("d", "2\n0\nadmin:lab\t9\nadmin\t127\n");
    let fid = desk.cell.owner().create(dir, "f").unwrap().fid;
    desk.cell.people.add_host(desk.a.address.ip(), LAB);
    let given = desk.a.capability(fid, READ).unwrap();
    let version = desk.a.version(fid);
    let (here, there) = (desk.a.path(), desk.b.path());
    let handle = here.present(&given);
    assert_eq!(here.read(&handle, fid, (0, 9), version).unwrap(), b"");
    let handle = there.present(&given);
    assert_eq!(refused(there.read(&handle, fid, (0, 9), version)), Refusal::NotAllowed);
}

#[test]
fn a_server_without_a_data_path_says_so() {
    let cell = Cell::new(412);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    assert_eq!(client.refusal(fs::DataPath {}), AbortCode::RXGEN_OPCODE);
    assert_eq!(client.no_capability(fid, READ), AbortCode::RXGEN_OPCODE);
    cell.open_data_path();
    let told = client.ask(fs::DataPath {}).unwrap();
    assert_eq!((told.port, told.clear, told.minimum_size, told.addresses.len()), (7000, true, 65_536, 0));
    client.capability(fid, READ).unwrap();
}

/// Carol has her right by a group of a group.
#[test]
fn a_user_who_left_a_group_cannot_use_earlier_capabilities() {
    let desk = Desk::new(413);
    let dir = desk.dir("d", "1\n0\nadmin:staff\t127\n");
    let carol = desk.a.acting_as(&Claim::of("carol"));
    let fid = carol.create(dir, "f").unwrap().fid;
    let version = carol.version(fid);
    let path = carol.path();
    let given = carol.capability(fid, READ).unwrap();
    let handle = path.present(&given);
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"");
    desk.cell.people.remove(CAROL, TEAM);
    assert_eq!(refused(path.read(&handle, fid, (0, 9), version)), Refusal::Revoked);
    // A capability for what she may still read does not bring the old one back.
    let open = desk.file("g", b"open");
    carol.capability(open, READ).unwrap();
    assert_eq!(refused(path.read(&handle, fid, (0, 9), version)), Refusal::Revoked);
}
