//! Lies about the meaning of replies, and what is always told in place of where the server is.

use std::net::Ipv4Addr;

use afs_sim::SimRng;
use afs_testkit::relay::{Liar, Lie};
use afs_wire::fs;
use afs_wire::rpc::{self, Opcode, Request, ServiceId};
use afs_wire::xdr::{BoundedVec, Encode};
use bytes::Bytes;

use super::at_drives;
use super::statements::{Part, rewritten};

/// A liar about a server, of which clients are told the relay's address.
pub fn liar(seed: u64, server: Ipv4Addr, relay: Ipv4Addr) -> Liar {
    let falsified = |rng: &mut SimRng, lie, kind: (ServiceId, Opcode), reply: &Bytes| {
        rewritten(kind.0, kind.1, reply, &mut |part| falsify(rng, lie, part))
    };
    let passed = move |service, opcode, reply: Bytes| match service {
        ServiceId::LOCATION => redirected(&reply, server, relay),
        _ => with_data_at(server, opcode, reply),
    };
    Liar::new(seed).falsifying(falsified).passing(passed)
}

/// A reply with the relay in the place of the server.
fn redirected(reply: &[u8], server: Ipv4Addr, relay: Ipv4Addr) -> Bytes {
    let (server, relay) = (server.octets(), relay.octets());
    let (words, rest) = reply.as_chunks::<4>();
    let word = |word: &[u8; 4]| if *word == server { relay } else { *word };
    words.iter().flat_map(word).chain(rest.iter().copied()).collect()
}

/// Falsifies a part of a reply, if the lie is about such a part.
fn falsify(rng: &mut SimRng, lie: Lie, part: Part<'_>) {
    use afs_wire::ids::{DataVersion, Rights, Uniquifier, VnodeId, VolumeId};
    match (lie, part) {
        (Lie::OtherFid, Part::Fid(fid)) => {
            let (volume, vnode, unique) = (fid.volume.0, fid.vnode.0, fid.unique.0);
            fid.volume = VolumeId(*rng.pick(&[volume, volume, volume + 1, 0, u32::MAX]).unwrap());
            fid.vnode = VnodeId(*rng.pick(&[vnode, 1, 2, 3, 4, 0, u32::MAX]).unwrap());
            fid.unique = Uniquifier(*rng.pick(&[unique, 1, 2, 3, 0, u32::MAX]).unwrap());
        }
        (Lie::OtherFid, Part::Status(status)) => {
            status.parent = VnodeId(*rng.pick(&[1, 2, 0, u32::MAX]).unwrap());
            status.parent_unique = Uniquifier(*rng.pick(&[1, 2, 0, u32::MAX]).unwrap());
        }
        (Lie::OtherType, Part::Status(status)) => status.kind = *rng.pick(&KINDS).unwrap(),
        (Lie::OtherLength, Part::Status(status)) => status.length = *rng.pick(&LENGTHS).unwrap(),
        (Lie::OtherLength, Part::Count(count)) => *count = *rng.pick(&LENGTHS).unwrap(),
        (Lie::OtherVersion, Part::Status(status)) => {
            let version = status.data_version.0;
            let others = [0, 1, version.saturating_sub(1), version + 1, version + 90, u64::MAX];
            status.data_version = DataVersion(*rng.pick(&others).unwrap());
        }
        (Lie::OtherRights, Part::Status(status)) => {
            status.caller_access = Rights(*rng.pick(&[0, 0x7f, u32::MAX]).unwrap());
            status.anonymous_access = Rights(*rng.pick(&[0, 0x7f, u32::MAX]).unwrap());
        }
        (Lie::OtherPromise, Part::Promise(promise)) => {
            promise.expires_in = *rng.pick(&[0, 1, i32::MAX as u32, 1 << 31, u32::MAX]).unwrap();
        }
        (Lie::OtherVolume, Part::Volume(volume)) => {
            *volume = VolumeId(*rng.pick(&[volume.0 + 1, volume.0 + 3, 0, u32::MAX]).unwrap());
        }
        (Lie::OtherAddress, Part::Address(address)) => *address = *rng.pick(&ADDRESSES).unwrap(),
        (lie, Part::AtDrive(part)) => at_drives::falsify(rng, lie, part),
        _ => {}
    }
}

/// Streams of the data path do not go through the relay: what tells of it says where they lead.
fn with_data_at(server: Ipv4Addr, opcode: Opcode, reply: Bytes) -> Bytes {
    match rpc::decode_reply::<fs::DataPath>(&reply) {
        Ok(path) if opcode.0 == fs::DataPath::OPCODE => {
            let addresses = BoundedVec::first_of([server]);
            fs::DataPathReply { addresses, ..path }.to_bytes().into()
        }
        _ => reply,
    }
}

const LENGTHS: [u64; 10] =
    [0, 1, 4095, 200_001, 1 << 31, 1 << 32, 1 << 44, i64::MAX as u64, 1 << 63, u64::MAX];
const KINDS: [fs::FileKind; 4] =
    [fs::FileKind::File, fs::FileKind::Directory, fs::FileKind::Symlink, fs::FileKind::Invalid];
/// This machine, nobody, everybody, many, a neighbour that is no server, the client itself.
const ADDRESSES: [Ipv4Addr; 7] = [
    Ipv4Addr::LOCALHOST,
    Ipv4Addr::UNSPECIFIED,
    Ipv4Addr::BROADCAST,
    Ipv4Addr::new(224, 0, 0, 1),
    Ipv4Addr::new(10, 0, 9, 9),
    Ipv4Addr::new(10, 0, 0, 11),
    Ipv4Addr::new(240, 1, 1, 1),
];
