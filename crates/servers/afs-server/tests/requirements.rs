//! Requirements on connections, revoked memberships, and the audit log.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_rpc::{CallError, Class, Level};
use afs_server::{Policy, Requirement};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText, Fids};
use afs_wire::ids::{Fid, Rights, ViceId};
use afs_wire::rpc::ServiceId;
use afs_wire::{vl, vol};
use rig::people::{CAROL, DORA, LAB, STAFF, TEAM};
use rig::{Cell, Claim, Client, Heard};

const EACCES: fn() -> AbortCode = || Errno::EACCES.to_uae();

fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

fn code<T: std::fmt::Debug>(answer: Result<T, CallError>) -> AbortCode {
    answer.unwrap_err().abort_code().unwrap()
}

/// By class and level: the connections over which the status of a volume's root can be read.
fn passing(cell: &Cell, root: Fid) -> Vec<&'static str> {
    let client = cell.client(9);
    let by = |class, level| client.acting_as(&Claim::of("dora").protected(class, level));
    let callers = [
        ("nobody", client.clone()),
        ("rxkad clear", by(Class::Rxkad, Level::Clear)),
        ("rxkad auth", by(Class::Rxkad, Level::Auth)),
        ("rxkad crypt", by(Class::Rxkad, Level::Crypt)),
        ("rxgk auth", by(Class::Rxgk, Level::Auth)),
        ("rxgk crypt", by(Class::Rxgk, Level::Crypt)),
        ("this process", cell.owner()),
    ];
    let passes = |client: &Client| match client.fetch_status(root) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.abort_code(), Some(EACCES()));
            false
        }
    };
    callers.iter().filter(|(_, client)| passes(client)).map(|caller| caller.0).collect()
}

#[test]
fn a_volume_is_closed_to_connections_that_are_too_weak_administrators_too() {
    let all =
        ["nobody", "rxkad clear", "rxkad auth", "rxkad crypt", "rxgk auth", "rxgk crypt", "this process"];
    let met: [&[usize]; 6] =
        [&[0, 1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6], &[2, 3, 4, 5, 6], &[3, 5, 6], &[4, 5, 6], &[5, 6]];
    for (requirement, met) in Requirement::ALL.into_iter().zip(met) {
        let cell = Cell::new(91);
        cell.policy.set(Policy::default().of_volume("root.cell", requirement));
        let expected: Vec<_> = met.iter().map(|place| all[*place]).collect();
        assert_eq!(passing(&cell, cell.root()), expected, "{requirement}");
        assert_eq!(passing(&cell, Fid::root(cell.volumes.root_afs)), all, "another volume");
    }
}

#[test]
fn a_requirement_can_be_made_of_the_whole_service_and_taken_back_at_run_time() {
    let cell = Cell::new(92);
    let client = cell.client(1);
    client.fetch_status(cell.root()).unwrap();
    cell.policy.set(Policy::default().of_service(ServiceId::FILE, Requirement::Crypt));
    assert_eq!(passing(&cell, cell.root()), ["rxkad crypt", "rxgk crypt", "this process"]);
    client.ask(fs::GetTime {}).unwrap();
    client.ask(fs::GetCapabilities {}).unwrap();
    client.ask(vl::ProbeServer {}).unwrap();
    cell.policy.set(Policy::default());
    client.fetch_status(cell.root()).unwrap();
}

