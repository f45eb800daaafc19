//! Scrub: damage of a disk is found in the background, and repaired from a replica on another server.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_db::EmbeddedLocationDb;
use afs_drive::{MemorySegments, SegmentDrive, SegmentStore};
use afs_kv::{Kv, Medium, MemoryMedium};
use afs_rpc::Parts;
use afs_rpc::{Rx, Service};
use afs_rx::NullServer;
use afs_server::remote::DatabaseServers;
use afs_server::scrub::{Replicas, ScrubReport, ScrubSettings, Scrubber};
use afs_server::{
    Audit, FileServer, FileServerConfig, FileServerLimits, Guard, LocationServer, PartitionState, Partitions,
    VolumeServer, VolumeStates,
};
use afs_sim::{NodeId, Sim};
use afs_testkit::net::endpoint;
use afs_volume::{Actor, Config, StoreData, Volume, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, PartitionId, PartitionNumber, Uuid, ViceId, VolumeId, VolumeKind, VolumeName};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{CreateEntryN, Entry, EntryFlags, NameChars, RegisterAddrs, Site, SiteFlags};
use afs_wire::xdr::BoundedVec;
use rig::{Claim, ClaimServer, PATIENCE, People, WORD};

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const VOLUME: VolumeId = VolumeId(1);
const REPLICA: VolumeId = VolumeId(2);
const ACTOR: Actor = Actor { id: ViceId(1), administrator: true };
const LENGTH: u64 = 600_000;

/// A server with one volume on a disk that can be damaged.
struct Server {
    node: NodeId,
    segments: MemorySegments,
    index: MemoryMedium,
    kv: Kv,
    store: VolumeStore,
    volume: Arc<Volume>,
    rx: Rx,
    _files: Arc<FileServer>,
}

struct World {
    sim: Sim,
    here: Server,
    there: Server,
    _locations: Rx,
}

impl World {
    fn new(seed: u64) -> Self {
        let sim = Sim::new(seed);
        let (here, there) = (server(&sim, HERE, VOLUME), server(&sim, THERE, REPLICA));
        let locations = locations(&sim, here.node);
        let world = World { sim, here, there, _locations: locations };
        world.enter();
        world
    }

    fn database(&self) -> DatabaseServers {
        let at = SocketAddr::new(IpAddr::V4(HERE), 7003);
        DatabaseServers::new(&self.here.rx, ServiceId::LOCATION, [at], &Claim::of_key().security())
    }

    fn enter(&self) {
        let database = self.database();
        let site = |server, flags| Site { server, partition: PartitionNumber(0), flags };
        let entry = Entry {
            name: NameChars::truncated(b"projects"),
            sites: BoundedVec::first_of([
                site(HERE, SiteFlags::RW_VOLUME),
                site(THERE, SiteFlags::RO_VOLUME),
            ]),
            ids: [VOLUME, REPLICA, VolumeId(0)],
            flags: EntryFlags::RW_EXISTS | EntryFlags::RO_EXISTS,
            ..Entry::default()
        };
        let entering = async move {
            for server in [HERE, THERE] {
                let addresses = BoundedVec::first_of([server]);
                let uuid = Uuid([server.octets()[3]; 16]);
                database.call(&RegisterAddrs { uuid, spare: 0, addresses }).await.unwrap();
            }
            database.call(&CreateEntryN { entry }).await.unwrap();
        };
        self.sim.block_on(self.here.node, PATIENCE, entering).unwrap();
    }

    /// A scrubber that starts at once, and its report after a minute.
    fn scrub(&self, every: Duration) -> (Scrubber, ScrubReport) {
        let own: afs_server::OwnSecurity = Arc::new(|| Claim::of_key().security());
        let replicas = Replicas::new(self.database(), self.here.rx.clone(), own, 7005);
        let settings = ScrubSettings { every, delay: Duration::from_secs(1), ..ScrubSettings::default() };
        let partitions = Partitions::one(self.here.store.clone());
        let env = self.sim.env(self.here.node);
        let scrubber = Scrubber::start(&env, &partitions, Some(replicas), settings);
        self.sim.run_for(Duration::from_secs(60));
        let report = report(&scrubber);
        (scrubber, report)
    }

