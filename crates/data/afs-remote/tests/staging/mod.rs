//! Clients that stage chunks at a drive: claims, what is refused, and what becomes of chunks that nobody claims.

#![allow(clippy::unwrap_used)]

mod collected;
use crate::kit;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, ClaimId, DriveId, DriveKey, Generation, Group, GroupTag, HolderId,
    KeyEpoch, Refusal, Secret, StagingTag, StoreNumber,
};
use afs_datapath::frame::{ChunkReply, ChunkRequest, VERSION};
use afs_datapath::session::{Client, Drive as Served, Error, Failure, Handle, Patience, Security};
use afs_drive::{ChunkId, ChunkRef, Drive, DriveError, StagedChunks};
use afs_env::EnvExt;
use afs_remote::{RemoteDrive, STAGED_LIFE};
use afs_sim::{NodeId, StreamFault, StreamMishap};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use bytes::{Bytes, BytesMut};
use kit::{Kit, Live, STORE, at, data};

/// Bytes of the rooms of these tests.
const ROOM: u64 = 4 << 20;
const MIB: usize = 1 << 20;

#[derive(Clone)]
struct Room {
    capability: Capability,
    secret: Secret,
    tag: StagingTag,
}

struct World {
    kit: Kit,
    client: NodeId,
    served: Arc<Served>,
    drive: RemoteDrive,
}

/// A client's connection, with the room presented on it.
struct At {
    client: Client,
    handle: Handle,
}

impl At {
    async fn staged(&self, seed: u8, len: usize) -> Result<ChunkRef, Error> {
        self.client.stage(&self.handle, data(seed, len)).await
    }

    /// So many chunks.
    async fn stored(&self, count: u8, len: usize) -> Result<Vec<ChunkRef>, Error> {
        let mut chunks = Vec::new();
        for seed in 0..count {
            chunks.push(self.staged(seed, len).await?);
        }
        Ok(chunks)
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let kit = Kit::new(seed);
        let served = kit.start(1);
        let client = kit.sim.node("client", Ipv4Addr::new(10, 0, 0, 3).into());
        let drive = kit.remote();
        let world = Self { kit, client, served, drive };
        assert!(world.takes_staged());
        world
    }

    fn takes_staged(&self) -> bool {
        let drive = self.drive.clone();
        self.kit.run(async move { drive.takes_staged().await })
    }

    /// The room with a number, for a file of its own.
    fn room(&self, number: u128) -> Room {
        let file = Fid::new(VolumeId(5), VnodeId(2), Uniquifier(1));
        let tag = kit::key(7).staging_tag(number, file, HolderId(1));
        let capability = Capability {
            drive: DriveId(0xd1),
            epoch: KeyEpoch(1),
            group: Group::Staged(STORE, tag),
            access: Access::WRITE,
            range: ByteRange::new(0, ROOM).unwrap(),
            expires: self.kit.env().wall().secs + 300,
            generation: self.served.revocations.latest(),
            holder: HolderId(1),
        };
        sealed(&kit::key(7), capability)
    }

    fn client<T: Send + 'static, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        room: &Room,
        work: impl FnOnce(At) -> F + Send + 'static,
    ) -> Result<T, Error> {
        let (env, room) = (self.kit.sim.env(self.client), room.clone());
        let work = async move {
            let patience = Patience { silence: Duration::from_secs(5), ..Patience::default() };
            let stream = env.connect(at()).await.map_err(|error| Error::Lost(error.into()))?;
            let client = Client::open(env.clone(), stream, Security::Clear, patience).await?;
            let handle = client.present(&room.capability, &room.secret)?;
            work(At { client, handle }).await
        };
        self.kit.sim.block_on(self.client, kit::HOUR, work).ok().unwrap()
    }

    /// What the file server does with the chunks of a commit.
    fn claim(&self, tag: StagingTag, chunks: &[ChunkRef]) -> Result<(), DriveError> {
        let staged = StagedChunks { tag: tag.0, chunks: chunks.to_vec() };
        self.claim_of(staged)
    }

    fn claim_of(&self, staged: StagedChunks) -> Result<(), DriveError> {
        let drive = self.drive.clone();
        self.kit.run(async move { drive.claim(staged).await })
    }

    /// A claim with a number, or in another store.
    fn claim_raw(
        &self,
        store: StoreNumber,
        what: ChunkRequest,
        chunks: &[ChunkRef],
    ) -> Result<ChunkReply, Error> {
        let mut bytes = BytesMut::new();
        chunks.iter().for_each(|chunk| bytes.extend_from_slice(&chunk.to_bytes()));
        let capability = Capability {
            group: Group::Chunks(store),
            access: Access::MANAGE,
            range: ByteRange::ALL,
            expires: u64::MAX,
            ..self.room(0).capability
        };
        let managing = sealed(&kit::key(7), capability);
        self.client(&managing, |at| async move { at.client.perform(&at.handle, what, bytes.freeze()).await })
    }

    fn is_there(&self, chunk: ChunkRef) -> bool {
        let drive = self.drive.clone();
        self.kit.run(async move { drive.read(chunk, 0..chunk.len).await }).is_ok()
    }
}

