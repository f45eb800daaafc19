//! Well-formed calls to every service, to be damaged by tests.

use afs_sim::SimRng;
use afs_wire::fs::{self, LockKind, Name, SetStatus};
use afs_wire::ids::{Fid, KindNumber, PartitionNumber, VolumeId};
use afs_wire::rpc::{ServiceId, encode_call};
use afs_wire::xdr::{BoundedVec, ByteString, Encode};
use afs_wire::{bos, cb, pt, vl, vol};

use super::damage::noise_up_to;

/// The called service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The file server.
    File,
    /// The location server.
    Location,
    /// The volume server.
    Volume,
    /// The voting service of the location server, for ubik's tools.
    Vote,
    /// The protection server.
    Protection,
    /// The overseer service of a host, for `bos`.
    Overseer,
    /// A client, called by a file server.
    Callback,
}

/// All services.
pub const SERVERS: [Server; 7] = [
    Server::File,
    Server::Location,
    Server::Volume,
    Server::Vote,
    Server::Protection,
    Server::Overseer,
    Server::Callback,
];

/// Ports of a cell's servers; any other port is a client's.
pub const SERVER_PORTS: [u16; 5] = [7000, 7002, 7003, 7005, 7007];

impl Server {
    /// Its port, with the well-known ports.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::File => 7000,
            Self::Callback => 7001,
            Self::Location | Self::Vote => 7003,
            Self::Volume => 7005,
            Self::Protection => 7002,
            Self::Overseer => 7007,
        }
    }

    /// Its service number.
    #[must_use]
    pub const fn service(self) -> ServiceId {
        match self {
            Self::File => ServiceId::FILE,
            Self::Callback => ServiceId::CALLBACK,
            Self::Location => ServiceId::LOCATION,
            Self::Vote => ServiceId::UBIK_VOTE,
            Self::Volume => ServiceId::VOLUME,
            Self::Protection => ServiceId::PROTECTION,
            Self::Overseer => ServiceId::OVERSEER,
        }
    }

    fn opcodes(self) -> Vec<u32> {
        let table = match self {
            Self::File => fs::OPCODES,
            Self::Callback => cb::OPCODES,
            Self::Location => vl::OPCODES,
            Self::Volume => vol::OPCODES,
            Self::Protection => pt::OPCODES,
            Self::Overseer => bos::OPCODES,
            // docs/protocol/vldb.md: the calls of the voting service are 10000 to 10008.
            Self::Vote => return (10_000..10_010).collect(),
        };
        table.iter().map(|row| row.0).collect()
    }
}

/// Calls to one service: those below, and every opcode with random arguments.
#[must_use]
pub fn calls_to(server: Server, rng: &mut SimRng, directory: Fid, file: Fid) -> Vec<Vec<u8>> {
    let mut calls = match server {
        Server::File => [names(directory, file), data(file), status(directory, file)].concat(),
        Server::Location => location(directory.volume),
        Server::Volume => volume(directory.volume),
        Server::Callback => callback(directory, file),
        Server::Vote | Server::Protection | Server::Overseer => Vec::new(),
    };
    for opcode in server.opcodes() {
        let mut call = Vec::new();
        opcode.encode(&mut call);
        call.extend(noise_up_to(rng, 300));
        calls.push(call);
    }
    calls
}

fn names(dir: Fid, existing: Fid) -> Vec<Vec<u8>> {
    let (name, new_name) = (Name::truncated(b"harmed"), Name::truncated(b"harmed-too"));
    let status = SetStatus { mode: Some(afs_wire::ids::Mode(0o644)), ..SetStatus::default() };
    let contents = ByteString::truncated(b"where/it/leads");
    vec![
        encode_call(&fs::CreateFile { dir, name: name.clone(), status }),
        encode_call(&fs::Rename {
            old_dir: dir,
            old_name: name.clone(),
            new_dir: dir,
            new_name: new_name.clone(),
        }),
        encode_call(&fs::Link { dir, name: name.clone(), existing }),
        encode_call(&fs::RemoveFile { dir, name: name.clone() }),
        encode_call(&fs::RemoveFile { dir, name: new_name.clone() }),
        encode_call(&fs::MakeDir { dir, name: name.clone(), status }),
        encode_call(&fs::RemoveDir { dir, name: name.clone() }),
        encode_call(&fs::Symlink { dir, name, contents, status }),
        encode_call(&fs::Lookup { dir, name: new_name }),
    ]
}

