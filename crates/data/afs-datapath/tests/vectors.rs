//! The test vector of docs/protocol/data-path.md.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Generation, Group, KeyEpoch, Nonce, Nonces, Proof,
    Refusal, StreamName, TicketId,
};
use afs_datapath::frame::{
    Decoder, Event, Goodbye, HandleNumber, Hello, Message, Presented, RequestId, StoreDescription, VERSION,
    Welcome, encode_data,
};
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
use afs_wire::vol::TransactionId;
use afs_wire::xdr::Encode;
use bytes::BytesMut;

const PAGE: &str = include_str!("../../../../docs/protocol/data-path.md");
const NONCES: Nonces = Nonces { drive: Nonce([0x11; 32]), client: Nonce([0x22; 32]) };

/// Name and hexadecimal digits of each entry of the vector.
fn vector() -> BTreeMap<String, String> {
    let section = PAGE.split("\n## 8. Test vector\n").nth(1).unwrap();
    let block = section.split("```").nth(1).unwrap();
    let mut entries = BTreeMap::new();
    let mut latest = String::new();
    for line in block.lines().filter(|line| !line.is_empty()) {
        let (name, digits) = line.split_at(11);
        if !name.trim().is_empty() {
            latest = name.trim().to_owned();
        }
        entries.entry(latest.clone()).or_insert_with(String::new).push_str(digits.trim());
    }
    entries
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key() -> DriveKey {
    DriveKey::new(DriveId(0xd1), KeyEpoch(5), std::array::from_fn(|at| at as u8))
}

fn fid(vnode: u32, unique: u32) -> Fid {
    Fid::new(VolumeId(536_870_913), VnodeId(vnode), Uniquifier(unique))
}

fn capability() -> Capability {
    Capability {
        drive: DriveId(0xd1),
        epoch: KeyEpoch(5),
        group: Group::Directory(fid(1, 1)),
        access: Access::READ | Access::WRITE,
        range: ByteRange::ALL,
        expires: 1_800_000_000,
        generation: Generation(4),
        holder: key().holder(b"host", b"identity"),
    }
}

fn stream() -> StreamName {
    StreamName { volume: VolumeId(536_870_913), transaction: TransactionId(3), number: 9 }
}

fn stream_capability() -> Capability {
    Capability { group: Group::Stream(stream()), access: Access::WRITE, ..capability() }
}

fn proof() -> Proof {
    Proof::new(&capability(), &key().seal(&capability()), &NONCES)
}

/// A message of each kind, with its name.
fn messages() -> Vec<(&'static str, Message)> {
    let (handle, request, second) = (HandleNumber(0), RequestId(1), RequestId(2));
    let (range, version) = (ByteRange::new(10, 30).unwrap(), DataVersion(3));
    let welcome = Welcome {
        version: VERSION,
        nonce: NONCES.drive,
        drive: DriveId(0xd1),
        epoch: KeyEpoch(5),
        requests_max: 32,
        handles_max: 1024,
        store_credit: 524_288,
    };
    let description = StoreDescription::new(fid(2, 7), 4096, vec![ByteRange::new(0, 5).unwrap()]).unwrap();
    let shown = HandleNumber(1);
    let stream_proof = Proof::new(&stream_capability(), &key().seal(&stream_capability()), &NONCES);
    let stream_read = Message::Read {
        request: RequestId(3),
        handle: shown,
        fid: stream().fid(),
        range: ByteRange::ALL,
        version: DataVersion(0),
        credit: 2 << 20,
    };
    let ticket = TicketId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    vec![
        ("Hello", Message::Hello(Hello { version: VERSION, nonce: NONCES.client })),
        ("Welcome", Message::Welcome(welcome)),
        ("Present", Message::Present { handle, capability: capability(), proof: Presented(proof()) }),
        ("Withdraw", Message::Withdraw { handle }),
        ("Read", Message::Read { request, handle, fid: fid(2, 7), range, version, credit: 20 }),
        ("Announce", Message::Announce { request, length: 5, file_length: 15 }),
        ("Credit", Message::Credit { request, bytes: 524_288 }),
        ("Store", Message::Store { request: second, handle, description }),
        ("Stored", Message::Stored { request: second, ticket }),
        ("Failed", Message::Failed { request, failure: Refusal::Revoked.into() }),
        ("Cancel", Message::Cancel { request }),
        ("Alive", Message::Alive),
        ("Goodbye", Message::Goodbye(Goodbye::Done)),
        (
            "StreamShow",
            Message::Present {
                handle: shown,
                capability: stream_capability(),
                proof: Presented(stream_proof),
            },
        ),
        ("StreamRead", stream_read),
        (
            "StreamSend",
            Message::Store {
                request: RequestId(4),
                handle: shown,
                description: StoreDescription::of_stream(stream()),
            },
        ),
        ("StreamEnd", Message::Announce { request: RequestId(4), length: 5, file_length: 0 }),
    ]
}

#[test]
fn secrets_and_proofs_are_those_of_the_page() {
    let vector = vector();
    let capability = capability();
    assert_eq!(hex(&capability.holder.to_bytes()), vector["holder"]);
    assert_eq!(hex(&capability.to_bytes()), vector["capability"]);
    assert_eq!(hex(key().seal(&capability).expose()), vector["secret"]);
    assert_eq!(hex(&proof().0), vector["proof"]);
}

#[test]
fn frames_equal_the_test_vectors() {
    let mut vector = vector();
    for (name, message) in messages() {
        assert_eq!(hex(&message.to_frame()), vector.remove(name).unwrap(), "{name}");
        let mut frame = BytesMut::from(&message.to_frame()[..]);
        assert_eq!(Decoder::default().next(&mut frame), Ok(Some(Event::Message(message))), "{name}");
    }
    let data = [&encode_data(RequestId(1), 5)[..], b"bytes"].concat();
    assert_eq!(hex(&data), vector.remove("Data").unwrap());
    let left: Vec<_> = vector.keys().map(String::as_str).collect();
    assert_eq!(left, ["capability", "holder", "proof", "secret"]);
}
