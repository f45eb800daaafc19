//! Transfers that a file server commands: what a client gets of a drive that way, what it does not, and how long either waits.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, Generation, Group, GroupTag, HolderId, KeyEpoch, Refusal,
    StoreNumber, Terms, TransferId,
};
use afs_datapath::frame::ChunkRequest;
use afs_datapath::session::{Client, Drive as Served, Error, Failure, Patience, Security};
use afs_drive::{ChunkRef, Drive};
use afs_env::EnvExt;
use afs_remote::DirectDrive;
use afs_sim::NodeId;
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;
use kit::{Kit, STORE, at, data};

const LEN: u32 = 200_000;
const ONE: TransferId = TransferId(1);
/// How long a drive keeps what has not met.
const WAIT: Duration = Duration::from_secs(10);

struct World {
    kit: Kit,
    client: NodeId,
    served: Arc<Served>,
    direct: DirectDrive,
    chunks: [ChunkRef; 2],
    generation: Generation,
}

fn tag(group: Group) -> GroupTag {
    kit::key(7).tag(group)
}

fn fid(vnode: u32) -> Fid {
    Fid::new(VolumeId(5), VnodeId(vnode), Uniquifier(1))
}

fn directory() -> GroupTag {
    tag(Group::Directory(fid(1)))
}

fn file() -> GroupTag {
    tag(Group::File(fid(2)))
}

fn failed<T>(failure: impl Into<Failure>) -> Result<T, Error> {
    Err(Error::Failed(failure.into()))
}

impl World {
    fn new(seed: u64) -> Self {
        let kit = Kit::new(seed);
        let served = kit.start(1);
        let client = kit.sim.node("client", Ipv4Addr::new(10, 0, 0, 3).into());
        let (direct, drive) = (DirectDrive::new(kit.env(), kit.options(7)), kit.remote());
        let told = direct.clone();
        let (chunks, generation) = kit.run(async move {
            let one = drive.write(data(1, LEN as usize)).await.unwrap();
            let other = drive.write(data(2, LEN as usize)).await.unwrap();
            drive.sync(&[one]).await.unwrap();
            ([one, other], told.sealing().await.unwrap().generation)
        });
        Self { kit, client, served, direct, chunks, generation }
    }

    fn terms(&self) -> Terms {
        Terms { store: STORE, start: 0, end: LEN, file: file(), generation: self.generation }
    }

    fn capability(&self) -> Capability {
        Capability {
            drive: DriveId(0xd1),
            epoch: KeyEpoch(1),
            group: Group::Tagged(directory()),
            access: Access::READ,
            range: ByteRange::ALL,
            expires: self.kit.env().wall().secs + 60,
            generation: self.generation,
            holder: HolderId(1),
        }
    }

    /// Has the file server command a transfer.
    fn command(&self, to: (GroupTag, TransferId), chunk: ChunkRef, terms: Terms) -> bool {
        let direct = self.direct.clone();
        self.kit.run(async move { direct.deliver(to, chunk, terms).await })
    }

    fn command_right(&self) -> bool {
        self.command((directory(), ONE), self.chunks[0], self.terms())
    }

    /// A client that waits for a transfer of the first chunk, over a connection of its own.
    fn receiving(
        &self,
        capability: Capability,
        transfer: TransferId,
        range: Range<u32>,
    ) -> impl Future<Output = Result<Bytes, Error>> + Send + use<> {
        let (env, chunk) = (self.kit.sim.env(self.client), self.chunks[0]);
        async move {
            let stream = env.connect(at()).await.map_err(|error| Error::Lost(error.into()))?;
            let client = Client::open(env, stream, Security::Clear, Patience::default()).await?;
            let handle = client.present(&capability, &kit::key(7).seal(&capability))?;
            client.receive(&handle, transfer, (chunk, range)).await
        }
    }

    fn receive(&self, transfer: TransferId, range: Range<u32>) -> Result<Bytes, Error> {
        let work = self.receiving(self.capability(), transfer, range);
        self.kit.sim.block_on(self.client, kit::HOUR, work).ok().unwrap()
    }

    fn waiting(&self) -> usize {
        self.served.counts().in_progress
    }
}

#[test]
fn a_command_and_its_client_meet_in_either_order_and_every_byte_is_right() {
    for (seed, range) in [(1, 0..LEN), (2, 0..0), (3, 5..6), (4, 65_535..65_537), (5, 131_072..LEN)] {
        let world = World::new(seed);
        let right = data(1, LEN as usize).slice(range.start as usize..range.end as usize);
        assert!(world.command_right());
        assert_eq!(world.receive(ONE, range.clone()).unwrap(), right, "the command first");
        let (env, direct) = (world.kit.env(), world.direct.clone());
        let (chunk, terms) = (world.chunks[0], world.terms());
        env.clone().spawn(Box::pin(async move {
            env.sleep(Duration::from_secs(3)).await;
            assert!(direct.deliver((directory(), ONE), chunk, terms).await);
        }));
        assert_eq!(world.receive(ONE, range).unwrap(), right, "the client first");
        assert_eq!((world.served.counts().refused, world.waiting()), ([0; 8], 0));
    }
}

#[test]
fn nothing_is_sent_without_a_command_and_each_is_for_one_transfer() {
    let world = World::new(6);
    let began = world.kit.sim.now();
    assert_eq!(world.receive(ONE, 0..5), failed(Failure::Stalled));
    assert!(world.kit.sim.now() - began >= WAIT);
    assert!(world.command_right() && world.receive(ONE, 0..5).is_ok());
    assert_eq!(world.receive(ONE, 0..5), failed(Failure::Stalled), "it was used");
    assert!(world.command_right());
    world.kit.sim.run_for(WAIT);
    assert_eq!(world.receive(ONE, 0..5), failed(Failure::Stalled), "it was not kept");
}

