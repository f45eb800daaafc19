//! A drive that is given another key: crashes and faults at every step, use all the while, and who may not give one.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, ChunkList, DriveId, DriveKey, Generation, Group, HolderId, KeyEpoch,
    ListTerms, Listed, ListedChunk, Refusal, Secret, StoreNumber,
};
use afs_datapath::frame::{ChunkReply, ChunkRequest, KeyBytes};
use afs_datapath::session::{Client, Drive as Served, Error, Failure, Handle, Patience, Security};
use afs_drive::{Drive, DriveError};
use afs_remote::{DirectDrive, DriveKeys, GiveError, RemoteDrive, RemoteOptions, rekey};
use afs_sim::crash::seeds;
use afs_sim::{NodeId, StreamFault, StreamMishap};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;
use kit::{Kit, STORE, at, data};
use parking_lot::Mutex;

fn key(epoch: u32, byte: u8) -> DriveKey {
    DriveKey::new(DriveId(0xd1), KeyEpoch(epoch), [byte; 32])
}

/// How the drive's disk takes a key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disk {
    Keeps,
    Refuses,
    /// The key is durable, and the drive does not learn it.
    Unsure,
}

/// What both ends have on their disks: the drive its key, the file server the present one and the next one.
struct World {
    kit: Kit,
    kept: Arc<Mutex<(u32, u8)>>,
    disk: Arc<Mutex<Disk>>,
    served: Arc<Served>,
}

impl World {
    fn new(seed: u64) -> Self {
        let (kit, kept) = (Kit::new(seed), Arc::new(Mutex::new((1, 7))));
        let disk = Arc::new(Mutex::new(Disk::Keeps));
        let served = start(&kit, 1, &kept, &disk);
        Self { kit, kept, disk, served }
    }

    /// The keys as a file server has them that was just started.
    fn keys(&self) -> DriveKeys {
        let keys = DriveKeys::from(Arc::new(key(1, 7)));
        keys.offer(Arc::new(key(2, 8)));
        keys
    }

    fn options(&self, keys: &DriveKeys) -> RemoteOptions {
        RemoteOptions { keys: keys.clone(), ..self.kit.options(7) }
    }

    fn rekey(&self, keys: &DriveKeys) -> Result<(), GiveError> {
        let (env, options) = (self.kit.env(), self.options(keys));
        self.kit.run(async move { rekey(&env, &options).await })
    }

    fn crash_drive(&mut self, next_run: u64) {
        self.kit.sim.crash(self.kit.host);
        self.kit.sim.restart(self.kit.host);
        self.served = start(&self.kit, next_run, &self.kept, &self.disk);
    }

    fn crash_server(&self) {
        self.kit.sim.crash(self.kit.server);
        self.kit.sim.restart(self.kit.server);
    }

    /// A file server that was just started stores, whichever key the drive has; then it completes what was begun, and the earlier
    /// key is good for nothing.
    fn check(&self, what: &str) {
        let keys = self.keys();
        let drive = RemoteDrive::new(self.kit.env(), self.options(&keys));
        let stored = self.kit.run(async move {
            let chunk = drive.write(data(1, 5000)).await?;
            drive.sync(&[chunk]).await?;
            drive.read(chunk, 0..5000).await
        });
        assert_eq!(stored.unwrap(), data(1, 5000), "{what}");
        self.rekey(&keys).unwrap();
        assert_eq!((keys.present().epoch(), keys.next().is_none()), (KeyEpoch(2), true), "{what}");
        assert_eq!(*self.kept.lock(), (2, 8), "{what}");
        for (key, refusal) in [(key(1, 7), Some(Refusal::OtherEpoch)), (key(2, 8), None)] {
            assert_eq!(
                self.ask(&key, managing(), ChunkRequest::Status).err(),
                refusal.map(refused),
                "{what}"
            );
        }
    }

    /// Makes a request by a capability under a key.
    fn ask(&self, key: &DriveKey, held: Capability, what: ChunkRequest) -> Result<ChunkReply, Error> {
        let held = Capability { epoch: key.epoch(), ..held };
        let (secret, env) = (key.seal(&held), self.kit.env());
        self.kit.run(async move {
            let (client, handle) = present(env, held, secret).await;
            client.perform(&handle, what, Bytes::new()).await
        })
    }
}

