//! Tests of the bounds of a server's data path, with connections to drives that serve bytes.

use std::net::SocketAddr;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Revocations, TicketId,
};
use afs_datapath::session::{self, Drive, DriveLimits, Failure, Objects, Opened, Pieces, Security, Taken};
use afs_rpc::BoxFuture;
use afs_sim::{NodeId, Sim};
use afs_wire::ids::{CellName, DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use bytes::Bytes;

use super::super::capabilities::Given;
use super::super::connect::DriveContent;
use super::*;
use crate::config::CellConfig;
use crate::key::CellIndex;
use crate::location::{Address, Cell, Location};

const HOUR: Duration = Duration::from_secs(3600);
const FID: Fid = Fid::new(VolumeId(7), VnodeId(2), Uniquifier(1));
const BYTES: &[u8] = b"of the file";
const RANGE: ByteRange = ByteRange::ALL;

/// A drive whose files all have the same bytes.
struct Same;

impl Objects for Same {
    fn read(&self, _: session::ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>> {
        let length = BYTES.len() as u64;
        Box::pin(async move { Ok(Opened { file_length: length, length, pieces: Box::new(Same) }) })
    }

    fn store(&self, _: session::StoreRequest, _: Taken) -> BoxFuture<'static, Result<TicketId, Failure>> {
        Box::pin(async { Err(Failure::NoObject) })
    }
}

impl Pieces for Same {
    fn next(&mut self, _: usize) -> BoxFuture<'_, Result<Bytes, Failure>> {
        Box::pin(async { Ok(Bytes::from_static(BYTES)) })
    }
}

/// A client machine, which knows a file server, and drives that are told by it.
struct Kit {
    sim: Sim,
    client: NodeId,
    path: Arc<ServerPath>,
}

impl Kit {
    fn new() -> Self {
        let sim = Sim::new(1);
        let client = sim.node("client", [10, 0, 0, 1].into());
        let env = sim.env(client);
        let here: SocketAddr = ([10, 0, 0, 1], 7001).into();
        let rx = sim.rx(client, env.clone(), here, afs_rx::Config::default(), afs_rpc::Limits::default());
        let peer: SocketAddr = ([10, 0, 0, 2], 7000).into();
        let name = CellName::new("home.cell").unwrap();
        let cell = CellConfig { name, location_servers: vec![peer], file_port: 7000, is_listed: true };
        let location = Location::new(vec![Cell::new(&cell, &env, &rx, HOUR)]);
        let make = |peer| Address::new(&rx, peer, HOUR);
        let server = location.servers().learn(CellIndex(0), None, 1, &[peer], 0, make).unwrap();
        let config = DataPathConfig { allow_clear: true, ..DataPathConfig::default() };
        let common = Arc::new(Common { env, config, counters: Arc::default(), objects: None });
        Kit { sim, client, path: Arc::new(ServerPath::new(server, common)) }
    }

    /// A connection to a drive of its own, which is served from now on.
    fn link(&self, n: u8) -> Arc<Link> {
        let at: SocketAddr = ([10, 0, 1, n], 7005).into();
        let env = self.sim.env(self.sim.node(&format!("drive{n}"), at.ip()));
        let drive = Drive::new(key(n), Revocations::default(), Arc::new(Same), DriveLimits::default());
        let listener = env.listen(at).unwrap();
        env.spawn(Box::pin(session::accept(env.clone(), listener, session::Offer::clear(), drive)));
        let drive = key(n).drive();
        let offer = Offer { drive, security: Security::Clear, addresses: vec![at], minimum_size: 0 };
        let common = self.path.common.clone();
        self.run(async move {
            let opened = common.connect(&offer, DriveContent::Files, None).await;
            let (session, _) = opened.map_err(Fallback::name).unwrap();
            Arc::new(Link::new(offer, session, common.env.now()))
        })
    }

    fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.sim.block_on(self.client, HOUR, work).unwrap()
    }

    /// Reads by a capability over a connection.
    fn reads(&self, link: &Arc<Link>, given: Given, now: Instant) {
        let link = link.clone();
        let read = self.run(async move {
            let handle = link.handle(&given, now).unwrap();
            let mut arriving = link.session.read(&handle, FID, RANGE, DataVersion(1)).await.unwrap();
            arriving.next().await.unwrap()
        });
        assert_eq!(read.as_deref(), Some(BYTES));
    }

    fn is_open(&self, token: u64, link: &Arc<Link>) -> bool {
        matches!(self.path.route(TokenId(token)), Route::Link(open) if Arc::ptr_eq(&open, link))
    }

    fn is_to_be_opened(&self, token: u64) -> bool {
        matches!(self.path.route(TokenId(token)), Route::Open)
    }

    fn told(&self) -> usize {
        self.path.state.lock().told.len()
    }
}

fn key(n: u8) -> DriveKey {
    DriveKey::new(DriveId(n.into()), KeyEpoch(1), [n; 32])
}

/// The nth capability at the nth drive.
fn given(drive: u8, number: u64) -> Given {
    let capability = Capability {
        drive: key(drive).drive(),
        epoch: key(drive).epoch(),
        group: Group::File(FID),
        access: Access::READ | Access::ANY_MODE,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Revocations::default().generation(Group::File(FID)),
        holder: key(drive).holder(b"host", &number.to_be_bytes()),
    };
    let secret = key(drive).seal(&capability);
    Given { number, capability, secret, asked: Instant::ZERO, ends: Instant::ZERO + HOUR }
}

#[test]
fn of_more_tokens_than_are_remembered_the_oldest_is_to_ask_again() {
    let kit = Kit::new();
    let link = kit.link(1);
    for token in 1..=300 {
        assert!(kit.is_to_be_opened(token));
        kit.path.opened(TokenId(token), link.clone());
        assert!(kit.told() <= 256);
    }
    assert!(kit.is_open(45, &link) && kit.is_open(300, &link));
    assert!(kit.is_to_be_opened(44));
    kit.path.opened(TokenId(44), link.clone());
    assert!(kit.is_open(44, &link));
}

#[test]
fn tokens_that_gave_way_while_they_asked_do_not_add_up() {
    let kit = Kit::new();
    let link = kit.link(1);
    assert!((1..=300).all(|token| kit.is_to_be_opened(token)));
    (1..=300).for_each(|token| kit.path.opened(TokenId(token), link.clone()));
    assert!(kit.told() <= 256 && kit.is_open(300, &link));
}

#[test]
fn connections_to_drives_are_bounded_and_whose_went_is_to_ask_again() {
    let kit = Kit::new();
    let links: Vec<_> = (1..=5).map(|n| kit.link(n)).collect();
    for (link, token) in links.iter().zip(1..) {
        assert!(kit.is_to_be_opened(token));
        kit.path.opened(TokenId(token), link.clone());
        assert!(kit.is_open(token, link) && kit.path.state.lock().links.len() <= 4);
        kit.reads(link, given(token as u8, token), Instant::ZERO);
    }
    assert!(kit.is_to_be_opened(1));
    kit.path.opened(TokenId(1), links[0].clone());
    kit.reads(&links[0], given(1, 1), Instant::ZERO);
    assert!((3..=5).all(|token| kit.is_open(token, &links[token as usize - 1])));
    assert!(kit.is_to_be_opened(2));
}

#[test]
fn capabilities_on_a_connection_are_bounded_and_the_one_unused_for_longest_is_presented_again() {
    let kit = Kit::new();
    let link = kit.link(1);
    let at = |n: u64| Instant::ZERO + Duration::from_secs(n);
    let first = link.handle(&given(1, 1), at(1)).unwrap();
    // The drive takes 1,024: those that gave way were withdrawn there.
    for n in 2..=1100 {
        link.handle(&given(1, n), at(n)).unwrap();
        // It stays in use.
        let again = link.handle(&given(1, 1), at(n)).unwrap();
        assert_eq!(format!("{again:?}"), format!("{first:?}"));
        assert!(link.presented() <= 256);
    }
    kit.reads(&link, given(1, 1100), at(1100));
    kit.reads(&link, given(1, 2), at(1100));
    assert!(link.lost().is_none());
}