fn sealed(key: &DriveKey, capability: Capability) -> Room {
    let Group::Staged(_, tag) = capability.group else {
        return Room { capability, secret: key.seal(&capability), tag: StagingTag([0; 8]) };
    };
    Room { capability, secret: key.seal(&capability), tag }
}

fn refused(refusal: Refusal) -> Error {
    Error::Failed(Failure::Refused(refusal))
}

#[test]
fn staged_chunks_become_the_file_servers_once() {
    let world = World::new(1);
    let room = world.room(1);
    let chunks = world.client(&room, |at| async move { at.stored(3, MIB).await }).unwrap();
    assert_eq!(chunks[1].crc, crc32c::crc32c(&data(1, MIB)), "the checksum is that of the client's bytes");
    world.claim(room.tag, &chunks).unwrap();
    let again = world.claim(room.tag, &chunks[..1]);
    assert!(matches!(again, Err(DriveError::NotStaged)), "a chunk is given once: {again:?}");
    world.kit.sim.run_for(2 * STAGED_LIFE);
    assert!(chunks.iter().all(|chunk| world.is_there(*chunk)), "what was claimed stays");
}

/// What is presented: the right room, with one thing changed.
fn changed(world: &World, change: impl FnOnce(&mut Capability)) -> Room {
    let mut capability = world.room(1).capability;
    change(&mut capability);
    sealed(&kit::key(7), capability)
}

#[test]
fn a_room_that_was_not_given_is_refused_and_counted() {
    let world = World::new(3);
    let (right, now) = (world.room(1), world.kit.env().wall().secs);
    let raised = Room { capability: Capability { expires: now + 301, ..right.capability }, ..right.clone() };
    let wider = ByteRange::new(0, ROOM + 1).unwrap();
    let wider = Room { capability: Capability { range: wider, ..right.capability }, ..right.clone() };
    let none = ByteRange::new(0, 0).unwrap();
    let small = ByteRange::new(0, 4095).unwrap();
    let tagged = Group::Tagged(GroupTag([1; 12]));
    let table = [
        ("forged: another key", sealed(&kit::key(8), right.capability), Refusal::Forged),
        ("forged: another expiry", raised, Refusal::Forged),
        ("forged: more bytes", wider, Refusal::Forged),
        ("expired", changed(&world, |c| c.expires = now), Refusal::Expired),
        ("good for too long", changed(&world, |c| c.expires = now + 601), Refusal::Expired),
        ("another drive", changed(&world, |c| c.drive.0 += 1), Refusal::OtherDrive),
        ("an old epoch", changed(&world, |c| c.epoch.0 -= 1), Refusal::OtherEpoch),
        ("an old run", changed(&world, |c| c.generation.0 -= 1), Refusal::Revoked),
        ("to read only", changed(&world, |c| c.access = Access::READ), Refusal::NotAllowed),
        ("to read a group", changed(&world, |c| c.group = tagged), Refusal::OtherObject),
        ("no bytes", changed(&world, |c| c.range = none), Refusal::OutOfRange),
        ("less than a block", changed(&world, |c| c.range = small), Refusal::OutOfRange),
    ];
    let mut counts = [0; 8];
    for (what, room, refusal) in table {
        let told = world.client(&room, |at| async move { at.staged(1, 1).await });
        assert_eq!(told, Err(refused(refusal)), "{what}");
        // A capability that is refused when it is presented is refused once more with the request.
        let is_at_once = matches!(refusal, Refusal::Forged | Refusal::OtherDrive | Refusal::OtherEpoch)
            || what == "expired";
        counts[refusal as usize] += 1 + u64::from(is_at_once);
    }
    assert_eq!(world.served.counts().refused, counts);
    let managing = [
        ChunkRequest::Write { length: 1 },
        ChunkRequest::Sync { oldest: ChunkId::MIN },
        ChunkRequest::Discard { chunks: Vec::new() },
        ChunkRequest::Claim { claim: ClaimId(1), tag: right.tag, count: 1 },
    ];
    for what in managing {
        let bytes = Bytes::from(vec![0; what.incoming() as usize]);
        let asked = what.clone();
        let told =
            world.client(&right, |at| async move { at.client.perform(&at.handle, asked, bytes).await });
        assert_eq!(told, Err(refused(Refusal::NotAllowed)), "{what:?}");
    }
    assert!(world.client(&right, |at| async move { at.stored(1, 1).await }).is_ok());
}