    fn read(&self) -> Option<Vec<u8>> {
        let volume = self.here.volume.clone();
        let fid = Fid { volume: VOLUME, ..file(&volume) };
        let reading = async move {
            let (mut reader, mut bytes) = (volume.read_data(fid, 0, u64::MAX).ok()?, Vec::new());
            while let Some(piece) = reader.next().await.ok()? {
                bytes.extend_from_slice(&piece);
            }
            Some(bytes)
        };
        self.sim.block_on(self.here.node, PATIENCE, reading).unwrap()
    }
}

fn report(scrubber: &Scrubber) -> ScrubReport {
    scrubber.reports().remove(&PartitionId(0)).unwrap()
}

fn content() -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8).collect()
}

/// The one file of a volume.
fn file(volume: &Arc<Volume>) -> Fid {
    let vnode = afs_wire::ids::VnodeId(2);
    let record = volume.vnode(vnode).unwrap().unwrap();
    Fid { volume: volume.id(), vnode, unique: record.unique }
}

fn server(sim: &Sim, address: Ipv4Addr, id: VolumeId) -> Server {
    let node = sim.node(&address.to_string(), IpAddr::V4(address));
    let env = sim.env(node);
    let segments = MemorySegments::new(1 << 30);
    let index = MemoryMedium::new();
    let kv =
        Kv::open(Arc::new(index.clone()), afs_volume::TABLES, Parts::inline(), afs_kv::Config::default())
            .unwrap();
    let drive = SegmentDrive::open(segments.clone(), Parts::inline(), 8 << 20).unwrap();
    let opening = filled(kv.clone(), Arc::new(drive), id);
    let (store, volume) = sim.block_on(node, PATIENCE, opening).unwrap();
    let bind = |port| endpoint(sim, node, SocketAddr::from((address, port)));
    let (files_rx, rx) = (bind(7000), bind(7005));
    let (states, guard) = (Arc::new(VolumeStates::default()), guard());
    let partitions = Partitions::one(store.clone());
    let files = FileServer::new(FileServerConfig {
        env: env.clone(),
        rx: files_rx,
        uuid: Uuid([address.octets()[3]; 16]),
        partitions: partitions.clone(),
        guard: guard.clone(),
        states: states.clone(),
        limits: FileServerLimits::default(),
    });
    offer(&rx, VolumeServer::new(env, partitions, states, files.clients().clone(), guard).service());
    Server { node, segments, index, kv, store, volume, rx, _files: files }
}

fn guard() -> Guard {
    Guard::new(Arc::new(People::default())).with_audit(Audit::off())
}

fn locations(sim: &Sim, node: NodeId) -> Rx {
    let env = sim.env(node);
    let kv =
        Kv::open(Arc::new(MemoryMedium::new()), afs_db::TABLES, Parts::inline(), afs_kv::Config::default());
    let db = Arc::new(EmbeddedLocationDb::new(kv.unwrap()));
    let at = SocketAddr::from((HERE, 7003));
    let rx = endpoint(sim, node, at);
    offer(&rx, LocationServer::service(env, db, guard()));
    rx
}

fn offer(rx: &Rx, service: Arc<dyn Service>) {
    rx.listen_with(service, vec![Box::new(NullServer), Box::new(ClaimServer(WORD.into()))]).unwrap();
}

