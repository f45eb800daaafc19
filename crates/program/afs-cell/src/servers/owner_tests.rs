//! Tests of the owner's connections against senders that know their numbers, over real sockets.

use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::servers::security::{ADMIN_NAME, CellSecurity};
use afs_auth::rxgk::CallbackOffer;
use afs_net::{System, Udp};
use afs_rpc::{
    BoxFuture, Caller, Connection, Identity, Level, Person, Principal, ServerCall, Service, Terms,
    TokenGeneration,
};
use afs_rx::packet::{HEADER_LEN, Header, PacketType, flags};
use afs_wire::ids::{CellName, Uuid};
use afs_wire::rpc::ServiceId;
use bytes::Bytes;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SERVICE: ServiceId = ServiceId(1);

/// A service that records each complete request and its caller.
#[derive(Default)]
struct Recorder(Mutex<Vec<(Caller, Bytes)>>);

impl Recorder {
    fn callers(&self) -> Vec<Caller> {
        self.0.lock().unwrap().iter().map(|(caller, _)| caller.clone()).collect()
    }
}

impl Service for Recorder {
    fn id(&self) -> ServiceId {
        SERVICE
    }

    fn serve(self: Arc<Self>, mut call: ServerCall) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Ok(request) = call.read_to_end(1 << 16).await {
                self.0.lock().unwrap().push((call.caller().clone(), request.clone()));
                let _ = call.write(request).await;
                let _ = call.finish().await;
            }
        })
    }
}

/// A server with the cell's security classes, and the owner's connections to it.
struct Cell {
    system: Arc<System>,
    security: CellSecurity,
    recorder: Arc<Recorder>,
    server: Udp,
    owner: Udp,
    _state: tempfile::TempDir,
}

impl Cell {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let system = System::with_workers(2).unwrap();
        let cell = CellName::new("andrew.local").unwrap();
        let options = ServerOptions::alone(state.path(), cell, Ipv4Addr::LOCALHOST, Ports::from(7000));
        let security = CellSecurity::open(&system, &options).unwrap();
        let bind = || {
            let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            Udp::bind(&system, at, afs_rx::Config::default()).unwrap()
        };
        let (server, owner) = (bind(), bind());
        let recorder = Arc::new(Recorder::default());
        server.rx().listen_with(recorder.clone(), security.classes()).unwrap();
        Self { system, security, recorder, server, owner, _state: state }
    }

    fn mount(&self) -> Connection {
        let offer = CallbackOffer::new(Uuid([7; 16]), &self.system.env()).unwrap();
        let security = self.security.owner(Arc::new(offer));
        self.owner.rx().connection(self.server.local_addr(), SERVICE, security)
    }

    fn control(&self) -> Connection {
        let security = self.security.of_person(Person::of_user(1000, Some("alice")));
        self.owner.rx().connection(self.server.local_addr(), SERVICE, security)
    }

    fn ask(&self, connection: &Connection, request: &'static [u8]) -> Bytes {
        self.system.block_on(async {
            let mut call = connection.begin(Bytes::from_static(request), true).await.unwrap();
            call.read_to_end(1 << 16).await.unwrap()
        })
    }
}

/// Sends a whole request on the connection of `caller`, on each channel, with the next call number.
fn forge(stranger: &UdpSocket, server: SocketAddr, caller: &Caller) {
    for (channel, number) in [(0, 2), (1, 1), (2, 1), (3, 1)] {
        let header = Header {
            epoch: caller.connection.epoch,
            cid: caller.connection.cid + channel,
            call: number,
            seq: 1,
            serial: 100 + channel,
            kind: PacketType::DATA,
            flags: flags::CLIENT_INITIATED | flags::LAST_PACKET | flags::REQUEST_ACK,
            user_status: 0,
            security_index: caller.security_index,
            checksum: 0,
            service: SERVICE.0,
        };
        stranger.send_to(&[&header.to_bytes()[..], b"forged"].concat(), server).unwrap();
    }
}

/// Types of the packets that the attacker receives until none has arrived for a while.
fn heard(stranger: &UdpSocket) -> Vec<PacketType> {
    stranger.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut buffer = [0; 2048];
    let mut kinds = Vec::new();
    while let Ok(len) = stranger.recv(&mut buffer) {
        assert!(len >= HEADER_LEN);
        kinds.extend(Header::decode(&buffer[..len]).map(|header| header.kind));
    }
    kinds
}

#[test]
fn a_stranger_with_the_numbers_of_the_owners_connection_makes_no_call() {
    let cell = Cell::new();
    let mount = cell.mount();
    assert_eq!(&cell.ask(&mount, b"mine")[..], b"mine");
    let caller = cell.recorder.callers().remove(0);
    let terms = Terms { generation: TokenGeneration::OF_KEY, ..Terms::default() };
    let admin = Principal::Named { name: ADMIN_NAME.into(), cell: None, terms };
    assert_eq!(caller.identity.principal(), Some(&admin));
    let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).unwrap();
    forge(&stranger, cell.server.local_addr(), &caller);
    let kinds = heard(&stranger);
    assert!(!kinds.contains(&PacketType::DATA), "a reply reached the stranger: {kinds:?}");
    assert_eq!(&cell.ask(&mount, b"again")[..], b"again");
    let requests: Vec<Bytes> =
        cell.recorder.0.lock().unwrap().iter().map(|(_, asked)| asked.clone()).collect();
    assert_eq!(requests, [&b"mine"[..], b"again"]);
}

#[test]
fn every_packet_of_the_owner_and_of_the_control_socket_is_protected() {
    let cell = Cell::new();
    cell.ask(&cell.mount(), b"mount");
    cell.ask(&cell.control(), b"control");
    let levels: Vec<_> =
        cell.recorder.callers().iter().map(|caller| caller.identity.protection().level).collect();
    assert_eq!(levels, [Level::Auth, Level::Crypt]);
    let control = cell.recorder.callers().remove(1);
    assert_eq!(control.identity.principal(), Some(&Principal::CellKey));
    assert_ne!(control.identity, Identity::Local);
}

#[test]
fn a_person_at_the_control_socket_is_in_the_calls_and_a_server_names_nobody() {
    let cell = Cell::new();
    cell.ask(&cell.control(), b"control");
    let peer = cell.server.local_addr();
    cell.ask(&cell.owner.rx().connection(peer, SERVICE, cell.security.of_servers()), b"server");
    cell.ask(&cell.mount(), b"mount");
    let callers = cell.recorder.callers();
    let people: Vec<_> = callers.iter().map(|caller| caller.identity.person().map(Person::as_str)).collect();
    assert_eq!(people, [Some("1000 alice"), None, None]);
    assert_eq!(callers[0].identity.principal(), callers[1].identity.principal());
}
