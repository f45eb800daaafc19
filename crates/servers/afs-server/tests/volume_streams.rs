//! Volumes as clones and as streams, over the wire.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::{Rx, ServerCall, Table};
use afs_testkit::net::endpoint;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::{Fid, KindNumber, PartitionNumber, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{
    self, AttachFlags, Destination, NameChars, Replica, RestoreCookie, TransactionId, VolumeFlags,
};
use afs_wire::xdr::BoundedVec;
use rig::{Cell, ClaimServer, Client, Heard, SERVER_IP, WORD};

const A: PartitionNumber = PartitionNumber(0);
const EVERYTHING: UnixSeconds = UnixSeconds(0);
const STRANGER_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

fn text(name: &str) -> vol::NameText {
    vol::NameText::new(name.as_bytes()).unwrap()
}

fn errno(errno: Errno) -> AbortCode {
    AbortCode(errno.number())
}

fn take(owner: &Client, volume: u32, flags: AttachFlags) -> TransactionId {
    let volume = VolumeId(volume);
    owner.ask(vol::TransCreate { volume, partition: A, flags }).unwrap().transaction
}

fn end(owner: &Client, transaction: TransactionId) {
    owner.ask(vol::EndTrans { transaction }).unwrap();
}

/// Puts a volume on line, as the tools do.
fn publish(owner: &Client, transaction: TransactionId) {
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags(0) }).unwrap();
    end(owner, transaction);
}

fn clone_call(transaction: TransactionId, kind: VolumeKind, name: &str, volume: u32) -> vol::Clone {
    let (purge, kind, volume) = (VolumeId(0), kind.into(), VolumeId(volume));
    vol::Clone { transaction, purge, kind, name: text(name), volume }
}

fn clone(owner: &Client, source: u32, kind: VolumeKind, name: &str, volume: u32) {
    let busy = take(owner, source, AttachFlags::BUSY);
    owner.ask(clone_call(busy, kind, name, volume)).unwrap();
    end(owner, busy);
}

fn create_empty(owner: &Client, name: &str, volume: u32) -> TransactionId {
    let (kind, volume) = (KindNumber(0), VolumeId(volume));
    let made = owner.ask(vol::CreateVolume { partition: A, name: text(name), kind, parent: volume, volume });
    made.unwrap().transaction
}

fn cookie(name: &str, volume: u32) -> RestoreCookie {
    let (name, kind) = (NameChars::truncated(name.as_bytes()), KindNumber(0));
    RestoreCookie { name, kind, clone: VolumeId(0), parent: VolumeId(volume) }
}

fn dump(owner: &Client, volume: u32) -> Vec<u8> {
    let transaction = take(owner, volume, AttachFlags::BUSY);
    let size = owner.ask(vol::GetSize { transaction, from_date: EVERYTHING }).unwrap().dump_size;
    let stream = owner.read_stream(vol::Dump { transaction, from_date: EVERYTHING }).unwrap();
    assert_eq!(stream.len() as u64, size, "the size that was told beforehand");
    end(owner, transaction);
    stream
}

fn own_address() -> Destination {
    Destination { host: SERVER_IP, port: 7005, security: 1 }
}

/// A cell whose root volume has a small and a large file.
fn filled(seed: u64) -> (Cell, Client, Client, [Fid; 2]) {
    let cell = Cell::new(seed);
    let (client, owner) = (cell.client(1), cell.owner());
    let fids = ["small", "large"].map(|name| client.create(cell.root(), name).unwrap().fid);
    client.store(fids[0], 0, b"a few words").unwrap();
    let large: Vec<u8> = (0..1_500_000u32).flat_map(|n| n.to_be_bytes()).take(1_500_000).collect();
    client.store(fids[1], 0, &large).unwrap();
    (cell, client, owner, fids)
}

fn in_volume(fid: Fid, volume: u32) -> Fid {
    Fid { volume: VolumeId(volume), ..fid }
}