#[test]
fn a_room_has_so_many_bytes_and_those_of_its_chunks_alone() {
    let world = World::new(4);
    let room = world.room(1);
    let told = world.client(&room, |at| async move {
        let first = at.stored(3, MIB).await?;
        let over = at.staged(9, MIB + 1).await;
        let fits = at.staged(4, MIB).await;
        let full = at.staged(5, 1).await;
        Ok((first, over, fits.is_ok(), full))
    });
    let (chunks, over, fits, full) = told.unwrap();
    assert_eq!((over, fits, full), (Err(Error::Length), true, Err(refused(Refusal::OutOfRange))));
    // What was claimed is not the room's any more.
    world.claim(room.tag, &chunks).unwrap();
    assert!(world.client(&room, |at| async move { at.stored(3, MIB).await }).is_ok());
    let told = world.client(&world.room(2), |at| async move {
        let mut fits = 0;
        while at.staged(1, 1).await.is_ok() {
            fits += 1;
        }
        Ok(fits)
    });
    assert_eq!(told, Ok(ROOM / 4096), "small chunks count as whole blocks");
}

#[test]
fn a_claim_takes_all_chunks_that_are_right_or_none() {
    let world = World::new(5);
    let (room, other) = (world.room(1), world.room(2));
    let chunks = world.client(&room, |at| async move { at.stored(3, 5000).await }).unwrap();
    let others = world.client(&other, |at| async move { at.stored(1, 5000).await }).unwrap();
    let [first, second, _] = chunks[..] else { panic!("three chunks") };
    let of = |tag: StagingTag, chunks: &[ChunkRef]| StagedChunks { tag: tag.0, chunks: chunks.to_vec() };
    let longer = ChunkRef { len: first.len + 1, ..first };
    let damaged = ChunkRef { crc: first.crc ^ 1, ..first };
    let (high, low) = first.id.parts();
    let never = ChunkRef { id: ChunkId::from_parts(high, low + (1 << 20)), ..first };
    let odd = ChunkRef { id: ChunkId::from_parts(high, low + 1), ..first };
    let table = [
        ("another room's", of(other.tag, &[first]), "NotStaged"),
        ("half of another room's", of(room.tag, &[first, others[0]]), "NotStaged"),
        ("of an unknown room", of(StagingTag([9; 8]), &[first]), "NotStaged"),
        ("another length", of(room.tag, &[longer, second]), "NotStaged"),
        ("another checksum", of(room.tag, &[second, damaged]), "NotStaged"),
        ("never written", of(room.tag, &[first, never]), "NotStaged"),
        ("in no place", of(room.tag, &[odd]), "NotStaged"),
        ("twice in one claim", of(room.tag, &[first, first]), "NotStaged"),
    ];
    for (what, staged, wanted) in table {
        let told = world.claim_of(staged).unwrap_err();
        assert_eq!(format!("{told:?}"), wanted, "{what}");
    }
    let claim = ChunkRequest::Claim { claim: ClaimId(5), tag: room.tag, count: 1 };
    let elsewhere = world.claim_raw(StoreNumber(STORE.0 + 1), claim.clone(), &[first]);
    assert_eq!(elsewhere, Err(Error::Failed(Failure::NotStaged)), "another store");
    world.claim(room.tag, &chunks).unwrap();
    world.claim(other.tag, &others).unwrap();
}

