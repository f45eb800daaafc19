//! Tests of the data path over real sockets: a running server, and a client of its calls and of its drive.

use crate::configuration::options::ServerOptions;
use crate::configuration::ports::Ports;
use crate::control::{ControlReply, ControlRequest};
use crate::servers::{DataPathState, DriveCounts, Servers};
use afs_datapath::capability::{ByteRange, Capability, Refusal, Secret};
use afs_datapath::session::{self, Fingerprint, Patience, StoreDescription};
use afs_net::{System, Udp};
use afs_rpc::{CallError, Caller, Connection, Table};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Capabilities, CapabilityAccess, SetStatus};
use afs_wire::ids::{CellName, DataVersion, Fid, Uuid};
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::vl;
use afs_wire::xdr::{Decode, Fixed};
use bytes::Bytes;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

const CLIENT: Uuid = Uuid([9; 16]);

/// A cell with its server, and a client that has its key.
struct Cell {
    system: Arc<System>,
    servers: Servers,
    client: Udp,
    ports: Ports,
    _state: tempfile::TempDir,
}

/// Eight ports in a row that nothing uses now.
fn free_ports() -> Ports {
    loop {
        let first = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let base = first.local_addr().unwrap().port();
        let others = base.checked_add(7).map(|last| base + 1..=last).into_iter().flatten();
        let rest: Result<Vec<_>, _> =
            others.map(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port))).collect();
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, base));
        if tcp.is_ok() && rest.is_ok_and(|rest| rest.len() == 7) {
            return Ports::from(base);
        }
    }
}

/// What a client tells a file server that asks who it is.
fn callbacks() -> Table<()> {
    Table::new(ServiceId::CALLBACK, Arc::new(()))
        .call::<cb::CallBack, _, _, AbortCode>(|_, _: Caller, _| async { Ok(()) })
        .call::<cb::InitCallBackState3, _, _, AbortCode>(|_, _: Caller, _| async { Ok(()) })
        .call::<cb::TellMeAboutYourself, _, _, AbortCode>(|_, _: Caller, _| async {
            let addresses = InterfaceAddr { uuid: CLIENT, ..InterfaceAddr::default() };
            Ok(cb::TellMeAboutYourselfReply { addresses, capabilities: Capabilities::first_of([1]) })
        })
}

impl Cell {
    fn start(ports: Ports) -> Self {
        let state = tempfile::tempdir().unwrap();
        let system = System::with_workers(2).unwrap();
        let cell = CellName::new("andrew.local").unwrap();
        let options = ServerOptions::alone(state.path(), cell, Ipv4Addr::LOCALHOST, ports);
        std::fs::create_dir_all(state.path().join("vicepa")).unwrap();
        let servers = Servers::start(&system, &options).unwrap();
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let client = Udp::bind(&system, at, afs_rx::Config::default()).unwrap();
        client.rx().listen(Arc::new(callbacks())).unwrap();
        Self { system, servers, client, ports, _state: state }
    }

    /// Calls with the cell's key, so that the server needs no credentials to call back.
    fn connection(&self, service: ServiceId, port: u16) -> Connection {
        let security = self.servers.security.of_servers();
        self.client.rx().connection(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), service, security)
    }

    fn ask<R: Request>(&self, connection: &Connection, request: &R) -> Result<R::Reply, CallError> {
        self.system.block_on(connection.call(request))
    }

    fn root(&self) -> Fid {
        let name = vl::NameText::new(b"root.cell".as_slice()).unwrap();
        let locations = self.connection(ServiceId::LOCATION, self.ports.location());
        let entry = self.ask(&locations, &vl::GetEntryByNameN { name }).unwrap().entry;
        Fid::root(entry.ids[0])
    }

    /// As the owner reads them from the control socket.
    fn drive_counts(&self) -> DriveCounts {
        let reply = (self.servers.handler())(0, ControlRequest::DataPath);
        let ControlReply::Done(json) = reply else { panic!("{reply:?}") };
        let counts: Option<DriveCounts> = serde_json::from_slice(&json).unwrap();
        counts.unwrap()
    }

    fn stop(self) {
        self.client.shutdown();
        self.servers.stop();
    }
}

/// A capability for a file at the server's own drive.
fn capability(cell: &Cell, files: &Connection, fid: Fid, access: u32) -> fs::DriveCapability {
    let wanted = fs::CapabilityRequest { fid, access: CapabilityAccess(access), drive: fs::OWN_DRIVE };
    let request = fs::GetCapability { wanted: fs::CapabilityRequests::first_of([wanted]) };
    cell.ask(files, &request).unwrap().outcomes.into_vec().remove(0).into_capability().unwrap()
}

/// The bytes of a read.
async fn all_of(mut arriving: session::Arriving) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(piece) = arriving.next().await.unwrap() {
        read.extend_from_slice(&piece);
    }
    read
}

