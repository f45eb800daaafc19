//! Captured packets of OpenAFS: every response verified with the cell's key, every DATA packet opened with the
//! session key and sealed again, and every refusal repeated. docs/protocol/rxkad.md "13. Worked example" describes
//! each capture.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support::pcapng;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_auth::Secret;
use afs_auth::keys::{CellKey, KeyKind, KeyRing, SharedKeys};
use afs_auth::names::LocalNames;
use afs_auth::rxkad::{RxkadLimits, RxkadServer, RxkadToken, SessionKey, TicketFormat, ticket};
use afs_rpc::{Credential, EnvRef, Level, Parts, Principal, Terms, UnixTime};
use afs_rx::packet::{Header, PacketType, Packets, flags};
use afs_rx::{
    Challenge, Cid, ClientSecurity, Epoch, Instant, PacketContext, Proof, ServerSecurity, ServerSession,
    Verified,
};
use bytes::Bytes;

/// When the captures were made.
const WHEN: UnixTime = UnixTime { secs: 1_795_219_020, nanos: 0 };

/// OpenAFS's code for a ticket that is not DER: from its ASN.1 library.
const NOT_DER: i32 = 1_859_794_438;
const BAD_TICKET: i32 = 19_270_407;

fn keys() -> KeyRing {
    let mut keys = KeyRing::default();
    let secret = Secret::new((0..32).collect());
    keys.add(CellKey { kind: KeyKind::RxkadKrb5, kvno: 7, enctype: 18, secret }).unwrap();
    keys
}

fn env() -> EnvRef {
    Parts::default().with_wall(|| WHEN).shared()
}

fn server() -> RxkadServer {
    let names = Arc::new(LocalNames::of_cell("example.org"));
    RxkadServer::new(SharedKeys::new(keys()), names, env(), RxkadLimits::default())
}

fn context(header: &Header) -> PacketContext {
    PacketContext {
        epoch: Epoch(header.epoch),
        cid_and_channel: header.cid,
        call: header.call,
        seq: header.seq,
        service: header.service,
        security_index: header.security_index,
        from_client: header.flags & flags::CLIENT_INITIATED != 0,
        checksum: header.checksum,
    }
}

/// An observer between a client and a server of OpenAFS, with the cell's key.
struct Listener {
    server: Box<dyn ServerSession>,
    client: Option<Box<dyn ClientSecurity>>,
    challenge: Bytes,
    waiting: Vec<(Header, Bytes)>,
    refusal: Option<i32>,
}

#[derive(Default, PartialEq, Eq, Debug)]
struct Found {
    opened: usize,
    accepted: Vec<(Principal, Level)>,
    refused: Vec<i32>,
}

impl Listener {
    fn new() -> Self {
        let server = server().accept();
        Self { server, client: None, challenge: Bytes::new(), waiting: Vec::new(), refusal: None }
    }

    fn hear(&mut self, header: Header, payload: Bytes, found: &mut Found) {
        match header.kind {
            PacketType::CHALLENGE => {
                let nonce = payload.get(4..8).unwrap_or_default();
                let mine = self.server.challenge(Instant::ZERO, &mut |out| out.copy_from_slice(nonce));
                // The old challenge is shorter; no client responded to it.
                assert!(mine == payload || payload.len() == 8);
                self.challenge = payload;
            }
            PacketType::RESPONSE => self.verify(&header, &payload, found),
            PacketType::DATA => self.waiting.push((header, payload)),
            PacketType::ABORT if header.call == 0 => {
                let code = i32::from_be_bytes(payload.as_ref().try_into().unwrap());
                let code = if code == NOT_DER { BAD_TICKET } else { code };
                assert_eq!(self.refusal, Some(code), "{header:?}");
                found.refused.push(code);
            }
            _ => {}
        }
        if self.client.is_some() {
            std::mem::take(&mut self.waiting)
                .iter()
                .for_each(|(header, payload)| self.open(header, payload, found));
        }
    }

    fn verify(&mut self, header: &Header, payload: &[u8], found: &mut Found) {
        let (epoch, cid) = (Epoch(header.epoch), Cid::of(header.cid));
        let (service, checksum) = (header.service, header.checksum);
        let proof = Proof { now: Instant::ZERO, epoch, cid, service, checksum, payload };
        match self.server.verify(&proof) {
            Ok(verified) => {
                let who = self.server.identity().unwrap().downcast::<Credential>().unwrap();
                found.accepted.push((who.principal.clone(), who.protection.level));
                self.answer_again(&proof, verified, who.protection.level);
            }
            Err(error) => self.refusal = Some(error.code),
        }
    }