#[test]
fn what_was_not_commanded_is_not_sent() {
    type Wrong = fn(&mut (GroupTag, TransferId), &mut ChunkRef, &mut Terms, &World);
    let table: [(&str, Wrong, Failure); 7] = [
        ("another number", |to, _, _, _| to.1.0 += 1, Failure::Stalled),
        ("another group", |to, _, _, _| to.0 = tag(Group::Directory(fid(9))), Failure::Stalled),
        ("another chunk", |_, chunk, _, world| *chunk = world.chunks[1], Refusal::OtherObject.into()),
        ("another checksum", |_, chunk, _, _| chunk.crc ^= 1, Refusal::OtherObject.into()),
        ("fewer bytes", |_, _, terms, _| terms.end = 65_536, Refusal::OutOfRange.into()),
        ("later bytes", |_, _, terms, _| terms.start = 65_536, Refusal::OutOfRange.into()),
        ("an old generation", |_, _, terms, _| terms.generation.0 -= 1, Refusal::Revoked.into()),
    ];
    for (what, wrong, failure) in table {
        let world = World::new(7);
        let (mut to, mut chunk, mut terms) = ((directory(), ONE), world.chunks[0], world.terms());
        wrong(&mut to, &mut chunk, &mut terms, &world);
        assert!(world.command(to, chunk, terms), "{what}");
        assert_eq!(world.receive(ONE, 0..LEN), failed(failure), "{what}");
    }
}

#[test]
fn a_client_needs_a_capability_that_is_good() {
    type Wrong = fn(&mut Capability);
    let table: [(&str, Wrong, Refusal); 6] = [
        ("expired", |capability| capability.expires = 1, Refusal::Expired),
        ("good for too long", |capability| capability.expires = u64::MAX, Refusal::Expired),
        ("to write", |capability| capability.access = Access::WRITE, Refusal::NotAllowed),
        ("an old run", |capability| capability.generation = Generation(0), Refusal::Revoked),
        ("of files", |capability| capability.group = Group::Directory(fid(1)), Refusal::OtherObject),
        ("no bytes", |capability| capability.range = ByteRange::new(0, 4).unwrap(), Refusal::OutOfRange),
    ];
    for (what, wrong, refusal) in table {
        let world = World::new(8);
        let mut capability = world.capability();
        wrong(&mut capability);
        assert!(world.command_right());
        let work = world.receiving(capability, ONE, 0..5);
        let told = world.kit.sim.block_on(world.client, kit::HOUR, work).ok().unwrap();
        assert_eq!(told, failed(refusal), "{what}");
        assert!(world.served.counts().refused_for(refusal) > 0, "{what}");
    }
}

#[test]
fn a_client_commands_nothing_and_a_file_server_commands_its_own_store() {
    let world = World::new(9);
    let (env, capability) = (world.kit.sim.env(world.client), world.capability());
    let (chunk, terms) = (world.chunks[0], world.terms());
    let command = ChunkRequest::Deliver { group: directory(), transfer: ONE, chunk, terms };
    let work = async move {
        let stream = env.connect(at()).await.unwrap();
        let client = Client::open(env, stream, Security::Clear, Patience::default()).await.unwrap();
        let handle = client.present(&capability, &kit::key(7).seal(&capability)).unwrap();
        client.perform(&handle, command, Bytes::new()).await
    };
    let told = world.kit.sim.block_on(world.client, kit::HOUR, work).ok().unwrap();
    assert_eq!(told, failed(Refusal::NotAllowed));
    let elsewhere = Terms { store: StoreNumber(STORE.0 + 1), ..terms };
    assert!(!world.command((directory(), ONE), chunk, elsewhere));
    assert_eq!(world.receive(ONE, 0..5), failed(Failure::Stalled));
}

#[test]
fn a_revocation_ends_what_was_commanded_and_not_sent() {
    for group in [Group::File(fid(2)), Group::Directory(fid(1))] {
        let world = World::new(10);
        assert!(world.command_right());
        let direct = world.direct.clone();
        assert!(world.kit.run(async move { direct.revoke(&[group]).await }));
        assert_eq!(world.receive(ONE, 0..5), failed(Refusal::Revoked));
    }
}

#[test]
fn a_client_that_gives_up_leaves_nothing_behind_and_gets_what_comes_next() {
    let world = World::new(11);
    let (env, waiting) = (world.kit.sim.env(world.client), world.receiving(world.capability(), ONE, 0..5));
    let work = async move { env.timeout(Duration::from_secs(1), waiting).await.is_err() };
    assert!(world.kit.sim.block_on(world.client, kit::HOUR, work).ok().unwrap());
    world.kit.sim.run_for(Duration::from_secs(1));
    assert_eq!(world.waiting(), 0, "long before the wait is over");
    assert!(world.command_right() && world.receive(ONE, 0..5).is_ok());
}

/// Commands without clients take bounded room for a bounded time.
#[test]
fn commands_that_nobody_waits_for_are_bounded() {
    let world = World::new(12);
    let (direct, chunk, terms) = (world.direct.clone(), world.chunks[0], world.terms());
    let taken = world.kit.run(async move {
        let mut taken = 0;
        while taken < 5000 && direct.deliver((directory(), TransferId(taken)), chunk, terms).await {
            taken += 1;
        }
        taken
    });
    assert_eq!(taken, 1024);
    world.kit.sim.run_for(WAIT);
    assert!(world.command_right() && world.receive(ONE, 0..5).is_ok());
}