#[test]
fn a_claim_whose_reply_was_lost_is_replied_once_more() {
    let world = World::new(6);
    let room = world.room(1);
    let chunks = world.client(&room, |at| async move { at.stored(1, 5000).await }).unwrap();
    let claim = |number| ChunkRequest::Claim { claim: ClaimId(number), tag: room.tag, count: 1 };
    for _ in 0..3 {
        assert_eq!(world.claim_raw(STORE, claim(5), &chunks), Ok(ChunkReply::Done));
    }
    assert_eq!(world.claim_raw(STORE, claim(6), &chunks), Err(Error::Failed(Failure::NotStaged)));
}

#[test]
fn what_nobody_claims_is_freed_after_its_time_and_what_is_given_up_at_once() {
    let world = World::new(7);
    let (room, other) = (world.room(1), world.room(2));
    let before = world.kit.disk.used();
    let late = world.client(&room, |at| async move { at.stored(2, MIB).await }).unwrap();
    let given_up = world
        .client(&other, |at| async move {
            let chunks = at.stored(2, MIB).await?;
            at.client.forget_staged(&at.handle).await?;
            Ok(chunks)
        })
        .unwrap();
    assert!(given_up.iter().all(|chunk| !world.is_there(*chunk)));
    assert!(matches!(world.claim(other.tag, &given_up), Err(DriveError::NotStaged)));
    world.kit.sim.run_for(STAGED_LIFE - Duration::from_secs(60));
    assert!(late.iter().all(|chunk| world.is_there(*chunk)));
    world.kit.sim.run_for(Duration::from_secs(120));
    assert!(late.iter().all(|chunk| !world.is_there(*chunk)));
    assert!(matches!(world.claim(room.tag, &late), Err(DriveError::NotStaged)));
    assert!(world.kit.disk.used() < before + 100_000, "{}", world.kit.disk.used());
}

#[test]
fn staged_chunks_take_a_share_of_the_space_and_leave_the_rest() {
    let world = World::new(8);
    let capacity = 16 << 20;
    world.kit.disk.set_capacity(Some(capacity));
    let mut staged = 0;
    for number in 0..9 {
        let room = world.room(number);
        let chunks = world.client(&room, |at| async move {
            let mut staged = 0;
            while at.staged(1, MIB).await.is_ok() {
                staged += 1;
            }
            Ok(staged)
        });
        staged += chunks.unwrap();
    }
    assert_eq!(staged, 4, "a quarter of the medium");
    let drive = world.drive.clone();
    let own = world.kit.run(async move { drive.write(data(1, MIB)).await });
    assert!(own.is_ok(), "the file server's own chunks have space");
}

#[test]
fn a_crash_of_the_drive_gives_nothing_that_may_be_lost() {
    let mut world = World::new(9);
    let room = world.room(1);
    let stage = |world: &World| world.client(&room, |at| async move { at.stored(1, 5000).await }).unwrap();
    let (claimed, chunks) = (stage(&world), stage(&world));
    world.claim(room.tag, &claimed).unwrap();
    world.served = world.kit.crash(2);
    world.kit.sim.run_for(Duration::from_secs(60));
    assert!(matches!(world.claim(room.tag, &chunks), Err(DriveError::NotStaged)));
    assert!(world.is_there(claimed[0]), "what was given is durable");
    // The next process of the file server sweeps, and its own chunks are not touched.
    let (drive, live) = (world.kit.remote(), Arc::new(Live(claimed.clone())));
    world.kit.run(async move { drive.sweep(live).await.unwrap() });
    assert!(world.is_there(claimed[0]) && !world.is_there(chunks[0]));
}

