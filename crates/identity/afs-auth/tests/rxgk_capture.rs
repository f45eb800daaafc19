//! Our server against a captured exchange between an rxgk client and OpenAFS's vlserver: it accepts what that server
//! accepted, refuses with the same code what that refused, and every packet that either sent opens.
//! `docs/protocol/rxgk.md` "10.2 From a real `vos -localauth -rxgk` run".

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::pcapng;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_auth::Secret;
use afs_auth::crypto::{EncType, OpenKey};
use afs_auth::keys::{CellKey, KeyKind, KeyRing, SharedKeys};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{
    Authenticator, ConnectionSeed, PacketKeys, Response, RxgkServer, RxgkTime, Variant, code, open_token,
};
use afs_rpc::{Credential, Level, Parts, Principal};
use afs_rx::packet::{Header, PacketType, Packets, flags};
use afs_rx::{Cid, Epoch, Instant, PacketContext, Proof, SecurityError, ServerSecurity, ServerSession, Side};
use bytes::Bytes;

const CAPTURE: &[u8] = include_bytes!("../../../calls/afs-rx/tests/data/rxgk-master-vlserver.pcapng");
/// When it was made.
const WHEN: RxgkTime = RxgkTime(0x003f_c76f_a93b_3f8e);
/// Sent by the client as if its level were another: not meant to open.
const WRONG_LEVEL: (u32, u32) = (0x8f67_c850, 0x3c33_60a8);

fn cell_keys() -> KeyRing {
    let secret = Secret::new((0x60..0x80).collect());
    let mut keys = KeyRing::default();
    keys.add(CellKey { kind: KeyKind::Rxgk, kvno: 5, enctype: 18, secret }).unwrap();
    keys
}

/// The packets of each connection, in order.
fn connections() -> BTreeMap<(u32, u32), Vec<(Header, Bytes)>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for datagram in pcapng::datagrams(CAPTURE) {
        for (header, payload) in Packets::new(datagram.payload.into()).unwrap() {
            if header.security_index == Variant::OpenAfs.index() {
                all.entry((header.epoch, header.cid & !3)).or_default().push((header, payload));
            }
        }
    }
    all
}

struct Server {
    session: Box<dyn ServerSession>,
    outcome: Option<Result<(), SecurityError>>,
}

impl Server {
    fn new() -> Self {
        let env = Parts::default().with_wall(|| WHEN.expiry().unwrap()).shared();
        let names = Arc::new(LocalNames::of_cell("example.org"));
        let keys = SharedKeys::new(cell_keys());
        let mut class = RxgkServer::new(Variant::OpenAfs, keys, names, env, Level::Clear);
        Self { session: class.accept(), outcome: None }
    }

    /// Challenges with the nonce that the real server chose.
    fn challenge(&mut self, nonce: &[u8]) {
        let mut first = true;
        let asked = self.session.challenge(Instant::ZERO, &mut |out| {
            if std::mem::take(&mut first) {
                out.copy_from_slice(nonce);
            }
        });
        assert_eq!(asked, nonce);
    }

    fn verify(&mut self, header: &Header, payload: &[u8]) {
        let proof = Proof {
            now: Instant::ZERO,
            epoch: Epoch(header.epoch),
            cid: Cid::of(header.cid),
            service: header.service,
            checksum: header.checksum,
            payload,
        };
        self.outcome = Some(self.session.verify(&proof).map(|_| ()));
    }

    fn principal(&self) -> Option<Principal> {
        let identity = self.session.identity()?;
        identity.downcast_ref::<Credential>().map(|credential| credential.principal.clone())
    }
}

fn context(header: &Header) -> PacketContext {
    PacketContext {
        epoch: Epoch(header.epoch),
        cid_and_channel: header.cid,
        call: header.call,
        seq: header.seq,
        service: header.service,
        security_index: header.security_index,
        from_client: header.has(flags::CLIENT_INITIATED),
        checksum: header.checksum,
    }
}

fn number(payload: &[u8]) -> i32 {
    i32::from_be_bytes(payload.try_into().unwrap())
}