async fn present(env: afs_env::EnvRef, held: Capability, secret: Secret) -> (Client, Handle) {
    let stream = env.connect(at()).await.unwrap();
    let client = Client::open(env, stream, Security::Clear, Patience::default()).await.unwrap();
    let handle = client.present(&held, &secret).unwrap();
    (client, handle)
}

fn start(kit: &Kit, run: u64, kept: &Arc<Mutex<(u32, u8)>>, disk: &Arc<Mutex<Disk>>) -> Arc<Served> {
    let (epoch, byte) = *kept.lock();
    let (kept, disk) = (kept.clone(), disk.clone());
    let adopt = move |epoch: KeyEpoch, key: &Secret| {
        let disk = *disk.lock();
        if disk != Disk::Refuses {
            *kept.lock() = (epoch.0, key.expose()[0]);
        }
        disk == Disk::Keeps
    };
    kit.start_with(run, key(epoch, byte), Arc::new(adopt))
}

fn managing() -> Capability {
    Capability {
        drive: DriveId(0xd1),
        epoch: KeyEpoch(1),
        group: Group::Chunks(STORE),
        access: Access::MANAGE,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Generation(0),
        holder: HolderId(1),
    }
}

fn refused(refusal: Refusal) -> Error {
    Error::Failed(Failure::Refused(refusal))
}

fn adopt(epoch: u32, byte: u8) -> ChunkRequest {
    ChunkRequest::Adopt { epoch: KeyEpoch(epoch), key: KeyBytes(Secret::new([byte; 32])) }
}

#[test]
fn a_crash_of_either_side_at_any_time_is_completed_later() {
    let (mut before, mut after) = (0, 0);
    for step in 0..60 {
        for drive_crashes in [true, false] {
            let mut world = World::new(step);
            let (env, options) = (world.kit.env(), world.options(&world.keys()));
            let begun = env.clone();
            env.spawn(Box::pin(async move { drop(rekey(&begun, &options).await) }));
            world.kit.sim.run_for(Duration::from_micros(50 * step));
            match drive_crashes {
                true => world.crash_drive(2),
                false => world.crash_server(),
            }
            match world.kept.lock().0 {
                1 => before += 1,
                _ => after += 1,
            }
            world.check(&format!("step {step}, drive {drive_crashes}"));
        }
    }
    assert!(before > 5 && after > 5, "{before} {after}");
}

#[test]
fn a_fault_at_every_byte_of_the_exchange_is_completed_later() {
    let mut failed = 0;
    for (to_drive, longest) in [(true, 400), (false, 300)] {
        for after in (0..longest).step_by(3) {
            for mishap in [StreamMishap::Reset, StreamMishap::Silence] {
                let world = World::new(after);
                let (from, to) = (world.kit.server, world.kit.host);
                let (from, to) = if to_drive { (from, to) } else { (to, from) };
                world.kit.sim.break_stream(from, to, StreamFault { after, mishap });
                failed += u32::from(world.rekey(&world.keys()).is_err());
                world.check(&format!("{to_drive} {after} {mishap:?}"));
            }
        }
    }
    assert!(failed > 100, "the faults hit the exchange: {failed}");
}

#[test]
fn a_disk_that_does_not_take_the_key_leaves_the_earlier_one_or_both_tried() {
    for disk in [Disk::Refuses, Disk::Unsure] {
        let mut world = World::new(1);
        *world.disk.lock() = disk;
        let keys = world.keys();
        assert!(
            matches!(world.rekey(&keys), Err(GiveError::Exchange(Error::Failed(Failure::Io)))),
            "{disk:?}"
        );
        assert_eq!(keys.present().epoch(), KeyEpoch(1));
        assert!(world.ask(&key(1, 7), managing(), ChunkRequest::Status).is_ok());
        *world.disk.lock() = Disk::Keeps;
        // Where the key was durable all the same, the next start of the drive has it.
        world.crash_drive(2);
        assert_eq!(world.kept.lock().0, if disk == Disk::Unsure { 2 } else { 1 });
        world.check(&format!("{disk:?}"));
    }
}