/// What a claim waits for is bounded: the drive makes the bytes of a room durable on the way.
#[test]
fn a_room_with_much_in_it_is_made_durable_before_it_is_claimed() {
    let world = World::new(22);
    let wide = ByteRange::new(0, 200 << 20).unwrap();
    let room = changed(&world, |capability| capability.range = wide);
    let before = world.kit.disk.stats().syncs;
    let chunks = world.client(&room, |at| async move { at.stored(130, MIB).await }).unwrap();
    assert!(world.kit.disk.stats().syncs >= before + 2, "two times 64 MiB");
    world.claim(room.tag, &chunks).unwrap();
    assert!(world.is_there(chunks[0]) && world.is_there(chunks[129]));
}

/// A sweep makes a list of the live chunks first; what is claimed after that is on no list.
#[test]
fn a_file_server_claims_nothing_that_its_sweep_may_free() {
    let mut world = World::new(10);
    let room = world.room(1);
    let early = world.client(&room, |at| async move { at.stored(1, 5000).await }).unwrap();
    world.drive = world.kit.remote();
    assert!(world.takes_staged());
    let late = world.client(&room, |at| async move { at.stored(1, 5000).await }).unwrap();
    assert!(matches!(world.claim(room.tag, &early), Err(DriveError::NotStaged)));
    world.claim(room.tag, &late).unwrap();
    let (drive, live) = (world.drive.clone(), Arc::new(Live(Vec::new())));
    world.kit.run(async move { drive.sweep(live).await.unwrap() });
    assert!(world.is_there(late[0]) && !world.is_there(early[0]));
}

#[test]
fn what_was_staged_before_a_sweep_of_what_is_left_is_not_claimed_after_it() {
    let world = World::new(11);
    let room = world.room(1);
    let stage = |world: &World| world.client(&room, |at| async move { at.stored(1, 5000).await }).unwrap();
    let (claimed, early) = (stage(&world), stage(&world));
    world.claim(room.tag, &claimed).unwrap();
    // Another start of the drive would forget what is staged: only the connection is lost.
    for (from, to) in [(world.kit.server, world.kit.host), (world.kit.host, world.kit.server)] {
        world.kit.sim.cut(from, to);
        world.kit.sim.run_for(Duration::from_secs(60));
        world.kit.sim.mend(from, to);
    }
    assert!(world.takes_staged());
    let (drive, other, live) = (world.drive.clone(), world.drive.clone(), Arc::new(Live(claimed.clone())));
    let wanted = StagedChunks { tag: room.tag.0, chunks: early.clone() };
    let swept = world.kit.run(async move {
        // The drive still has it then, but the list of live chunks may be made without it.
        let settled = Box::pin(async move {
            assert!(matches!(other.claim(wanted).await, Err(DriveError::NotStaged)));
            Ok(())
        });
        drive.sweep_left(live, settled).await
    });
    assert!(swept.unwrap().segments > 0);
    let late = stage(&world);
    assert!(matches!(world.claim(room.tag, &early), Err(DriveError::NotStaged)));
    world.claim(room.tag, &late).unwrap();
    assert!(world.is_there(claimed[0]) && world.is_there(late[0]) && !world.is_there(early[0]));
}

/// A claim over a connection that breaks takes the chunks or does not; what it says is true, and nothing is leaked longer than
/// chunks live that nobody claims.
#[test]
fn a_claim_over_a_broken_connection_is_made_once_or_not() {
    let mishaps = [StreamMishap::Reset, StreamMishap::Silence, StreamMishap::Stall(Duration::from_secs(3))];
    let mut outcomes = [0; 2];
    for mishap in mishaps {
        for (to_drive, step) in [(true, 25), (false, 9)] {
            for n in 0..12 {
                let world = World::new(11);
                let room = world.room(1);
                let chunks = world.client(&room, |at| async move { at.stored(2, 5000).await }).unwrap();
                let (from, to) = (world.kit.server, world.kit.host);
                let (from, to) = if to_drive { (from, to) } else { (to, from) };
                world.kit.sim.break_stream(from, to, StreamFault { after: n * step, mishap });
                let claimed = world.claim(room.tag, &chunks);
                outcomes[usize::from(claimed.is_ok())] += 1;
                world.kit.sim.run_for(2 * STAGED_LIFE);
                let is_there = chunks.iter().filter(|chunk| world.is_there(**chunk)).count();
                match claimed {
                    Ok(()) => assert_eq!(is_there, 2, "{mishap:?} {to_drive} {n}"),
                    Err(error) => assert_eq!(is_there, 0, "{mishap:?} {to_drive} {n}: {error}"),
                }
            }
        }
    }
    assert!(outcomes[1] > 0, "{outcomes:?}");
}

