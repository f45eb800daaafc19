//! Clients at a drive: what they read by capability and binding, what is refused, and revocation with the drive near and away.

#![allow(clippy::unwrap_used)]

use crate::kit;

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{
    Access, ByteRange, Capability, ChunkList, DriveId, DriveKey, Group, GroupTag, HolderId, KeyEpoch,
    ListTerms, Listed, ListedChunk, Refusal, Secret, StoreNumber, Terms,
};
use afs_datapath::session::{Client, Drive as Served, Error, Failure, Patience, Security};
use afs_drive::{ChunkRef, Drive};
use afs_remote::{DirectDrive, TELL_MAX};
use afs_sim::{NodeId, StreamFault, StreamMishap};
use afs_wire::ids::{Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;
use kit::{Kit, STORE, at, data};

const LEN: u32 = 200_000;
/// What a file server gives is good for so many seconds.
const LIFE: u64 = 60;

fn fid(vnode: u32) -> Fid {
    Fid::new(VolumeId(5), VnodeId(vnode), Uniquifier(1))
}

/// What a client presents.
#[derive(Clone)]
struct Held {
    capability: Capability,
    secret: Secret,
    chunk: ChunkRef,
    listed: Listed,
}

struct World {
    kit: Kit,
    client: NodeId,
    served: Arc<Served>,
    direct: DirectDrive,
    chunk: ChunkRef,
}

impl World {
    fn new(seed: u64) -> Self {
        let kit = Kit::new(seed);
        let served = kit.start(1);
        let client = kit.sim.node("client", Ipv4Addr::new(10, 0, 0, 3).into());
        let (direct, drive) = (DirectDrive::new(kit.env(), kit.options(7)), kit.remote());
        let chunk = kit.run(async move {
            let chunk = drive.write(data(1, LEN as usize)).await.unwrap();
            drive.sync(&[chunk]).await.unwrap();
            chunk
        });
        Self { kit, client, served, direct, chunk }
    }

    fn directory(&self) -> GroupTag {
        kit::key(7).tag(Group::Directory(fid(1)))
    }

    fn file(&self) -> GroupTag {
        kit::key(7).tag(Group::File(fid(2)))
    }

    fn now(&self) -> u64 {
        self.kit.env().wall().secs
    }

    /// What the file server gives for all of the chunk, to a reader of the directory.
    fn give(&self) -> Option<Held> {
        let direct = self.direct.clone();
        let generation = self.kit.run(async move { direct.sealing().await })?.generation;
        let terms = Terms { store: STORE, start: 0, end: LEN, file: self.file(), generation };
        let capability = Capability {
            drive: DriveId(0xd1),
            epoch: KeyEpoch(1),
            group: Group::Tagged(self.directory()),
            access: Access::READ,
            range: ByteRange::ALL,
            expires: self.now() + LIFE,
            generation,
            holder: HolderId(1),
        };
        Some(self.held(&kit::key(7), capability, terms))
    }

    fn held(&self, key: &DriveKey, capability: Capability, terms: Terms) -> Held {
        let Terms { store, start, end, file, generation } = terms;
        let list = ChunkList::new(&[ListedChunk { chunk: self.chunk, start, end }]).unwrap();
        let binding = key.bind_list(self.directory(), &list, ListTerms { store, file, generation });
        let listed = Listed { start, end, place: 0, count: 1, path: list.path(0), binding };
        Held { capability, secret: key.seal(&capability), chunk: self.chunk, listed }
    }

    fn read(&self, held: &Held, range: Range<u32>) -> Result<Bytes, Error> {
        let (env, held) = (self.kit.sim.env(self.client), held.clone());
        let work = async move {
            let patience = Patience { silence: Duration::from_secs(5), ..Patience::default() };
            let stream = env.connect(at()).await.map_err(|error| Error::Lost(error.into()))?;
            let client = Client::open(env.clone(), stream, Security::Clear, patience).await?;
            let handle = client.present(&held.capability, &held.secret)?;
            client.read_listed(&handle, (held.chunk, held.listed.clone()), range).await
        };
        self.kit.sim.block_on(self.client, kit::HOUR, work).ok().unwrap()
    }

    fn refused(&self, held: &Held, range: Range<u32>) -> Option<Refusal> {
        match self.read(held, range) {
            Err(Error::Failed(Failure::Refused(refusal))) => Some(refusal),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    }

    fn revoke(&self, groups: Vec<Group>) -> bool {
        let direct = self.direct.clone();
        self.kit.run(async move { direct.revoke(&groups).await })
    }
}

#[test]
fn a_client_reads_what_is_bound_to_its_group_and_every_byte_is_right() {
    let world = World::new(1);
    let held = world.give().unwrap();
    for range in [0..LEN, 0..0, 5..6, 65_535..65_537, 131_072..LEN, LEN..LEN] {
        let read = world.read(&held, range.clone()).unwrap();
        assert_eq!(read, data(1, LEN as usize)[range.start as usize..range.end as usize]);
    }
    assert_eq!(world.served.counts().refused, [0; 8]);
}

/// What is presented: the right thing, with one thing changed.
fn changed(world: &World, change: impl Fn(&mut Capability, &mut Terms)) -> Held {
    let held = world.give().unwrap();
    let (mut capability, mut terms) = (held.capability, held.listed.terms());
    change(&mut capability, &mut terms);
    world.held(&kit::key(7), capability, terms)
}

#[test]
fn what_was_not_given_is_refused_and_counted() {
    let world = World::new(2);
    let right = world.give().unwrap();
    let now = world.now();
    let mut forged_binding = right.clone();
    forged_binding.listed.binding.mac[0] ^= 1;
    let mut other_chunk = right.clone();
    other_chunk.chunk.crc ^= 1;
    let mut wider = right.clone();
    wider.listed.end = LEN - 1;
    let mut raised = right.clone();
    raised.capability.expires += 1;
    let other_key = world.held(&kit::key(8), right.capability, right.listed.terms());
    let other_binding = Held { listed: other_key.listed.clone(), ..right.clone() };
    let whole = 0..LEN;
    let table = [
        ("forged: another key", other_key, whole.clone(), Refusal::Forged),
        ("forged: another expiry", raised, whole.clone(), Refusal::Forged),
        ("forged: a binding by another key", other_binding, whole.clone(), Refusal::OtherObject),
        ("forged: a changed binding", forged_binding, whole.clone(), Refusal::OtherObject),
        ("forged: changed terms", wider, 0..5, Refusal::OtherObject),
        ("another chunk", other_chunk, whole.clone(), Refusal::OtherObject),
        ("expired", changed(&world, |c, _| c.expires = now), whole.clone(), Refusal::Expired),
        ("good for too long", changed(&world, |c, _| c.expires = u64::MAX), whole.clone(), Refusal::Expired),
        ("another drive", changed(&world, |c, _| c.drive.0 += 1), whole.clone(), Refusal::OtherDrive),
        ("an old epoch", changed(&world, |c, _| c.epoch.0 -= 1), whole.clone(), Refusal::OtherEpoch),
        ("an old run", changed(&world, |c, _| c.generation.0 -= 1), whole.clone(), Refusal::Revoked),
        (
            "a binding of an old run",
            changed(&world, |_, t| t.generation.0 -= 1),
            whole.clone(),
            Refusal::Revoked,
        ),
        (
            "another directory",
            changed(&world, |c, _| c.group = Group::Tagged(kit::key(7).tag(Group::Directory(fid(3))))),
            whole.clone(),
            Refusal::OtherObject,
        ),
        (
            "a group of files",
            changed(&world, |c, _| c.group = Group::Directory(fid(1))),
            whole.clone(),
            Refusal::OtherObject,
        ),
        (
            "to write only",
            changed(&world, |c, _| c.access = Access::WRITE),
            whole.clone(),
            Refusal::NotAllowed,
        ),
        ("beyond the terms", changed(&world, |_, t| t.end = 65_536), 0..65_537, Refusal::OutOfRange),
        ("before the terms", changed(&world, |_, t| t.start = 65_536), 65_535..65_537, Refusal::OutOfRange),
        (
            "beyond the capability",
            changed(&world, |c, _| c.range = ByteRange::new(0, 5).unwrap()),
            0..6,
            Refusal::OutOfRange,
        ),
    ];
    let mut counts = [0; 8];
    for (what, held, range, refusal) in table {
        assert_eq!(world.refused(&held, range), Some(refusal), "{what}");
        // A capability that is refused when it is presented is refused once more with the request.
        let is_at_once = matches!(refusal, Refusal::Forged | Refusal::OtherDrive | Refusal::OtherEpoch)
            || what == "expired";
        counts[refusal as usize] += 1 + u64::from(is_at_once);
    }
    assert_eq!(world.served.counts().refused, counts);
    assert!(world.read(&right, 0..LEN).is_ok(), "the right one is good all the while");
}

#[test]
fn a_capability_of_a_client_manages_nothing() {
    use afs_datapath::frame::ChunkRequest;
    let world = World::new(3);
    let held = world.give().unwrap();
    let requests = [
        ChunkRequest::Status,
        ChunkRequest::Sync { oldest: world.chunk.id },
        ChunkRequest::Discard { chunks: vec![world.chunk] },
        ChunkRequest::Revoke { groups: vec![world.directory()] },
        ChunkRequest::RevokeAll,
    ];
    for what in requests {
        let (env, held, asked) = (world.kit.sim.env(world.client), held.clone(), what.clone());
        let work = async move {
            let stream = env.connect(at()).await.unwrap();
            let client = Client::open(env, stream, Security::Clear, Patience::default()).await.unwrap();
            let handle = client.present(&held.capability, &held.secret).unwrap();
            client.perform(&handle, asked, Bytes::new()).await
        };
        let told = world.kit.sim.block_on(world.client, kit::HOUR, work).ok().unwrap();
        assert_eq!(told, Err(Error::Failed(Failure::Refused(Refusal::NotAllowed))), "{what:?}");
    }
    assert!(world.read(&held, 0..LEN).is_ok());
}

#[test]
fn a_clock_that_is_wrong_by_an_hour_refuses() {
    for forward in [true, false] {
        let world = World::new(4);
        let held = world.give().unwrap();
        world.kit.sim.jump_wall(world.kit.host, Duration::from_secs(3600), forward);
        assert_eq!(world.refused(&held, 0..5), Some(Refusal::Expired), "{forward}");
    }
}

#[test]
fn a_revocation_ends_what_it_names_at_once() {
    let world = World::new(5);
    let held = world.give().unwrap();
    assert!(world.revoke(vec![Group::File(fid(9))]));
    assert!(world.read(&held, 0..5).is_ok(), "another file");
    assert!(world.revoke(vec![Group::File(fid(2))]));
    assert_eq!(world.refused(&held, 0..5), Some(Refusal::Revoked));
    // The capability for the directory is good still; the file has to be looked at again.
    let again = world.give().unwrap();
    let both = Held { capability: held.capability, secret: held.secret.clone(), ..again.clone() };
    assert!(world.read(&both, 0..5).is_ok());
    assert!(world.revoke(vec![Group::Directory(fid(1))]));
    assert_eq!(world.refused(&both, 0..5), Some(Refusal::Revoked));
    assert_eq!(world.refused(&again, 0..5), Some(Refusal::Revoked));
    assert!(world.read(&world.give().unwrap(), 0..5).is_ok());
}

#[test]
fn nothing_outlives_a_start_of_the_drive_or_of_the_file_server() {
    let mut world = World::new(6);
    let held = world.give().unwrap();
    world.revoke(vec![Group::File(fid(2))]);
    let after = world.give().unwrap();
    world.served = world.kit.crash(2);
    // The drive forgot its table, and honours neither.
    for old in [&held, &after] {
        assert_eq!(world.refused(old, 0..5), Some(Refusal::Revoked));
    }
    world.kit.sim.run_for(Duration::from_secs(60));
    let after = world.give().unwrap();
    assert_eq!(world.read(&after, 0..LEN).unwrap(), data(1, LEN as usize));
    // Another process does not know what the first one gave.
    world.direct = DirectDrive::new(world.kit.env(), world.kit.options(7));
    assert!(world.give().is_some());
    assert_eq!(world.refused(&after, 0..5), Some(Refusal::Revoked));
}

#[test]
fn a_drive_that_cannot_be_told_gets_no_clients_and_forgets_all_when_it_is_back() {
    let world = World::new(7);
    let held = world.give().unwrap();
    world.kit.sim.cut(world.kit.server, world.kit.host);
    let began = world.kit.sim.now();
    assert!(!world.revoke(vec![Group::File(fid(2))]));
    assert!(world.kit.sim.now() - began <= TELL_MAX, "who changes rights waits no longer");
    let began = world.kit.sim.now();
    assert!(!world.revoke(vec![Group::File(fid(2))]), "nobody waits for it again");
    assert!(world.kit.sim.now() == began && world.give().is_none());
    // The bound that is left: it was given for a minute.
    assert!(world.read(&held, 0..5).is_ok());
    world.kit.sim.run_for(Duration::from_secs(LIFE));
    assert_eq!(world.refused(&held, 0..5), Some(Refusal::Expired));
    world.kit.sim.mend(world.kit.server, world.kit.host);
    world.kit.sim.run_for(Duration::from_secs(60));
    let again = world.give().unwrap();
    assert!(world.read(&again, 0..5).is_ok());
    assert!(held.listed.binding.terms.generation < again.listed.binding.terms.generation);
    let both = Held { listed: held.listed, ..again };
    assert_eq!(world.refused(&both, 0..5), Some(Refusal::Revoked));
}

#[test]
fn a_fault_of_the_stream_gives_right_bytes_or_an_error_in_bounded_time() {
    let mishaps = [StreamMishap::Reset, StreamMishap::Silence, StreamMishap::Stall(Duration::from_secs(3))];
    let mut right = 0;
    for mishap in mishaps {
        for (to_drive, step) in [(true, 40), (false, 20_011)] {
            for n in 0..10 {
                let world = World::new(8);
                let held = world.give().unwrap();
                let (from, to) = (world.client, world.kit.host);
                let (from, to) = if to_drive { (from, to) } else { (to, from) };
                world.kit.sim.break_stream(from, to, StreamFault { after: n * step, mishap });
                let began = world.kit.sim.now();
                if let Ok(bytes) = world.read(&held, 0..LEN) {
                    assert_eq!(bytes, data(1, LEN as usize));
                    right += 1;
                }
                assert!(world.kit.sim.now() - began < Duration::from_secs(120));
            }
        }
    }
    assert!(right > 0);
}

/// The file server seals for a store; a client's request names it, within the MAC.
#[test]
fn the_store_is_part_of_what_is_bound() {
    let world = World::new(9);
    let mut held = world.give().unwrap();
    held.listed.binding.terms.store = StoreNumber(4);
    assert_eq!(world.refused(&held, 0..5), Some(Refusal::OtherObject));
    let generation = held.listed.terms().generation;
    let terms = Terms { store: StoreNumber(256), generation, ..held.listed.terms() };
    let held = world.held(&kit::key(7), held.capability, terms);
    assert_eq!(world.read(&held, 0..5), Err(Error::Failed(Failure::NoObject)));
}

impl World {
    /// What a file server gives for a list of three chunks, of which the second is there.
    fn list(&self, held: &Held) -> Listed {
        let element = |n: u32| {
            let chunk = ChunkRef { crc: self.chunk.crc ^ n, ..self.chunk };
            ListedChunk { chunk, start: 0, end: LEN }
        };
        let list = ChunkList::new(&[element(1), element(0), element(2)]).unwrap();
        let Terms { store, file, generation, .. } = held.listed.terms();
        let binding = kit::key(7).bind_list(self.directory(), &list, ListTerms { store, file, generation });
        Listed { start: 0, end: LEN, place: 1, count: 3, path: list.path(1), binding }
    }

    fn read_listed(&self, held: &Held, listed: &Listed, range: Range<u32>) -> Result<Bytes, Error> {
        self.read(&Held { listed: listed.clone(), ..held.clone() }, range)
    }
}

#[test]
fn a_chunk_of_a_list_is_read_at_its_place_and_nothing_else_by_the_list() {
    let world = World::new(9);
    let held = world.give().unwrap();
    let right = world.list(&held);
    for range in [0..LEN, 0..0, 65_535..65_537] {
        let read = world.read_listed(&held, &right, range.clone()).unwrap();
        assert_eq!(read, data(1, LEN as usize)[range.start as usize..range.end as usize]);
    }
    assert_eq!(world.served.counts().refused, [0; 8]);
    let refused = |what: &str, held: &Held, listed: &Listed, refusal| {
        let told = world.read_listed(held, listed, 0..5);
        assert_eq!(told, Err(Error::Failed(Failure::Refused(refusal))), "{what}");
    };
    let mut other = held.clone();
    other.chunk.crc ^= 4;
    refused("a chunk that is in no list", &other, &right, Refusal::OtherObject);
    let elsewhere = Listed { place: 0, ..right.clone() };
    refused("at another place", &held, &elsewhere, Refusal::OtherObject);
    let mut wider = right.clone();
    wider.end = LEN + 1;
    refused("more than is bound", &held, &wider, Refusal::OtherObject);
    let alone = Listed { count: 1, place: 0, path: Vec::new(), ..right.clone() };
    refused("a list of its own", &held, &alone, Refusal::OtherObject);
    let other_group =
        changed(&world, |c, _| c.group = Group::Tagged(kit::key(7).tag(Group::Directory(fid(3)))));
    refused("another directory", &other_group, &right, Refusal::OtherObject);
    let too_long = changed(&world, |c, _| c.expires = u64::MAX);
    refused("good for too long", &too_long, &right, Refusal::Expired);
    let narrow = changed(&world, |c, _| c.range = ByteRange::new(0, 4).unwrap());
    refused("beyond the capability", &narrow, &right, Refusal::OutOfRange);
    assert!(world.read_listed(&held, &right, 0..5).is_ok(), "the right one is good all the while");
    // A list ends with the rights to its file, and no other.
    assert!(world.revoke(vec![Group::File(fid(9))]));
    assert!(world.read_listed(&held, &right, 0..5).is_ok());
    assert!(world.revoke(vec![Group::File(fid(2))]));
    refused("revoked", &held, &right, Refusal::Revoked);
    let again = world.give().unwrap();
    assert!(world.read_listed(&again, &world.list(&again), 0..5).is_ok());
    refused("the list of before", &again, &right, Refusal::Revoked);
}