/// A file server of this program, and a drive whose program is older.
#[test]
fn a_drive_that_keeps_its_key_is_used_with_it() {
    let kit = Kit::with_drive(1);
    let keys = DriveKeys::from(Arc::new(key(1, 7)));
    keys.offer(Arc::new(key(2, 8)));
    let (env, options) = (kit.env(), RemoteOptions { keys: keys.clone(), ..kit.options(7) });
    let drive = RemoteDrive::new(kit.env(), options.clone());
    let told = kit.run(async move { rekey(&env, &options).await });
    assert!(matches!(told, Err(GiveError::Exchange(Error::Failed(Failure::Io)))), "{told:?}");
    assert!(kit.run(async move { drive.write(data(1, 10)).await }).is_ok());
    assert_eq!(keys.present().epoch(), KeyEpoch(1));
}

#[test]
fn stores_and_reads_go_on_while_keys_change() {
    for seed in seeds(10) {
        let world = World::new(seed);
        let keys = DriveKeys::from(Arc::new(key(1, 7)));
        let drive = RemoteDrive::new(world.kit.env(), world.options(&keys));
        let (env, options) = (world.kit.env(), world.options(&keys));
        let changes = Arc::new(Mutex::new(0));
        let (count, changing) = (changes.clone(), env.clone());
        env.spawn(Box::pin(async move {
            for epoch in 2..8 {
                options.keys.offer(Arc::new(key(epoch, epoch as u8)));
                rekey(&changing, &options).await.unwrap();
                *count.lock() += 1;
                let pause = Duration::from_millis(10 + seed % 10);
                afs_env::EnvExt::sleep(&*changing, pause).await;
            }
        }));
        let done = changes.clone();
        let stored = world.kit.run(async move {
            let (mut rounds, mut n) = (0_u32, 0_u8);
            while *done.lock() < 6 {
                let chunk = drive.write(data(n, 100_000)).await?;
                drive.sync(&[chunk]).await?;
                assert_eq!(drive.read(chunk, 0..100_000).await?, data(n, 100_000));
                drive.status().await?;
                drive.discard(vec![chunk]).await?;
                (rounds, n) = (rounds + 1, n.wrapping_add(1));
            }
            Ok::<_, DriveError>(rounds)
        });
        assert!(stored.unwrap() > 3, "seed {seed}");
        assert_eq!(keys.present().epoch(), KeyEpoch(7));
    }
}

/// What a client of the file server holds: everything of a chunk of 200 kB.
struct Reader {
    node: NodeId,
    chunk: afs_drive::ChunkRef,
    direct: DirectDrive,
}

const LEN: u32 = 200_000;

fn group(file: u32) -> Group {
    Group::File(Fid::new(VolumeId(5), VnodeId(file), Uniquifier(1)))
}

impl Reader {
    fn new(world: &World, keys: &DriveKeys) -> Self {
        let drive = RemoteDrive::new(world.kit.env(), world.options(keys));
        let chunk = world.kit.run(async move { drive.write(data(1, LEN as usize)).await }).unwrap();
        let node = world.kit.sim.node("client", Ipv4Addr::new(10, 0, 0, 3).into());
        let direct = DirectDrive::new(world.kit.env(), world.options(keys));
        Self { node, chunk, direct }
    }

    /// Capability, its secret, and the request, as the file server gives them now.
    fn give(&self, world: &World) -> (Capability, Secret, ChunkRequest) {
        let direct = self.direct.clone();
        let sealing = world.kit.run(async move { direct.sealing().await }).unwrap();
        let (key, generation) = (&sealing.key, sealing.generation);
        let held = Capability {
            epoch: key.epoch(),
            group: Group::Tagged(key.tag(group(2))),
            access: Access::READ,
            expires: world.kit.env().wall().secs + 60,
            generation,
            ..managing()
        };
        let list = ChunkList::new(&[ListedChunk { chunk: self.chunk, start: 0, end: LEN }]).unwrap();
        let terms = ListTerms { store: STORE, file: key.tag(group(4)), generation };
        let binding = key.bind_list(key.tag(group(2)), &list, terms);
        let listed = Box::new(Listed { start: 0, end: LEN, place: 0, count: 1, path: list.path(0), binding });
        let what = ChunkRequest::ReadListed { chunk: self.chunk, start: 0, end: LEN, credit: 1000, listed };
        (held, key.seal(&held), what)
    }
}