#[test]
fn our_server_decides_as_openafs_did() {
    let (mut opened, mut verified, mut refused) = (0, 0, BTreeMap::new());
    for (key, packets) in connections() {
        let mut server = Server::new();
        let mut waiting = Vec::new();
        for (header, payload) in &packets {
            match (header.kind, header.has(flags::CLIENT_INITIATED)) {
                (PacketType::DATA, true) => waiting.push((header, payload)),
                (PacketType::CHALLENGE, _) => server.challenge(payload),
                (PacketType::RESPONSE, _) => server.verify(header, payload),
                (PacketType::ABORT, _) => {
                    let code = number(payload);
                    *refused.entry(code).or_insert(0) += 1;
                    let ours = match server.outcome {
                        Some(Err(error)) => error,
                        _ => {
                            let (header, payload) = waiting.pop().unwrap();
                            server.session.open(&context(header), payload.clone()).unwrap_err()
                        }
                    };
                    assert_eq!(ours.code, code, "{key:x?}");
                }
                (PacketType::DATA, false) => {
                    // It replied, so it accepted everything before.
                    assert_eq!(server.outcome, Some(Ok(())), "{key:x?}");
                    for (header, payload) in waiting.drain(..) {
                        let data = server.session.open(&context(header), payload.clone()).unwrap();
                        assert_eq!(number(&data[..4]), 515, "an opcode of the location server");
                        opened += 1;
                    }
                }
                _ => {}
            }
        }
        verified += u32::from(server.outcome == Some(Ok(())));
    }
    assert_eq!((opened, verified), (20, 14));
    let codes = [code::BAD_KEY_NUMBER, code::BAD_CHALLENGE, code::NO_SUCH_KEY, code::EXPIRED];
    let more = [code::INCONSISTENCY, code::SEALED_INCONSISTENT];
    assert_eq!(refused, codes.into_iter().chain(more).map(|error| (error.code, 1)).collect());
}

#[test]
fn the_captured_handshakes_prove_the_recorded_identities() {
    let mut seen = BTreeMap::new();
    for packets in connections().into_values() {
        let mut server = Server::new();
        for (header, payload) in &packets {
            match header.kind {
                PacketType::CHALLENGE => server.challenge(payload),
                PacketType::RESPONSE => server.verify(header, payload),
                _ => {}
            }
        }
        if let Some(principal) = server.principal() {
            *seen.entry(principal.to_string()).or_insert(0) += 1;
        }
    }
    assert_eq!(seen.remove("(cell key)"), Some(13));
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[test]
fn every_packet_of_both_ends_opens() {
    let (mut opened, mut refused) = (0, Vec::new());
    for (key, packets) in connections() {
        let response = packets.iter().find(|(header, _)| header.kind == PacketType::RESPONSE);
        let (_, response) = response.expect("every client answered");
        let response = Response::decode(response).unwrap();
        let token = match open_token(Variant::OpenAfs, &response.token, &cell_keys()) {
            Ok(token) => token,
            Err(error) => {
                refused.push(error);
                continue;
            }
        };
        let seed = ConnectionSeed { epoch: Epoch(key.0), cid: Cid::of(key.1), start: response.start };
        for (header, payload) in packets.iter().filter(|(header, _)| header.kind == PacketType::DATA) {
            let number = u32::from(header.checksum);
            let transport = token.key.transport_key(&seed, number).unwrap();
            let side = if header.has(flags::CLIENT_INITIATED) { Side::Server } else { Side::Client };
            let keys = PacketKeys::new(token.level, &transport, side).unwrap();
            let data = keys.open(&context(header), payload.clone());
            assert_eq!(data.is_ok(), key != WRONG_LEVEL, "{key:x?} {header:?}");
            opened += u32::from(data.is_ok());
        }
    }
    // Of the invalid tokens these two fail to open.
    assert_eq!((opened, refused), (52, vec![code::NO_SUCH_KEY, code::SEALED_INCONSISTENT]));
}

/// The keys that the vectors of the real run name.
#[test]
fn transport_keys_of_the_real_run() {
    let samples = [
        (0x83f6_0991, 0xef46_bb20, "f0ff2efbde3f0d91200710f2b9abee026b6e018d802fc6939acd3444e8adb6de"),
        (0x9205_e549, 0x8eee_70d0, "ee97dfadebf0d5ee10e77a9455910da447baa9415857fa3581bd74a3e8148a2f"),
    ];
    let connections = connections();
    for (epoch, cid, expected) in samples {
        let packets = &connections[&(epoch, cid)];
        let (_, response) = packets.iter().find(|(header, _)| header.kind == PacketType::RESPONSE).unwrap();
        assert_eq!(response.len(), 204);
        let response = Response::decode(response).unwrap();
        let token = open_token(Variant::OpenAfs, &response.token, &cell_keys()).unwrap();
        assert_eq!((token.lifetime.seconds, token.lifetime.bytelife), (36000, 30));
        assert!(token.expires == RxgkTime::NEVER && token.identities.is_empty());
        let seed = ConnectionSeed { epoch: Epoch(epoch), cid: Cid::of(cid), start: response.start };
        let transport = token.key.transport_key(&seed, 0).unwrap();
        let hex: String = transport.secret().expose().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected);
        let proof = Authenticator::open(&transport, &response.authenticator).unwrap();
        assert_eq!((proof.epoch, proof.cid, proof.call_numbers), (epoch, cid, [1, 0, 0, 0]));
        let wrong = OpenKey::new(EncType::Aes256Sha1, transport.secret().expose(), 1031).unwrap();
        assert!(wrong.open_in_place(&mut response.authenticator.clone()).is_err());
    }
}
