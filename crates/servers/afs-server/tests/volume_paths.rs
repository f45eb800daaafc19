//! Dumps by the data path: the same bytes as by calls, a whole volume or none, and nothing for who has another's ticket.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_datapath::capability::{Capability, Group, HolderId, Refusal, StreamName};
use afs_datapath::session::{Error, Failure, Handle};
use afs_rpc::EnvExt;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{Fid, KindNumber, PartitionNumber, UnixSeconds, VolumeId};
use afs_wire::vol::{
    self, AttachFlags, Destination, DumpByPath, NameChars, Replica, RestoreByPath, RestoreCookie,
    StreamGrant, TransactionId, VolumeFlags,
};
use afs_wire::xdr::BoundedVec;
use rig::drive::{Path, arguments, stream_of};
use rig::{Cell, Client, SERVER_IP};

const A: PartitionNumber = PartitionNumber(0);
const EVERYTHING: UnixSeconds = UnixSeconds(0);

/// A cell with its data path, and a root volume that has a small and a large file.
struct Scene {
    cell: Cell,
    client: Client,
    owner: Client,
    files: [Fid; 2],
}

impl Scene {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        cell.open_data_path();
        let (client, owner) = (cell.client(1), cell.owner());
        let files = ["small", "large"].map(|name| client.create(cell.root(), name).unwrap().fid);
        client.store(files[0], 0, b"a few words").unwrap();
        let large: Vec<u8> = (0..1_500_000u32).map(|n| (n * 7 + n / 251) as u8).collect();
        client.store(files[1], 0, &large).unwrap();
        Scene { cell, client, owner, files }
    }

    fn root(&self) -> u32 {
        self.cell.root().volume.0
    }

    fn take(&self, volume: u32) -> TransactionId {
        let flags = AttachFlags::BUSY;
        self.owner
            .ask(vol::TransCreate { volume: VolumeId(volume), partition: A, flags })
            .unwrap()
            .transaction
    }

    fn end(&self, transaction: TransactionId) {
        self.owner.ask(vol::EndTrans { transaction }).unwrap();
    }

    fn create(&self, volume: u32) -> TransactionId {
        let (name, kind, volume) = (vol::NameText::new(*b"copy").unwrap(), KindNumber(0), VolumeId(volume));
        let made = vol::CreateVolume { partition: A, name, kind, parent: volume, volume };
        self.owner.ask(made).unwrap().transaction
    }

    fn publish(&self, transaction: TransactionId) {
        self.owner.ask(vol::SetFlags { transaction, flags: VolumeFlags(0) }).unwrap();
        self.end(transaction);
    }

    fn dump(&self, transaction: TransactionId) -> Vec<u8> {
        self.owner.read_stream(vol::Dump { transaction, from_date: EVERYTHING }).unwrap()
    }

    fn streams(&self) -> u64 {
        self.cell.files().data_path_counts().streams
    }

    /// Whether a copy of the root volume has its files.
    fn is_copied(&self, volume: u32) {
        for fid in self.files {
            let copy = Fid { volume: VolumeId(volume), ..fid };
            assert!(self.owner.read(copy) == self.client.read(fid), "{copy}");
        }
    }

    fn path(&self) -> Path {
        self.owner.path()
    }
}

fn cookie(volume: u32) -> RestoreCookie {
    let (name, kind) = (NameChars::truncated(b"copy"), KindNumber(0));
    RestoreCookie { name, kind, clone: VolumeId(0), parent: VolumeId(volume) }
}

fn dump_by_path(transaction: TransactionId) -> DumpByPath {
    DumpByPath { transaction, from_date: EVERYTHING, flags: 0 }
}

fn restore_by_path(transaction: TransactionId) -> RestoreByPath {
    RestoreByPath { transaction, flags: 1, cookie: cookie(900) }
}

fn own_address() -> Destination {
    Destination { host: SERVER_IP, port: 7005, security: 1 }
}

fn present(path: &Path, grant: &StreamGrant) -> Handle {
    path.present_as(&arguments(&grant.capability), grant.capability.secret.0)
}