#[test]
fn what_was_sealed_with_the_earlier_key_ends_and_clients_get_other() {
    let world = World::new(1);
    let keys = world.keys();
    let reader = Reader::new(&world, &keys);
    let (held, secret, what) = reader.give(&world);
    let (env, server) = (world.kit.sim.env(reader.node), world.kit.env());
    let (options, direct) = (world.options(&keys), reader.direct.clone());
    let (old, asked) = (held, what.clone());
    let work = async move {
        let (client, handle) = present(env.clone(), old, secret.clone()).await;
        let mut arriving = client.fetch(&handle, asked.clone()).await.unwrap();
        rekey(&server, &options).await.unwrap();
        let rest = loop {
            match arriving.next().await {
                Ok(Some(_)) => {}
                other => break other.map(drop),
            }
        };
        let again = client.fetch(&handle, asked.clone()).await.map(drop);
        let (client, handle) = present(env, old, secret).await;
        let anew = client.fetch(&handle, asked).await.map(drop);
        // A change of rights of just now; nobody waits for the drive.
        assert!(direct.revoke(&[group(4)]).await);
        [rest, again, anew]
    };
    let told = world.kit.sim.block_on(reader.node, kit::HOUR, work).ok().unwrap();
    assert_eq!(told, [(); 3].map(|()| Err(refused(Refusal::OtherEpoch))));
    let (held, secret, what) = reader.give(&world);
    assert_eq!(held.epoch, KeyEpoch(2));
    let env = world.kit.sim.env(reader.node);
    let work = async move {
        let (client, handle) = present(env, held, secret).await;
        client.fetch(&handle, what).await.map(|arriving| arriving.length())
    };
    let told = world.kit.sim.block_on(reader.node, kit::HOUR, work).ok().unwrap();
    assert_eq!(told, Ok(u64::from(LEN) + 16));
}

/// The drive has the next key already, and the file server does not know it yet.
#[test]
fn a_change_of_rights_at_the_moment_of_a_change_of_the_key_is_told() {
    let world = World::new(5);
    let keys = world.keys();
    let reader = Reader::new(&world, &keys);
    reader.give(&world);
    world.served.replace_key(key(2, 8));
    assert_eq!(keys.present().epoch(), KeyEpoch(1));
    let (direct, before) = (reader.direct.clone(), world.served.revocations.count());
    assert!(world.kit.run(async move { direct.revoke(&[group(2)]).await }), "all before is void");
    assert_eq!(world.served.revocations.count(), before);
    let (held, ..) = reader.give(&world);
    assert_eq!(held.epoch, KeyEpoch(2));
    assert_eq!(world.served.revocations.count(), before + 1, "all is revoked before anything is sealed");
}

