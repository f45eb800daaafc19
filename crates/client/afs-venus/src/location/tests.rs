//! Tests of the locations alone: entries of the location service are given, no calls are made.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::{EnvRef, Instant, Rx, Security};
use afs_sim::Sim;
use afs_wire::ids::{CellName, UnixSeconds, Uuid, VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;

use super::*;
use crate::config::CellConfig;
use crate::identity::{Credentials, TokenId};
use crate::key::CellIndex;
use crate::promise::ServerReset;

const CELL: CellIndex = CellIndex(0);
const OTHER: CellIndex = CellIndex(1);
const VOLUME: VolumeId = VolumeId(7);
const DEAD: Duration = Duration::from_secs(12);

/// A client machine that knows no server yet.
struct Client {
    _sim: Sim,
    env: EnvRef,
    rx: Rx,
    location: Location,
}

fn client() -> Client {
    let sim = Sim::new(1);
    let node = sim.node("client", [10, 0, 0, 1].into());
    let env = sim.env(node);
    let here: SocketAddr = ([10, 0, 0, 1], 7001).into();
    let rx = sim.rx(node, env.clone(), here, afs_rx::Config::default(), afs_rpc::Limits::default());
    let cell = |name| {
        let name = CellName::new(name).unwrap();
        let config = CellConfig { name, location_servers: vec![at(9)], file_port: 7000, is_listed: true };
        Cell::new(&config, &env, &rx, DEAD)
    };
    let location = Location::new(vec![cell("home.cell"), cell("other.cell")]);
    Client { _sim: sim, env, rx, location }
}

fn at(last: u8) -> SocketAddr {
    ([10, 0, 0, last], 7000).into()
}

fn group(name: &str) -> Arc<Group> {
    let flags = EntryFlags::RW_EXISTS;
    Arc::new(Group { name: name.into(), ids: [VOLUME; 3], flags, sites: Vec::new() })
}

fn seconds(n: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(n)
}

impl Client {
    fn server(&self, cell: CellIndex, uuid: Option<Uuid>, unique: u32, lasts: &[u8]) -> Arc<Server> {
        let peers: Vec<SocketAddr> = lasts.iter().map(|last| at(*last)).collect();
        let make = |peer| Address::new(&self.rx, peer, DEAD);
        self.location.servers().learn(cell, uuid, unique, &peers, u64::from(lasts[0]), make).unwrap()
    }

    fn volume(&self, kind: VolumeKind, sites: Vec<Arc<Server>>) -> Arc<Volume> {
        self.location.volumes().learn(CELL, VOLUME, kind, group("v"), sites, self.env.now())
    }
}

#[test]
fn a_cell_is_found_by_its_name_in_upper_or_lower_case() {
    let location = client().location;
    assert_eq!(location.cell_named("Other.Cell"), Some(OTHER));
    assert_eq!(location.cell_named("third.cell"), None);
    assert_eq!(location.cell(OTHER).unwrap().name.as_str(), "other.cell");
    assert!(location.cell(CellIndex(2)).is_none());
}

#[test]
fn a_server_is_one_in_its_cell_whatever_its_addresses() {
    let client = client();
    let uuid = Some(Uuid::default());
    let server = client.server(CELL, uuid, 1, &[2, 3]);
    let kept = server.addresses().into_iter().find(|address| address.peer == at(3)).unwrap();
    let again = client.server(CELL, uuid, 2, &[3, 4]);
    assert!(Arc::ptr_eq(&server, &again));
    assert!(again.addresses().iter().any(|address| Arc::ptr_eq(address, &kept)));
    assert!(again.addresses().iter().all(|address| address.peer != at(2)));
    let servers = client.location.servers();
    assert!(servers.current(CELL, Uuid::default(), 1).is_none());
    assert!(servers.current(CELL, Uuid::default(), 2).is_some());
    // Another cell cannot redirect it.
    let stranger = client.server(OTHER, uuid, 1, &[5]);
    assert!(!Arc::ptr_eq(&server, &stranger));
    assert_eq!((servers.by_uuid(Uuid::default()).len(), servers.all().len()), (2, 2));
    assert!(Arc::ptr_eq(&servers.by_address(at(4))[0], &server));
}

#[test]
fn servers_of_a_cell_are_bounded_and_so_are_their_addresses() {
    let client = client();
    let named = |n: usize| Some(Uuid((n as u128).to_be_bytes()));
    let learn = |cell, n, peers: &[SocketAddr]| {
        let make = |peer| Address::new(&client.rx, peer, DEAD);
        client.location.servers().learn(cell, named(n), 1, peers, 0, make)
    };
    let many: Vec<SocketAddr> = (1..100).map(at).collect();
    assert_eq!(learn(CELL, 0, &many).unwrap().addresses().len(), 32);
    assert!((1..1024).all(|n| learn(CELL, n, &[at(7)]).is_some()));
    assert!(learn(CELL, 1024, &[at(7)]).is_none(), "one too many");
    assert!(learn(CELL, 5, &[at(8)]).is_some() && learn(OTHER, 1024, &[at(7)]).is_some());
}

#[test]
fn connections_of_tokens_to_an_address_are_bounded() {
    let client = client();
    let address = Address::new(&client.rx, at(2), DEAD);
    for id in (1..=1000).map(TokenId) {
        address.connection(&client.rx, &Credentials { id, security: Security::null() });
        assert!(address.connections() <= 256);
    }
}

#[test]
fn cells_and_ranks_are_bounded() {
    let client = client();
    let add = |n: usize| {
        let name = CellName::new(&format!("cell{n}.org")).unwrap();
        let config = CellConfig { name, location_servers: vec![at(9)], file_port: 7000, is_listed: true };
        client.location.add(Cell::new(&config, &client.env, &client.rx, DEAD)).is_some()
    };
    assert_eq!((0..1100).filter(|n| add(*n)).count(), 1022, "two were there");
    assert!(add(5), "it is there already");
    let ip = |n: u32| std::net::IpAddr::from(std::net::Ipv4Addr::from_bits(n));
    let servers = client.location.servers();
    assert_eq!((0..2000).filter(|n| servers.set_rank(ip(*n), Some(7))).count(), 1024);
    assert!(servers.set_rank(ip(5), None) && servers.set_rank(ip(3000), Some(7)));
}

#[test]
fn the_addresses_that_a_server_had_do_not_add_up() {
    let client = client();
    for last in 2..200 {
        client.server(CELL, Some(Uuid::default()), last.into(), &[last, 1]);
    }
    let servers = client.location.servers();
    let known = (0..=255).filter(|last| !servers.by_address(at(*last)).is_empty());
    assert_eq!(known.collect::<Vec<u8>>(), [1, 199]);
}

#[test]
fn groups_are_bounded_and_the_one_asked_for_longest_ago_goes() {
    let (client, most) = (client(), 4096);
    let volumes = client.location.volumes();
    let remember = |n: u64| volumes.remember_group(CELL, &n.to_string(), group("v"), seconds(n), 0);
    (0..=most).for_each(remember);
    assert!(volumes.group(CELL, "0").is_none());
    assert!(volumes.group(CELL, "1").is_some() && volumes.group(CELL, &most.to_string()).is_some());
}

#[test]
fn volumes_that_nobody_uses_are_bounded() {
    let (client, volumes) = (client(), VolumeTable::with_room(10));
    let learn = |n: u32| {
        let sites = vec![client.server(CELL, None, 0, &[2])];
        let volume = volumes.learn(CELL, VolumeId(n), VolumeKind::ReadWrite, group("v"), sites, seconds(0));
        volumes.shrink(|_, id| id.0 % 100 == 0);
        volume
    };
    let held = learn(7);
    held.broken.store(5, Ordering::SeqCst);
    (1000..2000).for_each(|n| drop(learn(n)));
    assert!(volumes.all().len() <= 2 * 12, "{}", volumes.all().len());
    assert_eq!(volumes.get(CELL, VolumeId(7)).unwrap().broken.load(Ordering::SeqCst), 5, "a task has it");
    assert!((1000..2000).step_by(100).all(|n| volumes.get(CELL, VolumeId(n)).is_some()), "they are in use");
}

#[test]
fn a_volume_has_one_entry_and_only_its_new_sites_after_a_move() {
    let client = client();
    let (first, second) = (client.server(CELL, None, 0, &[2]), client.server(CELL, None, 0, &[3]));
    let volume = client.volume(VolumeKind::ReadWrite, vec![first.clone()]);
    assert!(Arc::ptr_eq(&volume, &client.volume(VolumeKind::ReadWrite, vec![second.clone()])));
    assert!(volume.is_at(&first.reset) && !volume.is_at(&second.reset));
    assert!(!volume.relocate(group("v"), vec![first.clone()], seconds(1)));
    assert!(volume.relocate(group("v"), vec![second.clone()], seconds(2)));
    assert!(volume.is_at(&second.reset) && !volume.is_at(&first.reset));
    assert_eq!(volume.located_at(), seconds(2));
    assert!(!volume.is_at(&ServerReset::default()));
}

#[test]
fn one_caller_claims_a_location_check_and_it_is_due_again_without_result() {
    let client = client();
    let volume = client.volume(VolumeKind::ReadWrite, Vec::new());
    assert!(!volume.claim_location_check(seconds(1), seconds(31)));
    volume.doubt_location();
    assert!(
        volume.claim_location_check(seconds(1), seconds(31))
            && !volume.claim_location_check(seconds(1), seconds(31))
    );
    assert!(
        !volume.claim_location_check(seconds(30), seconds(60))
            && volume.claim_location_check(seconds(31), seconds(61))
    );
    volume.relocate(group("v"), Vec::new(), seconds(40));
    assert!(!volume.claim_location_check(seconds(100), seconds(130)));
}

#[test]
fn another_creation_time_is_another_volume() {
    let client = client();
    let volume = client.volume(VolumeKind::ReadOnly, Vec::new());
    assert!(!volume.note_creation(UnixSeconds(5)) && !volume.note_creation(UnixSeconds(5)));
    assert!(volume.note_creation(UnixSeconds(6)));
    assert_eq!(volume.creation(), Some(UnixSeconds(6)));
}

#[test]
fn a_group_is_remembered_until_it_is_recalled() {
    let client = client();
    let volumes = client.location.volumes();
    let before = volumes.recalls();
    volumes.remember_group(CELL, "v", group("v"), seconds(10), before);
    assert!(volumes.group(CELL, "v").is_some_and(|(_, asked)| asked == seconds(10)));
    assert!(volumes.group(OTHER, "v").is_none());
    volumes.forget_groups();
    assert!(volumes.group(CELL, "v").is_none());
    volumes.remember_group(CELL, "v", group("v"), seconds(11), before);
    assert!(volumes.group(CELL, "v").is_none(), "the reply may be older than the recall");
}