fn data(fid: Fid) -> Vec<Vec<u8>> {
    let status = SetStatus::default();
    let mut store =
        encode_call(&fs::StoreData64 { fid, status, position: 0, length: 5000, file_length: 5000 });
    store.extend((0..5000).map(|n: u32| n.to_be_bytes()[3]));
    let mut old = encode_call(&fs::StoreData { fid, status, position: 100, length: 9, file_length: 200 });
    old.extend_from_slice(b"nine byte");
    vec![
        store,
        old,
        encode_call(&fs::FetchData64 { fid, position: 0, length: 100_000 }),
        encode_call(&fs::FetchData { fid, position: 10, length: 1000 }),
    ]
}

fn status(directory: Fid, fid: Fid) -> Vec<Vec<u8>> {
    let fids = BoundedVec::first_of([directory, fid, directory]);
    let status = SetStatus { mode: Some(afs_wire::ids::Mode(0o600)), ..SetStatus::default() };
    let acl = ByteString::truncated(b"1\n0\nsystem:anyuser 127\n\0");
    vec![
        encode_call(&fs::FetchStatus { fid }),
        encode_call(&fs::InlineBulkStatus { fids: fids.clone() }),
        encode_call(&fs::BulkStatus { fids: fids.clone() }),
        encode_call(&fs::GiveUpCallBacks { fids, callbacks: BoundedVec::default() }),
        encode_call(&fs::StoreStatus { fid, status }),
        encode_call(&fs::FetchAcl { fid: directory }),
        encode_call(&fs::StoreAcl { fid: directory, acl }),
        encode_call(&fs::SetLock { fid, kind: LockKind::WRITE }),
        encode_call(&fs::ReleaseLock { fid }),
        encode_call(&fs::GetVolumeStatus { volume: directory.volume }),
        encode_call(&fs::GetCapabilities {}),
    ]
}

fn location(volume: VolumeId) -> Vec<Vec<u8>> {
    let name = || ByteString::truncated(b"root.cell");
    vec![
        encode_call(&vl::GetEntryByNameU { name: name() }),
        encode_call(&vl::GetEntryByNameN { name: name() }),
        encode_call(&vl::GetEntryByNameO { name: name() }),
        encode_call(&vl::GetEntryByIdN { volume, kind: KindNumber(0) }),
        encode_call(&vl::DeleteEntry { volume, kind: KindNumber(0) }),
        encode_call(&vl::GetAddrs { handle: 0, spare: 0 }),
        encode_call(&vl::GetAddrsU { query: vl::AddressQuery { mask: 2, index: 1, ..Default::default() } }),
        encode_call(&vl::ProbeServer {}),
        encode_call(&vl::GetStats {}),
    ]
}

fn volume(volume: VolumeId) -> Vec<Vec<u8>> {
    let partition = PartitionNumber(0);
    vec![
        encode_call(&vol::ListVolumes { partition, flags: 1 }),
        encode_call(&vol::XListOneVolume { partition, volume }),
        encode_call(&vol::ListPartitions {}),
        encode_call(&vol::NukeVolume { partition, volume }),
        encode_call(&vol::Monitor {}),
    ]
}

fn callback(directory: Fid, file: Fid) -> Vec<Vec<u8>> {
    let fids = BoundedVec::first_of([directory, file]);
    vec![
        encode_call(&cb::CallBack { fids, callbacks: BoundedVec::default() }),
        encode_call(&cb::InitCallBackState {}),
        encode_call(&cb::InitCallBackState3 { server: afs_wire::ids::Uuid([7; 16]) }),
        encode_call(&cb::Probe {}),
        encode_call(&cb::TellMeAboutYourself {}),
        encode_call(&cb::WhoAreYou {}),
        encode_call(&cb::GetCe { index: 0 }),
    ]
}