#[test]
fn only_the_present_key_gives_the_next_one() {
    let world = World::new(2);
    let (first, second) = (key(1, 7), key(2, 8));
    let tag = first.tag(group(2));
    let of_client = Capability {
        group: Group::Tagged(tag),
        access: Access::READ,
        expires: world.kit.env().wall().secs + 60,
        generation: world.served.revocations.latest(),
        ..managing()
    };
    let writing = Capability { access: Access::READ | Access::WRITE, ..managing() };
    let [invalid, not_allowed] = [Error::Failed(Failure::Invalid), refused(Refusal::NotAllowed)];
    let (forged, other) = (refused(Refusal::Forged), refused(Refusal::OtherEpoch));
    let before = [
        ("a client", &first, of_client, adopt(2, 9), &not_allowed),
        ("who may write", &first, writing, adopt(2, 9), &not_allowed),
        ("another key", &key(1, 9), managing(), adopt(2, 9), &forged),
        ("a key to come", &second, managing(), adopt(3, 9), &other),
        ("the same epoch", &first, managing(), adopt(1, 9), &invalid),
        ("the join key's epoch", &first, managing(), adopt(0, 9), &invalid),
        ("an epoch too far", &first, managing(), adopt(3, 9), &invalid),
    ];
    for (who, key, held, what, expected) in before {
        assert_eq!(world.ask(key, held, what).as_ref(), Err(expected), "{who}");
    }
    assert_eq!(*world.kept.lock(), (1, 7));
    // The same request once more, on its own connection, finds another key.
    let (env, secret) = (world.kit.env(), first.seal(&managing()));
    let twice = world.kit.run(async move {
        let (client, handle) = present(env, managing(), secret).await;
        let mut told = Vec::new();
        for what in [adopt(2, 8), adopt(2, 8), adopt(3, 9), ChunkRequest::Status] {
            told.push(client.perform(&handle, what, Bytes::new()).await);
        }
        told
    });
    assert_eq!(twice, [Ok(ChunkReply::Done), Err(other.clone()), Err(other.clone()), Err(other.clone())]);
    let after = [
        ("the earlier key", &first, managing(), adopt(3, 9), &other),
        ("the earlier key under the later epoch", &key(2, 7), managing(), adopt(3, 9), &forged),
        ("the epoch that it has", &second, managing(), adopt(2, 9), &invalid),
        ("the epoch that it had", &second, managing(), adopt(1, 7), &invalid),
    ];
    for (who, key, held, what, expected) in after {
        assert_eq!(world.ask(key, held, what).as_ref(), Err(expected), "{who}");
    }
    assert_eq!(*world.kept.lock(), (2, 8));
    assert_eq!(world.served.key().epoch(), KeyEpoch(2));
}

/// Requests by the present key that come together: one is first, and the others are by an earlier key then.
#[test]
fn of_keys_that_come_together_one_is_taken() {
    for seed in seeds(20) {
        let world = World::new(seed);
        let (env, secret) = (world.kit.env(), key(1, 7).seal(&managing()));
        let told = world.kit.run(async move {
            let (client, handle) = present(env, managing(), secret).await;
            let ask = |what| client.perform(&handle, what, Bytes::new());
            let asked = vec![ask(adopt(2, 8)), ask(adopt(2, 9)), ask(adopt(3, 10))];
            afs_env::future::join_all(asked).await
        });
        let taken = told.iter().filter(|told| told.is_ok()).count();
        assert_eq!((taken, world.kept.lock().0), (1, 2), "seed {seed}: {told:?}");
    }
}

#[test]
fn the_secret_of_a_join_key_gives_a_key_and_nothing_else() {
    let kit = Kit::new(3);
    let join = DriveKey::new(DriveId(0xd1), KeyEpoch::JOIN, [5; 32]);
    let served = kit.start_with(1, join, Arc::new(|_, _| true));
    let held = Capability { epoch: KeyEpoch::JOIN, group: Group::Chunks(StoreNumber(0)), ..managing() };
    let (env, secret) = (kit.env(), served.key().seal(&held));
    let told = kit.run(async move {
        let (client, handle) = present(env, held, secret).await;
        let status = client.perform(&handle, ChunkRequest::Status, Bytes::new()).await;
        let ranges = ChunkRequest::Ranges { before: afs_drive::ChunkId::MIN, credit: 1 };
        (status, client.fetch(&handle, ranges).await.map(drop))
    });
    let unavailable = Error::Failed(Failure::Unavailable);
    assert_eq!(told, (Err(unavailable.clone()), Err(unavailable)));
    assert_eq!(served.key().epoch(), KeyEpoch::JOIN);
}

#[test]
fn a_drive_with_an_earlier_key_than_the_file_server_is_away() {
    let world = World::new(4);
    let keys = DriveKeys::from(Arc::new(key(3, 9)));
    let drive = RemoteDrive::new(world.kit.env(), world.options(&keys));
    let began = world.kit.sim.now();
    let error = world.kit.run(async move { drive.write(data(1, 10)).await }).unwrap_err();
    assert!(error.to_string().contains("another epoch"), "{error}");
    assert!(world.kit.sim.now() - began < Duration::from_secs(30));
}