#[test]
fn a_clone_is_published_recloned_and_breaks_one_promise_a_client() {
    let (cell, client, owner, [small, large]) = filled(201);
    let root = cell.root().volume.0;
    clone(&owner, root, VolumeKind::Backup, "root.cell.backup", 901);
    assert_eq!(client.refusal(fs::FetchStatus { fid: in_volume(small, 901) }), AbortCode::VNOVOL);
    let listed = owner.ask(vol::ListVolumes { partition: A, flags: 1 }).unwrap().volumes;
    assert!(listed.iter().all(|volume| volume.id.0 != 901), "not listed before it is published");
    publish(&owner, take(&owner, 901, AttachFlags::OFFLINE));
    assert_eq!(client.read(in_volume(small, 901)), b"a few words");
    client.fetch_status(in_volume(large, 901)).unwrap();
    let refused = client.store(in_volume(small, 901), 0, b"x").unwrap_err();
    assert_eq!(refused.abort_code(), Some(Errno::EROFS.to_uae()));

    let told = owner.ask(vol::ListOneVolume { partition: A, volume: cell.root().volume }).unwrap().volumes;
    assert_eq!(told[0].backup_id, VolumeId(901));
    client.store(small, 0, b"other words").unwrap();
    assert_eq!(client.read(in_volume(small, 901)), b"a few words");
    client.heard();
    let busy = take(&owner, root, AttachFlags::BUSY);
    owner.ask(vol::ReClone { transaction: busy, clone: VolumeId(901) }).unwrap();
    end(&owner, busy);
    cell.sim.run_for(Duration::from_secs(1));
    let expected = [Heard::Break(vec![Fid::whole_volume(VolumeId(901))])];
    assert_eq!(client.heard(), expected, "one message, whatever is cached");
    assert_eq!(client.read(in_volume(small, 901)), b"other words", "on line at once");
    let busy = take(&owner, root, AttachFlags::BUSY);
    assert_eq!(owner.refusal(vol::ReClone { transaction: busy, clone: VolumeId(5) }), errno(Errno::EXDEV));
    let taken = owner.refusal(clone_call(busy, VolumeKind::Backup, "x", 901));
    assert_eq!(taken, AbortCode::VVOLEXISTS);
    assert_eq!(owner.refusal(clone_call(busy, VolumeKind::Backup, "x", 0)), errno(Errno::EINVAL));
}

#[test]
fn snapshots_are_told_by_both_services() {
    let (cell, client, owner, _) = filled(202);
    let root = cell.root().volume;
    for (name, id) in [("monday", 910), ("tuesday", 911)] {
        clone(&owner, root.0, VolumeKind::Backup, &format!("root.cell.{name}"), id);
        publish(&owner, take(&owner, id, AttachFlags::OFFLINE));
        cell.sim.run_for(Duration::from_secs(2));
    }
    clone(&owner, root.0, VolumeKind::Backup, "root.cell.backup", 912);
    clone(&owner, root.0, VolumeKind::Backup, "root.cell.secret", 913);
    let told = client.ask(fs::ListSnapshots { volume: root }).unwrap().snapshots;
    let names: Vec<_> = told.iter().map(|s| (s.name.to_string(), s.volume.0)).collect();
    assert_eq!(names, [("tuesday".to_owned(), 911), ("monday".to_owned(), 910)]);
    assert!(told[0].created > told[1].created);
    assert_eq!(client.ask(vol::ListSnapshots { volume: root }).unwrap().snapshots, told);
    assert_eq!(client.refusal(fs::ListSnapshots { volume: VolumeId(77) }), AbortCode::VNOVOL);
    // The group's backup volume is another matter.
    let header = owner.ask(vol::ListOneVolume { partition: A, volume: root }).unwrap().volumes;
    assert_eq!(header[0].backup_id, VolumeId(912));
}

#[test]
fn a_dump_restored_is_the_volume() {
    let (cell, _, owner, [small, large]) = filled(203);
    let stream = dump(&owner, cell.root().volume.0);
    let transaction = create_empty(&owner, "copy", 900);
    let restore = || vol::Restore { transaction, flags: 1, cookie: cookie("copy", 900) };
    for cut in [0, 4, 100, stream.len() / 2, stream.len() - 1] {
        let refused = owner.send_stream(restore(), &[&stream[..cut]]).unwrap_err();
        assert_eq!(refused.abort_code(), Some(AbortCode::VOLSERREAD_DUMPERROR), "cut at {cut}");
    }
    let one_too_many = owner.send_stream(restore(), &[&stream, b"x"]).unwrap_err();
    assert_eq!(one_too_many.abort_code(), Some(AbortCode::VOLSERREAD_DUMPERROR));
    let (first, rest) = stream.split_at(333);
    owner.send_stream(restore(), &[first, rest]).unwrap();
    publish(&owner, transaction);
    assert_eq!(owner.read(in_volume(small, 900)), b"a few words");
    assert_eq!(owner.read(in_volume(large, 900)), owner.read(large));
    let [one, other] = [small, in_volume(small, 900)].map(|fid| owner.fetch_status(fid).unwrap().status);
    assert_eq!((one.data_version, one.owner, one.mode), (other.data_version, other.owner, other.mode));
    assert_eq!(one.server_mod_time.seconds(), other.server_mod_time.seconds(), "others read it too");
    assert_eq!(dump(&owner, 900)[400..], dump(&owner, 900)[400..]);
}