#[test]
fn a_file_is_stored_and_read_over_tcp() {
    let cell = Cell::start(free_ports());
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, cell.ports.file()));
    assert_eq!(cell.servers.data_path(), DataPathState::At(here));
    let files = cell.connection(ServiceId::FILE, cell.ports.file());
    let name = fs::Name::new(b"f".as_slice()).unwrap();
    let made = fs::CreateFile { dir: cell.root(), name, status: SetStatus::default() };
    let fid = cell.ask(&files, &made).unwrap().fid;
    let told = cell.ask(&files, &fs::DataPath {}).unwrap();
    let given = capability(&cell, &files, fid, 3);
    let content: Bytes = (0..5_000_000u32).map(|at| (at * 7 + at / 256) as u8).collect::<Vec<_>>().into();
    let (env, sent) = (cell.system.env(), content.clone());
    let (path, handle, ticket) = cell.system.block_on(async move {
        let stream = env.connect(SocketAddr::new(here.ip(), told.port)).await.unwrap();
        let security = session::Security::Tls(Fingerprint(told.fingerprint.0));
        let path = session::Client::open(env, stream, security, Patience::default()).await.unwrap();
        let arguments = Capability::from_bytes(&given.arguments).unwrap();
        let handle = path.present(&arguments, &Secret::new(given.secret.0)).unwrap();
        let all = ByteRange::new(0, sent.len() as u64).unwrap();
        let description = StoreDescription::new(fid, 0, vec![all]).unwrap();
        let mut leaving = path.store(&handle, &description).await.unwrap();
        leaving.put(sent).await.unwrap();
        (path, handle, leaving.finish().await.unwrap())
    });
    let (staged, status, expected) = (Fixed(ticket.0.to_be_bytes()), SetStatus::default(), fs::ANY_VERSION);
    let (file_length, grown_to, drives, places) = (0, 0, 0, 0);
    let commit = fs::Commit { staged, fid, status, expected, file_length, grown_to, drives, places };
    let version = cell.ask(&files, &commit).unwrap().status.data_version;
    let first = ByteRange::new(0, 1).unwrap();
    let (path, read) = cell.system.block_on(async move {
        let read = all_of(path.read(&handle, fid, ByteRange::ALL, version).await.unwrap()).await;
        // What the drive has sent is counted when its next answer is there.
        all_of(path.read(&handle, fid, first, version).await.unwrap()).await;
        (path, read)
    });
    assert!(read == content);
    let counts = cell.drive_counts();
    // Until here, so that the connection is open when it is counted.
    drop(path);
    assert_eq!((counts.connections, counts.connections_accepted), (1, 1));
    assert_eq!((counts.reads, counts.stores), (2, 1));
    assert_eq!(counts.received_bytes, 5_000_000);
    // The last byte is here before the drive's task has counted it and is at its end.
    assert!(matches!(counts.sent_bytes, 5_000_000 | 5_000_001) && counts.requests <= 1, "{counts:?}");
    assert_eq!((counts.refused.len(), counts.refused.values().sum::<u64>()), (8, 0));
    cell.stop();
}

#[test]
fn refusals_and_revocations_are_counted_for_the_owner() {
    let cell = Cell::start(free_ports());
    let files = cell.connection(ServiceId::FILE, cell.ports.file());
    let name = fs::Name::new(b"f".as_slice()).unwrap();
    let root = cell.root();
    let fid =
        cell.ask(&files, &fs::CreateFile { dir: root, name, status: SetStatus::default() }).unwrap().fid;
    let told = cell.ask(&files, &fs::DataPath {}).unwrap();
    let given = capability(&cell, &files, fid, 1);
    let before = cell.drive_counts();
    assert_eq!((before.connections_accepted, before.refused["forged"]), (0, 0));
    let acl = fs::AclText::new(b"1\n0\nsystem:anyuser\t9\n\0".as_slice()).unwrap();
    cell.ask(&files, &fs::StoreAcl { fid: root, acl }).unwrap();
    let (env, arguments) = (cell.system.env(), Capability::from_bytes(&given.arguments).unwrap());
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, told.port));
    let refused = cell.system.block_on(async move {
        let stream = env.connect(here).await.unwrap();
        let security = session::Security::Tls(Fingerprint(told.fingerprint.0));
        let path = session::Client::open(env, stream, security, Patience::default()).await.unwrap();
        let mut refused = Vec::new();
        for secret in [[0; 32], given.secret.0] {
            let handle = path.present(&arguments, &Secret::new(secret)).unwrap();
            let read = path.read(&handle, fid, ByteRange::ALL, DataVersion(1)).await;
            refused.push(read.err());
        }
        refused
    });
    let wanted = [Refusal::Forged, Refusal::Revoked].map(|why| Some(session::Error::Failed(why.into())));
    assert_eq!(refused, wanted);
    let counts = cell.drive_counts();
    // A capability that is refused when it is presented is refused again when it is used.
    assert_eq!((counts.refused["forged"], counts.refused["revoked"]), (2, 1));
    assert!(counts.revocations > before.revocations && counts.reads == 0, "{counts:?}");
    cell.stop();
}

/// Another program has the port.
#[test]
fn a_server_whose_port_is_taken_serves_by_calls_and_says_so() {
    let ports = free_ports();
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, ports.file())).unwrap();
    let cell = Cell::start(ports);
    let DataPathState::Failed(why) = cell.servers.data_path() else { panic!("it is not taken") };
    assert!(why.contains(&ports.file().to_string()), "{why}");
    let files = cell.connection(ServiceId::FILE, ports.file());
    let told = cell.ask(&files, &fs::DataPath {}).map(drop);
    assert_eq!(told.unwrap_err().abort_code(), Some(AbortCode::RXGEN_OPCODE));
    let root = cell.ask(&files, &fs::FetchStatus { fid: cell.root() });
    assert!(root.is_ok());
    cell.stop();
}