fn refused<T>(outcome: Result<T, Error>) -> Refusal {
    match outcome.map(drop) {
        Err(Error::Failed(Failure::Refused(refusal))) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_dump_by_the_data_path_has_the_bytes_of_the_call_and_is_restored_by_it() {
    let scene = Scene::new(701);
    let (source, path) = (scene.take(scene.root()), scene.path());
    let dumped = scene.dump(source);
    let (call, grant) = scene.owner.granted(dump_by_path(source)).unwrap();
    let received = path.receive_stream(&present(&path, &grant), stream_of(&grant)).unwrap();
    assert!(received == dumped, "other bytes");
    scene.owner.end_of(call).unwrap();

    let target = scene.create(900);
    let (call, grant) = scene.owner.granted(restore_by_path(target)).unwrap();
    path.send_stream(&present(&path, &grant), stream_of(&grant), &dumped).unwrap();
    scene.owner.end_of(call).unwrap();
    scene.end(source);
    scene.publish(target);
    scene.is_copied(900);
    assert_eq!(scene.streams(), 2);
}

/// As a tool does whose volume is small, or that does not reach the drive.
#[test]
fn a_client_that_declines_a_stream_makes_its_next_call_at_once() {
    let scene = Scene::new(712);
    let source = scene.take(scene.root());
    let (call, _) = scene.owner.granted(dump_by_path(source)).unwrap();
    drop(call);
    let before = scene.cell.sim.now();
    scene.dump(source);
    let waited = scene.cell.sim.now().saturating_since(before);
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    scene.end(source);
}

#[test]
fn volumes_are_forwarded_by_the_data_path_and_counted() {
    let scene = Scene::new(702);
    let (source, targets) = (scene.take(scene.root()), [900, 901, 902].map(|id| scene.create(id)));
    scene
        .owner
        .ask(vol::Forward {
            transaction: source,
            from_date: EVERYTHING,
            destination: own_address(),
            destination_transaction: targets[0],
            cookie: cookie(900),
        })
        .unwrap();
    assert_eq!(scene.streams(), 1);
    let to = |transaction| Replica { transaction, server: own_address() };
    let multiple = vol::ForwardMultiple {
        transaction: source,
        from_date: EVERYTHING,
        replicas: BoundedVec::first_of([to(targets[1]), to(TransactionId(77)), to(targets[2])]),
        spare: 0,
        cookie: cookie(901),
    };
    let results = scene.owner.ask(multiple).unwrap().results.to_vec();
    assert_eq!(results, [0, Errno::ENOENT.number(), 0]);
    assert_eq!(scene.streams(), 3);
    scene.end(source);
    targets.into_iter().for_each(|target| scene.publish(target));
    [900, 901, 902].into_iter().for_each(|id| scene.is_copied(id));
}

#[test]
fn without_a_data_path_and_for_little_volumes_calls_are_used() {
    let scene = Scene::new(703);
    let [_, large] = scene.files;
    let forward = |target| {
        let source = scene.take(scene.root());
        let (destination, cookie) = (own_address(), cookie(900));
        let destination_transaction = target;
        let sent = scene.owner.ask(vol::Forward {
            transaction: source,
            from_date: EVERYTHING,
            destination,
            destination_transaction,
            cookie,
        });
        scene.end(source);
        sent
    };
    // The large file makes the difference: the minimum is 64 KiB.
    scene.client.remove(scene.cell.root(), "large").unwrap();
    let target = scene.create(900);
    forward(target).unwrap();
    assert_eq!(scene.streams(), 0);
    scene.publish(target);
    assert_eq!(scene.owner.read(Fid { volume: VolumeId(900), ..scene.files[0] }), b"a few words");
    let again = scene.client.create(scene.cell.root(), "large").unwrap().fid;
    scene.client.store(again, 0, &vec![5; 300_000]).unwrap();
    assert_ne!(again, large);
    scene.cell.files().close_data_path();
    let target = scene.create(901);
    forward(target).unwrap();
    assert_eq!(scene.streams(), 0);
    scene.publish(target);
    assert_eq!(scene.owner.read(Fid { volume: VolumeId(901), ..again }).len(), 300_000);
    let source = scene.take(scene.root());
    let refusal = scene.owner.granted(dump_by_path(source)).map(drop).unwrap_err();
    assert_eq!(refusal.abort_code(), Some(AbortCode::RXGEN_OPCODE));
}

/// Nothing of a stream that is not whole is kept, and what is no dump is refused by the call.
#[test]
fn half_a_dump_is_no_volume() {
    let scene = Scene::new(704);
    let source = scene.take(scene.root());
    let dumped = scene.dump(source);
    scene.end(source);
    let (target, path) = (scene.create(900), scene.path());
    for bad in [&dumped[..0], &dumped[..1000], &dumped[..dumped.len() - 1], b"this is no dump"] {
        let (call, grant) = scene.owner.granted(restore_by_path(target)).unwrap();
        let sent = path.send_stream(&present(&path, &grant), stream_of(&grant), bad);
        assert_eq!(sent, Err(Failure::Io.into()));
        let code = scene.owner.end_of(call).unwrap_err().abort_code();
        assert_eq!(code, Some(AbortCode::VOLSERREAD_DUMPERROR));
    }
    let (call, grant) = scene.owner.granted(restore_by_path(target)).unwrap();
    path.send_stream(&present(&path, &grant), stream_of(&grant), &dumped).unwrap();
    scene.owner.end_of(call).unwrap();
    scene.publish(target);
    scene.is_copied(900);
}

#[test]
fn a_ticket_serves_its_holder_its_transaction_and_once() {
    let scene = Scene::new(705);
    let (source, path) = (scene.take(scene.root()), scene.path());
    let target = scene.create(900);
    let (call, grant) = scene.owner.granted(dump_by_path(source)).unwrap();
    let (stream, secret) = (stream_of(&grant), grant.capability.secret.0);
    let given = arguments(&grant.capability);
    let of_target = StreamName { transaction: target, ..stream };
    let changed = [
        Capability { holder: HolderId(given.holder.0 ^ 1), ..given },
        Capability { group: Group::Stream(of_target), ..given },
        Capability { group: Group::Volume(stream.volume), ..given },
        Capability { expires: given.expires + 1, ..given },
    ];
    for changed in changed {
        let handle = path.present_as(&changed, secret);
        let named = changed.group.stream().unwrap_or(stream);
        assert_eq!(refused(path.receive_stream(&handle, named)), Refusal::Forged, "{changed:?}");
    }
    let handle = present(&path, &grant);
    assert_eq!(refused(path.receive_stream(&handle, of_target)), Refusal::OtherObject);
    assert_eq!(refused(path.send_stream(&handle, stream, b"x")), Refusal::NotAllowed, "it is for reading");
    // Another client, which knows the arguments and not the secret.
    let thief = scene.client.path();
    let stolen = thief.present_as(&given, [0; 32]);
    assert_eq!(refused(thief.receive_stream(&stolen, stream)), Refusal::Forged);
    assert!(path.receive_stream(&handle, stream).is_ok(), "none of these has used it up");
    assert_eq!(refused(path.receive_stream(&handle, stream)), Refusal::Revoked, "twice");
    scene.owner.end_of(call).unwrap();
    assert_eq!(scene.streams(), 1);
}

#[test]
fn a_ticket_that_is_not_used_ends_with_its_call() {
    let scene = Scene::new(706);
    let (source, path) = (scene.take(scene.root()), scene.path());
    let (call, grant) = scene.owner.granted(dump_by_path(source)).unwrap();
    let ended = scene.owner.end_of(call).unwrap_err();
    assert_eq!(ended.abort_code(), Some(AbortCode::VOLSERREAD_DUMPERROR));
    let handle = present(&path, &grant);
    assert_eq!(refused(path.receive_stream(&handle, stream_of(&grant))), Refusal::Revoked);
    // It does not hold the transaction meanwhile.
    let (_call, _grant) = scene.owner.granted(dump_by_path(source)).unwrap();
    scene.end(source);
    scene.end(scene.take(scene.root()));
    // A ticket for a transaction that has ended since gives nothing.
    let source = scene.take(scene.root());
    let (call, grant) = scene.owner.granted(dump_by_path(source)).unwrap();
    scene.end(source);
    let read = path.receive_stream(&present(&path, &grant), stream_of(&grant));
    assert_eq!(read, Err(Failure::Io.into()));
    assert_eq!(scene.owner.end_of(call).unwrap_err().abort_code(), Some(AbortCode(Errno::ENOENT.number())));
}

#[test]
fn an_unused_grant_does_not_hold_up_the_call_that_is_used_instead() {
    let scene = Scene::new(707);
    let source = scene.take(scene.root());
    let dumped = scene.dump(source);
    scene.end(source);
    let target = scene.create(900);
    let (call, _grant) = scene.owner.granted(restore_by_path(target)).unwrap();
    drop(call);
    let restore = vol::Restore { transaction: target, flags: 1, cookie: cookie(900) };
    scene.owner.send_stream(restore, &[&dumped]).unwrap();
    scene.publish(target);
    scene.is_copied(900);
}

/// The call lives for as long as the stream, however long that rests.
#[test]
fn a_stream_may_rest_for_minutes() {
    let scene = Scene::new(708);
    let source = scene.take(scene.root());
    let dumped = scene.dump(source);
    scene.end(source);
    let (target, path) = (scene.create(900), scene.path());
    let (call, grant) = scene.owner.granted(restore_by_path(target)).unwrap();
    let (handle, stream) = (present(&path, &grant), stream_of(&grant));
    let (session, env) = (path.session.clone(), scene.cell.world().env(scene.owner.node));
    let work = async move {
        let mut leaving = session.send_stream(&handle, stream).await?;
        for part in dumped.chunks(400_000) {
            leaving.put(bytes::Bytes::copy_from_slice(part)).await?;
            env.sleep(Duration::from_secs(100)).await;
        }
        leaving.finish().await.map(drop)
    };
    scene.cell.sim.block_on(scene.owner.node, rig::PATIENCE, work).unwrap().unwrap();
    scene.owner.end_of(call).unwrap();
    scene.publish(target);
    scene.is_copied(900);
}