#[test]
fn no_call_on_a_closed_volume_passes() {
    let cell = Cell::new(93);
    let client = cell.client(1);
    let root = cell.root();
    let fid = client.create(root, "f").unwrap().fid;
    client.fetch_status(fid).unwrap();
    cell.policy.set(Policy::default().of_volume("root.cell", Requirement::Clear));
    let fids = || Fids::first_of([fid]);
    let (callbacks, sync) = (fs::Promises::new(), fs::VolSync::default());
    let outcomes = [
        ("FetchStatus", code(client.fetch_status(fid))),
        ("FetchData64", code(client.fetch(fid, 0, 9))),
        ("StoreData64", code(client.store(fid, 0, b"x"))),
        ("FetchACL", code(client.ask(fs::FetchAcl { fid: root }))),
        ("StoreACL", code(client.ask(fs::StoreAcl { fid: root, acl: acl("0\n0\n") }))),
        ("StoreStatus", code(client.ask(fs::StoreStatus { fid, status: rig::mode(0o600) }))),
        ("CreateFile", code(client.create(root, "g"))),
        ("MakeDir", code(client.make_dir(root, "g"))),
        ("Symlink", code(client.symlink(root, "g", "x", 0o777))),
        ("Link", code(client.link(root, "g", fid))),
        ("Rename", code(client.rename(root, "f", root, "g"))),
        ("RemoveFile", code(client.remove(root, "f"))),
        ("RemoveDir", code(client.remove_dir(root, "f"))),
        ("BulkStatus", code(client.ask(fs::BulkStatus { fids: fids() }))),
        ("SetLock", code(client.ask(fs::SetLock { fid, kind: fs::LockKind::READ }))),
        ("ExtendLock", code(client.ask(fs::ExtendLock { fid }))),
        ("ReleaseLock", code(client.ask(fs::ReleaseLock { fid }))),
        ("OldReleaseLock", code(client.ask(fs::OldReleaseLock { fid, sync }))),
        ("GetVolumeStatus", code(client.ask(fs::GetVolumeStatus { volume: root.volume }))),
        ("GiveUpAllCallBacks", code(client.ask(fs::GiveUpAllCallBacks {}))),
    ];
    for (call, code) in outcomes {
        assert_eq!(code, EACCES(), "{call}");
    }
    let inline = client.ask(fs::InlineBulkStatus { fids: fids() }).unwrap();
    assert_eq!((inline.statuses[0].error, inline.callbacks[0]), (EACCES(), fs::CallBack::NONE));
    // A caller that may not have promises cannot give up earlier ones.
    client.ask(fs::GiveUpCallBacks { fids: fids(), callbacks }).unwrap();
    client.heard();
    cell.owner().store(fid, 0, b"new").unwrap();
    assert_eq!(client.heard(), [Heard::Break(vec![fid])]);
}

#[test]
fn volumes_are_managed_over_connections_that_are_good_enough_for_all_of_them() {
    let cell = Cell::new(94);
    let client = cell.client(1);
    let weak = client.acting_as(&Claim::of("dora").protected(Class::Rxkad, Level::Crypt));
    let strong = client.acting_as(&Claim::of("dora"));
    let create = || vl::GetNewVolumeId { count: 1 };
    let open = |client: &Client| {
        let (volume, partition) = (cell.volumes.root_afs, afs_wire::ids::PartitionNumber(0));
        client.ask(vol::TransCreate { volume, partition, flags: vol::AttachFlags::BUSY })
    };
    weak.ask(create()).unwrap();
    cell.policy.set(Policy::default().of_volume("root.cell", Requirement::RxgkCrypt));
    assert_eq!(weak.refusal(create()), AbortCode::VL_PERM);
    assert_eq!(code(open(&weak)), AbortCode::VOLSERBAD_ACCESS);
    strong.ask(create()).unwrap();
    open(&strong).unwrap();
    client.ask(vl::GetStats {}).unwrap();
}

#[test]
fn memberships_count_from_the_next_call_on_both_ways() {
    let cell = Cell::with(95, Default::default(), "none");
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    owner.ask(fs::StoreAcl { fid: root, acl: acl("1\n0\nadmin:staff\t63\n") }).unwrap();
    let (carol, dora) = (client.acting_as(&Claim::of("carol")), client.acting_as(&Claim::of("dora")));
    carol.create(root, "one").unwrap();
    cell.people.remove(TEAM, STAFF);
    assert_eq!(code(carol.create(root, "two")), EACCES());
    cell.people.add(CAROL, STAFF);
    carol.create(root, "two").unwrap();
    let change = || vl::GetNewVolumeId { count: 1 };
    dora.ask(change()).unwrap();
    cell.people.remove(DORA, ViceId::ADMINISTRATORS);
    assert_eq!(dora.refusal(change()), AbortCode::VL_PERM);
    cell.people.add_host(client.address.ip(), LAB);
    owner.ask(fs::StoreAcl { fid: root, acl: acl("1\n1\nadmin:lab\t9\ncarol\t127\n") }).unwrap();
    let status = client.fetch_status(root).unwrap().status;
    assert_eq!(
        (status.caller_access, status.anonymous_access),
        ("rl".parse().unwrap(), "rl".parse().unwrap())
    );
    let elsewhere = cell.client(2).fetch_status(root).unwrap().status;
    assert_eq!((elsewhere.caller_access, elsewhere.anonymous_access), (Rights::NONE, Rights::NONE));
}