#[test]
fn a_client_that_goes_away_has_restored_nothing() {
    let (cell, client, owner, [small, _]) = filled(204);
    let root = cell.root().volume;
    let stream = dump(&owner, root.0);
    client.store(small, 0, b"newer words").unwrap();
    let offline = take(&owner, root.0, AttachFlags::OFFLINE);
    let restore = vol::Restore { transaction: offline, flags: 1, cookie: cookie("root.cell", root.0) };
    owner.abandon_stream(restore, &stream[..stream.len() / 2]);
    cell.sim.run_for(Duration::from_secs(5));
    end(&owner, offline);
    assert_eq!(client.read(small), b"newer words");
    client.store(small, 0, b"and goes on").unwrap();
    assert_eq!(client.read(small), b"and goes on");
}

#[test]
fn a_restore_shows_at_once_and_breaks_the_volume() {
    let (cell, client, owner, [small, _]) = filled(205);
    let root = cell.root().volume;
    let stream = dump(&owner, root.0);
    client.store(small, 0, b"newer words").unwrap();
    client.fetch_status(small).unwrap();
    client.heard();
    let offline = take(&owner, root.0, AttachFlags::OFFLINE);
    let restore = vol::Restore { transaction: offline, flags: 1, cookie: cookie("root.cell", root.0) };
    owner.send_stream(restore, &[&stream]).unwrap();
    publish(&owner, offline);
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!(client.heard(), [Heard::Break(vec![Fid::whole_volume(root)])]);
    assert_eq!(client.read(small), b"a few words");
}

/// The dump of a temporary clone says that it is out of service. A release sends one to copies in use; the
/// tool may die before it sets them in service.
#[test]
fn a_volume_stays_in_service_when_a_temporary_clone_is_restored_onto_it() {
    let (cell, client, owner, [small, _]) = filled(208);
    let root = cell.root().volume.0;
    let busy = take(&owner, root, AttachFlags::BUSY);
    owner.ask(clone_call(busy, VolumeKind::ReadOnly, "temporary", 901)).unwrap();
    end(&owner, busy);
    let stream = dump(&owner, 901);
    let held = take(&owner, root, AttachFlags::BUSY);
    let restore = vol::Restore { transaction: held, flags: 1, cookie: cookie("root.cell", root) };
    owner.send_stream(restore, &[&stream]).unwrap();
    assert_eq!(client.read(small), b"a few words", "while it is held");
    end(&owner, held);
    assert_eq!(client.read(small), b"a few words");
}

#[test]
fn a_volume_is_forwarded_and_what_changed_since_as_well() {
    let (cell, client, owner, [small, large]) = filled(206);
    let root = cell.root().volume.0;
    let target = create_empty(&owner, "copy", 900);
    let source = take(&owner, root, AttachFlags::BUSY);
    let forward = |source, target, from_date| vol::Forward {
        transaction: source,
        from_date,
        destination: own_address(),
        destination_transaction: target,
        cookie: cookie("copy", 900),
    };
    owner.ask(forward(source, target, EVERYTHING)).unwrap();
    publish(&owner, target);
    end(&owner, source);
    assert_eq!(owner.read(in_volume(large, 900)), owner.read(large));

    cell.sim.run_for(Duration::from_secs(10));
    let since = owner.ask(fs::GetTime {}).unwrap().seconds;
    client.store(small, 0, b"changed words").unwrap();
    client.create(cell.root(), "new").unwrap();
    client.remove(cell.root(), "large").unwrap();
    let (source, target) = (take(&owner, root, AttachFlags::BUSY), take(&owner, 900, AttachFlags::OFFLINE));
    owner.ask(forward(source, target, UnixSeconds(since))).unwrap();
    publish(&owner, target);
    assert_eq!(owner.read(in_volume(small, 900)), b"changed words");
    assert_eq!(owner.refusal(fs::FetchStatus { fid: in_volume(large, 900) }), AbortCode::VNOVNODE);

    // The reply is the other server's.
    assert_eq!(owner.refusal(forward(source, TransactionId(77), EVERYTHING)), errno(Errno::ENOENT));
    let nobody = Destination { host: Ipv4Addr::new(10, 0, 0, 66), ..own_address() };
    let to_nobody = vol::Forward { destination: nobody, ..forward(source, target, EVERYTHING) };
    assert_eq!(owner.refusal(to_nobody), AbortCode::RX_CALL_DEAD);
}