/// The same steps give the same fids and versions on every server, as a release does.
async fn filled(kv: Kv, drive: Arc<dyn afs_drive::Drive>, id: VolumeId) -> (VolumeStore, Arc<Volume>) {
    let store = VolumeStore::open(kv, drive, Parts::inline(), Config::default()).await.unwrap();
    let spec = VolumeSpec {
        id,
        name: VolumeName::new("projects").unwrap(),
        kind: VolumeKind::ReadWrite,
        parent: VOLUME,
        owner: ACTOR.id,
        max_quota: 0,
        root: Some(Acl::of_new_volume()),
    };
    let volume = store.create_volume(spec).await.unwrap();
    let made = volume
        .update(move |tx| tx.create_file(Fid::root(id), b"f", &SetStatus::default(), ACTOR))
        .await
        .unwrap();
    let fid = made.object.fid(id);
    let mut writer = volume.write_data(0).unwrap();
    writer.push(content().into()).await.unwrap();
    let data = writer.finish().await.unwrap();
    let change = StoreData { fid, file_length: LENGTH, status: SetStatus::default(), expected: None };
    volume.update(move |tx| tx.store_data(change, data, ACTOR)).await.unwrap();
    (store, volume)
}

const WEEK: Duration = Duration::from_secs(7 * 86_400);

#[test]
fn damaged_data_is_repaired_from_a_replica() {
    let world = World::new(1);
    world.here.segments.write_at(1, 5000, b"damage").unwrap();
    assert_eq!(world.read(), None);
    let (_scrubber, report) = world.scrub(WEEK);
    assert_eq!((report.last.bad, report.last.repaired, report.last.bytes), (1, 1, LENGTH));
    assert_eq!(report.damaged, []);
    assert_eq!(world.read(), Some(content()));
}

#[test]
fn unrepairable_damage_is_reported_and_damaged_replicas_are_not_believed() {
    let world = World::new(2);
    world.here.segments.write_at(1, 5000, b"damage").unwrap();
    world.there.segments.write_at(1, 90_000, b"damage").unwrap();
    let (_scrubber, report) = world.scrub(WEEK);
    assert_eq!((report.last.bad, report.last.repaired, report.damaged.len()), (1, 0, 1));
    assert_eq!(report.damaged[0].volume, VOLUME);
    assert_eq!(world.read(), None);
}

#[test]
fn a_damaged_index_is_found_while_it_is_served() {
    let world = World::new(4);
    world.here.kv.checkpoint().unwrap();
    let index = world.here.index.open("index").unwrap();
    let mut pages = vec![0; index.len().unwrap() as usize];
    index.read_at(0, &mut pages).unwrap();
    let at = pages.windows(8).rposition(|bytes| bytes == b"projects").unwrap();
    let partitions = Partitions::one(world.here.store.clone());
    let settings = ScrubSettings { every: WEEK, delay: Duration::from_secs(1), ..ScrubSettings::default() };
    let env = world.sim.env(world.here.node);
    let state = || partitions.states().remove(&PartitionId(0)).unwrap();
    let scrubber = Scrubber::start(&env, &partitions, None, settings);
    world.sim.run_for(Duration::from_secs(60));
    assert_eq!(state(), PartitionState::Online);
    index.write_at(at as u64, b"forgery!").unwrap();
    world.sim.run_for(WEEK + Duration::from_secs(60));
    let PartitionState::Failing(why) = state() else { panic!("it is not found") };
    assert!(why.contains("is damaged in the page at"), "{why}");
    assert_ne!(report(&scrubber).last.ended.0, 0, "the round goes on");
}

#[test]
fn rounds_follow_each_other_at_their_times_and_a_restart_does_not_begin_anew() {
    let world = World::new(3);
    let (scrubber, first) = world.scrub(WEEK);
    assert_ne!(first.last.ended.0, 0);
    world.sim.run_for(WEEK / 2);
    assert_eq!(report(&scrubber).last, first.last, "not before its time");
    let (another, kept) = world.scrub(WEEK);
    assert_eq!(kept.last, first.last, "known after a restart");
    world.sim.run_for(WEEK);
    assert!(report(&another).last.ended.0 >= first.last.ended.0 + WEEK.as_secs() as u32);
}