#[test]
fn an_address_has_so_many_chunks_on_their_way_and_no_more() {
    let world = World::new(12);
    let (room, env) = (world.room(1), world.kit.sim.env(world.client));
    let told = world.client(&room, |at| async move {
        let begun: Vec<_> = (0..24)
            .map(|seed| {
                let (client, handle) = (at.client.clone(), at.handle.clone());
                env.spawn_with_result(async move { client.stage(&handle, data(seed, 100_000)).await })
            })
            .collect();
        let mut outcomes = Vec::new();
        for one in begun {
            outcomes.push(one.await.unwrap().map(drop));
        }
        Ok(outcomes)
    });
    let (staged, busy): (Vec<_>, Vec<_>) = told.unwrap().into_iter().partition(Result::is_ok);
    assert!(staged.len() >= 16 && !busy.is_empty(), "{}", staged.len());
    assert!(busy.iter().all(|outcome| *outcome == Err(Error::Failed(Failure::Busy))), "{busy:?}");
    assert!(world.client(&room, |at| async move { at.stored(1, 5000).await }).is_ok());
}

#[test]
fn a_generation_is_that_of_the_drive() {
    let world = World::new(13);
    let room = world.room(1);
    let chunks = world.client(&room, |at| async move { at.stored(1, 5000).await }).unwrap();
    world.served.revocations.revoke_all();
    let told = world.client(&room, |at| async move { at.stored(1, 5000).await });
    assert_eq!(told, Err(refused(Refusal::Revoked)));
    // What was staged before is the file server's to judge.
    world.claim(room.tag, &chunks).unwrap();
    assert_eq!(world.room(1).capability.generation, Generation(1 << 32 | 1));
}

/// What a client gives up, or nobody claims, is known to no file server: the drive alone can free it.
#[test]
fn what_a_failing_disk_keeps_of_staged_chunks_is_freed_when_it_works_again() {
    let world = World::new(20);
    let [given_up, left] = [1, 2].map(|number| world.room(number));
    let disk = world.kit.disk.clone();
    let told = world.client(&given_up, |at| async move {
        at.stored(3, MIB).await?;
        disk.set_failures(1_000_000, 0);
        let failed = at.client.perform(&at.handle, ChunkRequest::Forget, Bytes::new()).await;
        disk.set_failures(0, 0);
        assert_eq!(failed, Err(Error::Failed(Failure::Io)));
        Ok(())
    });
    told.unwrap();
    assert!(world.kit.disk.filled() >= 3 * MIB as u64);
    world.client(&left, |at| async move { at.stored(2, MIB).await }).unwrap();
    world.kit.disk.set_failures(1_000_000, 0);
    world.kit.sim.run_for(STAGED_LIFE + Duration::from_secs(60));
    assert!(world.kit.disk.filled() >= 5 * MIB as u64, "nothing can be freed");
    world.kit.disk.set_failures(0, 0);
    world.kit.sim.run_for(Duration::from_secs(60));
    assert_eq!(world.kit.disk.filled(), 0);
}

#[test]
fn what_a_failing_disk_keeps_is_freed_when_a_store_was_opened_again_after_a_failed_flush() {
    let world = World::new(21);
    let [given_up, other] = [1, 2].map(|number| world.room(number));
    let beside = world.client(&other, |at| async move { at.stored(1, MIB).await }).unwrap();
    world.client(&given_up, |at| async move { at.stored(1, MIB).await }).unwrap();
    world.kit.disk.set_failures(1_000_000, 0);
    let told = world.client(&given_up, |at| async move { at.client.forget_staged(&at.handle).await });
    assert_eq!(told, Err(Error::Failed(Failure::Io)));
    assert!(world.claim(other.tag, &beside).is_err(), "what cannot be made durable is not given");
    world.kit.disk.set_failures(0, 0);
    let told = world.client(&other, |at| async move {
        at.stored(1, 10).await?;
        at.client.forget_staged(&at.handle).await
    });
    told.unwrap();
    assert_eq!(world.kit.disk.filled(), 0);
}