/// A volume server with only the calls of AFS, which keeps what it receives.
fn stranger(cell: &Cell, sent: &Arc<Mutex<Vec<u8>>>) -> Rx {
    let node = cell.sim.node("stranger", IpAddr::V4(STRANGER_IP));
    let address = SocketAddr::from((STRANGER_IP, 7005));
    let rx = endpoint(&cell.sim, node, address);
    let known =
        |_, _, _: vol::GetFlags| async { Ok::<_, AbortCode>(vol::GetFlagsReply { flags: VolumeFlags(0) }) };
    let table = Table::new(ServiceId::VOLUME, sent.clone()).call(known);
    let keep = |sent: Arc<Mutex<Vec<u8>>>, mut call: ServerCall, _: vol::Restore| async move {
        while let Ok(pieces) = call.read_pieces(1 << 16).await
            && !pieces.is_empty()
        {
            pieces.iter().for_each(|piece| sent.lock().unwrap().extend_from_slice(piece));
        }
        let _ = call.reply(&()).await;
    };
    rx.listen_with(Arc::new(table.streamed(keep)), vec![Box::new(ClaimServer(WORD.into()))]).unwrap();
    rx
}

#[test]
fn a_volume_with_a_file_of_a_pebibyte_goes_to_servers_that_take_holes_and_to_no_others() {
    let (cell, client, owner, [small, large]) = filled(231);
    let root = cell.root().volume.0;
    let sent = Arc::default();
    let _stranger = stranger(&cell, &sent);
    let elsewhere = Destination { host: STRANGER_IP, ..own_address() };
    let targets = [("one", 900), ("two", 901)].map(|(name, id)| create_empty(&owner, name, id));
    let forward = |source, destination, target, name, id| vol::Forward {
        transaction: source,
        from_date: EVERYTHING,
        destination,
        destination_transaction: target,
        cookie: cookie(name, id),
    };
    // A few holes are accepted.
    client.store(small, 30 << 20, b"end").unwrap();
    let source = take(&owner, root, AttachFlags::BUSY);
    let plain = owner.read_stream(vol::Dump { transaction: source, from_date: EVERYTHING }).unwrap();
    end(&owner, source);
    assert!(plain.len() > 30 << 20);
    client.store(small, 1 << 50, b"end").unwrap();
    let source = take(&owner, root, AttachFlags::BUSY);
    owner.ask(forward(source, own_address(), targets[0], "one", 900)).unwrap();
    publish(&owner, targets[0]);
    let copied = in_volume(small, 900);
    assert_eq!(client.fetch_status(copied).unwrap().status.length, (1 << 50) + 3);
    assert_eq!(client.read(in_volume(large, 900)), client.read(large));

    let refusal = errno(Errno::EFBIG);
    assert_eq!(owner.refusal(forward(source, elsewhere, TransactionId(1), "two", 901)), refusal);
    let dump = owner.read_stream(vol::Dump { transaction: source, from_date: EVERYTHING }).unwrap_err();
    assert_eq!(dump.abort_code(), Some(refusal));
    let to = |transaction, server: Destination| Replica { transaction, server };
    let results = owner.ask(vol::ForwardMultiple {
        transaction: source,
        from_date: EVERYTHING,
        replicas: BoundedVec::first_of([to(TransactionId(1), elsewhere), to(targets[1], own_address())]),
        spare: 0,
        cookie: cookie("two", 901),
    });
    assert_eq!(results.unwrap().results.to_vec(), [refusal.0, 0]);
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn a_server_that_does_not_know_holes_gets_a_dump_of_afs() {
    let (cell, client, owner, [small, _]) = filled(232);
    let sent = Arc::default();
    let _stranger = stranger(&cell, &sent);
    client.store(small, 3 << 20, b"end").unwrap();
    let source = take(&owner, cell.root().volume.0, AttachFlags::BUSY);
    owner
        .ask(vol::Forward {
            transaction: source,
            from_date: EVERYTHING,
            destination: Destination { host: STRANGER_IP, ..own_address() },
            destination_transaction: TransactionId(1),
            cookie: cookie("copy", 900),
        })
        .unwrap();
    let dumped = owner.read_stream(vol::Dump { transaction: source, from_date: EVERYTHING }).unwrap();
    assert!(*sent.lock().unwrap() == dumped);
}

#[test]
fn a_dead_destination_does_not_stop_the_others() {
    let (cell, _, owner, [small, large]) = filled(207);
    let targets = [("one", 900), ("two", 901)].map(|(name, id)| create_empty(&owner, name, id));
    let source = take(&owner, cell.root().volume.0, AttachFlags::BUSY);
    let to = |transaction, host| Replica { transaction, server: Destination { host, ..own_address() } };
    let replicas = [
        to(targets[0], SERVER_IP),
        to(TransactionId(77), SERVER_IP),
        to(TransactionId(1), Ipv4Addr::new(10, 0, 0, 66)),
        to(targets[1], SERVER_IP),
    ];
    let results = owner.ask(vol::ForwardMultiple {
        transaction: source,
        from_date: EVERYTHING,
        replicas: BoundedVec::first_of(replicas),
        spare: 0,
        cookie: cookie("same", 900),
    });
    let results = results.unwrap().results.to_vec();
    assert_eq!(results, [0, errno(Errno::ENOENT).0, AbortCode::RX_CALL_DEAD.0, 0]);
    targets.into_iter().for_each(|target| publish(&owner, target));
    for id in [900, 901] {
        assert_eq!(owner.read(in_volume(small, id)), b"a few words");
        assert_eq!(owner.read(in_volume(large, id)), owner.read(large));
    }
}

#[test]
fn a_read_only_volume_becomes_the_read_write_one() {
    let (cell, client, owner, [small, _]) = filled(208);
    let root = cell.root().volume;
    clone(&owner, root.0, VolumeKind::ReadOnly, "root.cell.readonly", 900);
    publish(&owner, take(&owner, 900, AttachFlags::OFFLINE));
    let convert = vol::ConvertRoToRw { partition: A, volume: VolumeId(900) };
    assert_eq!(owner.refusal(convert.clone()), errno(Errno::EXDEV), "the read-write volume is here");
    let gone = take(&owner, root.0, AttachFlags::OFFLINE);
    owner.ask(vol::DeleteVolume { transaction: gone }).unwrap();
    end(&owner, gone);
    assert_eq!(owner.read(in_volume(small, 900)), b"a few words", "a clone outlives its volume");
    owner.ask(convert).unwrap();
    assert_eq!(client.refusal(fs::FetchStatus { fid: in_volume(small, 900) }), AbortCode::VNOVOL);
    assert_eq!(client.read(small), b"a few words");
    client.store(small, 0, b"and new ones").unwrap();
    let told = owner.ask(vol::ListOneVolume { partition: A, volume: root }).unwrap().volumes;
    assert_eq!((told[0].name.text(), told[0].kind), (&b"root.cell"[..], KindNumber(0)));
}

#[test]
fn an_unpublished_volume_is_removed_by_a_restart() {
    let (mut cell, _, owner, _) = filled(209);
    clone(&owner, cell.root().volume.0, VolumeKind::ReadOnly, "root.cell.readonly", 900);
    create_empty(&owner, "half", 901);
    cell.restart();
    cell.sim.run_for(Duration::from_secs(5));
    let owner = cell.owner();
    for volume in [900, 901].map(VolumeId) {
        let one = vol::ListOneVolume { partition: A, volume };
        assert_eq!(owner.refusal(one), errno(Errno::ENODEV), "{volume}");
    }
}

#[test]
fn a_volume_has_moved_from_the_moment_it_is_said() {
    let (cell, client, owner, [small, _]) = filled(210);
    let root = cell.root().volume;
    client.fetch_status(small).unwrap();
    client.heard();
    let busy = take(&owner, root.0, AttachFlags::BUSY);
    owner.ask(vol::SetForwarding { transaction: busy, site: [10, 0, 0, 9].into() }).unwrap();
    assert_eq!(client.refusal(fs::FetchStatus { fid: small }), AbortCode::VMOVED);
    cell.sim.run_for(Duration::from_secs(1));
    assert_eq!(client.heard(), [Heard::Break(vec![Fid::whole_volume(root)])]);
    owner.ask(vol::DeleteVolume { transaction: busy }).unwrap();
    end(&owner, busy);
    assert_eq!(client.refusal(fs::FetchStatus { fid: small }), AbortCode::VMOVED);
    // It comes back.
    let back = create_empty(&owner, "root.cell", root.0);
    publish(&owner, back);
    assert_eq!(client.refusal(fs::FetchStatus { fid: small }), AbortCode::VNOVNODE, "here, and empty");
}

#[test]
fn uses_are_counted_and_kept() {
    let (mut cell, client, owner, [small, _]) = filled(211);
    let root = cell.root().volume;
    for _ in 0..20 {
        client.fetch_status(small).unwrap();
    }
    let told =
        |owner: &Client| owner.ask(vol::ListOneVolume { partition: A, volume: root }).unwrap().volumes[0];
    let before = told(&owner);
    assert!(before.day_use >= 20 && before.access_date >= before.creation_date, "{before:?}");
    cell.sim.run_for(Duration::from_secs(60));
    cell.restart();
    assert_eq!(told(&cell.owner()).day_use, before.day_use);
}