#[test]
fn without_a_protection_database_nobody_is_taken_for_anybody() {
    let cell = Cell::new(96);
    let client = cell.client(1);
    cell.people.go_away();
    for caller in [&client, &client.acting_as(&Claim::of_key())] {
        assert_eq!(code(caller.fetch_status(cell.root())), AbortCode(-1001));
        assert_eq!(caller.refusal(vl::GetNewVolumeId { count: 1 }), AbortCode(-1001));
    }
}

#[test]
fn a_user_who_loses_rights_is_called_back_for_the_directory() {
    let cell = Cell::new(97);
    let (reader, other, owner) = (cell.client(1), cell.client(2), cell.owner());
    let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
    let fid = owner.create(dir, "f").unwrap().fid;
    for client in [&reader, &other] {
        client.fetch_status(dir).unwrap();
        client.fetch_status(fid).unwrap();
        client.heard();
    }
    owner.ask(fs::StoreAcl { fid: dir, acl: acl("1\n0\nadmin:staff\t63\n") }).unwrap();
    for client in [&reader, &other] {
        assert_eq!(client.heard(), [Heard::Break(vec![dir])], "the rights of its files hang on it");
        assert_eq!(client.fetch_status(dir).unwrap().status.caller_access, Rights::NONE);
        assert_eq!(client.refusal(fs::FetchStatus { fid }), EACCES());
    }
}

#[test]
fn changes_and_refusals_are_recorded_with_who_what_and_outcome() {
    let cell = Cell::with(98, Default::default(), "rl");
    let client = cell.client(1);
    let root = cell.root();
    let (alice, dora) = (client.acting_as(&Claim::of("alice")), client.acting_as(&Claim::of("dora")));
    let key = client.acting_as(&Claim::of_key());
    client.fetch_status(root).unwrap();
    client.read(root);
    let denied = Errno::EACCES.to_uae().0;
    assert_eq!(code(client.create(root, "x")), EACCES());
    dora.ask(fs::StoreAcl { fid: root, acl: acl("2\n0\nalice\t127\nsystem:administrators\t127\n") }).unwrap();
    let fid = alice.create(root, "f\u{7}").unwrap().fid;
    alice.store(fid, 0, b"x").unwrap();
    alice.rename(root, "f\u{7}", root, "g").unwrap();
    assert_eq!(code(client.fetch(fid, 0, 1)), EACCES());
    assert_eq!(alice.refusal(vl::GetNewVolumeId { count: 1 }), AbortCode::VL_PERM);
    key.ask(vl::GetNewVolumeId { count: 1 }).unwrap();
    let transaction = vol::TransactionId(5);
    assert_eq!(alice.refusal(vol::EndTrans { transaction }), AbortCode::VOLSERBAD_ACCESS);
    assert_eq!(key.refusal(vol::EndTrans { transaction }), AbortCode(2));
    let lines = [
        format!("- CreateFile {root}/x -> {denied}"),
        format!("dora StoreACL {root} -> 0"),
        format!("alice CreateFile {root}/f\u{7} -> 0"),
        format!("alice StoreData64 {fid} -> 0"),
        format!("alice Rename {root}/f\u{7} -> {root}/g -> 0"),
        format!("- FetchData64 {fid} -> {denied}"),
        "alice GetNewVolumeId  -> 363546".into(),
        "(cell key) GetNewVolumeId  -> 0".into(),
        "alice EndTrans transaction 5 -> 1492325127".into(),
        "(cell key) EndTrans transaction 5 -> 2".into(),
    ];
    assert_eq!(cell.recorded(), lines);
}