    /// Our client with the same ticket responds with the same bytes.
    fn answer_again(&mut self, proof: &Proof<'_>, verified: Verified, level: Level) {
        let kvno = u32::from_be_bytes(proof.payload[48..52].try_into().unwrap());
        let ticket = &proof.payload[56..];
        let part = ticket::open(kvno, ticket, &keys()).unwrap();
        let key = SessionKey::from_kerberos(part.keytype, part.key.expose()).unwrap();
        let format = TicketFormat::from_number(kvno).unwrap();
        let token = RxkadToken::new(format, ticket, key, None).unwrap().with_level(level);
        let mut client = token.source(env()).session();
        let challenge = Challenge {
            now: Instant::ZERO,
            epoch: proof.epoch,
            cid: proof.cid,
            service: proof.service,
            payload: &self.challenge,
            call_numbers: verified.call_numbers.unwrap(),
        };
        assert_eq!(client.respond(&challenge).unwrap().payload, proof.payload);
        self.client = Some(client);
    }

    fn open(&mut self, header: &Header, payload: &Bytes, found: &mut Found) {
        let context = context(header);
        let data = match self.server.open(&context, payload.clone()) {
            Ok(data) => data,
            Err(error) => {
                self.refusal = Some(error.code);
                return;
            }
        };
        found.opened += 1;
        if context.from_client && header.seq == 1 {
            let opcode = u32::from_be_bytes(data[..4].try_into().unwrap());
            assert!((100..100_000).contains(&opcode), "{opcode} is no opcode");
        }
        let client = self.client.as_mut().unwrap();
        let mut sealed = vec![0; client.overhead().header];
        sealed.extend_from_slice(&data);
        // The bytes after the data are garbage in OpenAFS, and zeros here.
        let comparable = sealed.len() & !7;
        let checksum = client.seal(&PacketContext { checksum: 0, ..context }, &mut sealed).unwrap();
        assert_eq!((checksum, &sealed[..comparable]), (header.checksum, &payload[..comparable]));
    }
}

fn listen(file: &[u8]) -> Found {
    let mut connections = BTreeMap::new();
    let mut found = Found::default();
    for datagram in pcapng::datagrams(file) {
        for (header, payload) in Packets::new(datagram.payload.into()).unwrap() {
            if header.security_index == 2 {
                let connection =
                    connections.entry((header.epoch, Cid::of(header.cid))).or_insert_with(Listener::new);
                connection.hear(header, payload, &mut found);
            }
        }
    }
    found
}

/// Packets opened, and the connections of the cell itself at these levels.
fn of_the_cell(opened: usize, levels: &[Level]) -> Found {
    let accepted = levels.iter().map(|level| (Principal::CellKey, *level)).collect();
    Found { opened, accepted, refused: Vec::new() }
}

#[test]
fn vos_in_clear() {
    let found = listen(include_bytes!("../../../calls/afs-rx/tests/data/vos-clear.pcapng"));
    assert_eq!(found, of_the_cell(2, &[Level::Clear]));
}

#[test]
fn vos_encrypted_over_three_connections() {
    let found = listen(include_bytes!("../../../calls/afs-rx/tests/data/vos-crypt.pcapng"));
    assert_eq!(found, of_the_cell(19, &[Level::Crypt; 3]));
}

#[test]
fn a_dump_encrypted() {
    let found = listen(include_bytes!("../../../calls/afs-rx/tests/data/dump-crypt.first60.pcapng"));
    assert_eq!(found, of_the_cell(34, &[Level::Crypt; 2]));
}

#[test]
fn all_levels_all_tickets_and_their_errors() {
    let found = listen(include_bytes!("../../../calls/afs-rx/tests/data/rxkad-levels-tickets.pcapng"));
    let admin =
        || Principal::Named { name: "admin".into(), cell: Some("rx.test".into()), terms: Terms::default() };
    let both = |level| [(Principal::CellKey, level), (admin(), level)];
    let more = [(admin(), Level::Crypt), (admin(), Level::Crypt)];
    let accepted = [both(Level::Clear), both(Level::Auth), both(Level::Crypt), more].concat();
    // An unknown key, an expired ticket, a name with a dot, a ticket that is not DER.
    let refused = vec![19_270_408, 19_270_409, BAD_TICKET, BAD_TICKET];
    assert_eq!(found, Found { opened: 24, accepted, refused });
}

#[test]
fn broken_checksums_and_nonces() {
    let found = listen(include_bytes!("../../../calls/afs-rx/tests/data/rxkad-errors.pcapng"));
    assert_eq!(found.refused, [19_270_410, 19_270_410, 19_270_404]);
    assert_eq!((found.opened, found.accepted.len()), (4, 2));
}
