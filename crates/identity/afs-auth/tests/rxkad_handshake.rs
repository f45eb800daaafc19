//! A server's endpoint against hand-made packets: repeated, replayed, changed, or meaningless.

// The script is that of afs-rx.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::sync::Arc;

use afs_auth::Secret;
use afs_auth::keys::{CellKey, KeyKind, KeyRing, SharedKeys};
use afs_auth::names::LocalNames;
use afs_auth::rxkad::{RxkadLimits, RxkadServer, RxkadToken, local_token, ticket};
use afs_rpc::{EnvRef, Level, Parts, UnixTime};
use afs_rx::packet::{Header, PacketType, flags};
use afs_rx::{
    CallId, Challenge, Cid, ClientSecurity, Config, DropReason, Epoch, Event, Instant, PacketContext, Proof,
    ServerSecurity,
};
use bytes::Bytes;
use proptest::prelude::*;
use support::script::{CID, EPOCH, SERVICE, Script, from_client};

const SEALED_INCONSISTENT: i32 = 19_270_410;

fn keys() -> KeyRing {
    let mut keys = KeyRing::default();
    for (enctype, len) in [(18, 32), (17, 16), (19, 16), (20, 32), (23, 16)] {
        let secret = Secret::new(vec![7; len]);
        keys.add(CellKey { kind: KeyKind::RxkadKrb5, kvno: 7, enctype, secret }).unwrap();
    }
    keys
}

fn env() -> EnvRef {
    Parts::default().with_wall(|| UnixTime { secs: 1_000_000_000, nanos: 0 }).shared()
}

fn server() -> RxkadServer {
    server_with(RxkadLimits::default())
}

fn server_with(limits: RxkadLimits) -> RxkadServer {
    let names = Arc::new(LocalNames::of_cell("example.org"));
    RxkadServer::new(SharedKeys::new(keys()), names, env(), limits)
}

fn token(level: Level) -> RxkadToken {
    let env = Parts::default()
        .with_random(|bytes| bytes.iter_mut().zip(3..).for_each(|(byte, value)| *byte = value))
        .shared();
    local_token(&keys(), &env, level).unwrap()
}

/// A hand-made client and the server's endpoint.
struct Pair {
    script: Script,
    client: Box<dyn ClientSecurity>,
    serial: u32,
    cid: u32,
}

impl Pair {
    fn new(level: Level) -> Self {
        Self::with(level, Level::Clear)
    }

    fn with(level: Level, minimum: Level) -> Self {
        let mut script = Script::new(Config::default());
        script.end.listen(SERVICE, vec![Box::new(server_with(RxkadLimits { minimum }))]).unwrap();
        Self { script, client: token(level).source(env()).session(), serial: 0, cid: CID }
    }

    fn header(&mut self, kind: PacketType, call: u32) -> Header {
        self.serial += 1;
        let seq = u32::from(kind == PacketType::DATA);
        let flags = if kind == PacketType::DATA { flags::LAST_PACKET } else { 0 };
        Header { security_index: 2, cid: self.cid, ..from_client(kind, call, seq, self.serial, flags) }
    }

    /// A whole request on a channel, sealed.
    fn request(&mut self, channel: u32, call: u32, data: &[u8]) -> (Header, Vec<u8>) {
        let header = self.header(PacketType::DATA, call);
        let header = Header { cid: header.cid + channel, ..header };
        let context = PacketContext {
            epoch: Epoch(EPOCH),
            cid_and_channel: header.cid,
            call,
            seq: 1,
            service: SERVICE,
            security_index: 2,
            from_client: true,
            checksum: 0,
        };
        let mut payload = vec![0; self.client.overhead().header];
        payload.extend_from_slice(data);
        let checksum = self.client.seal(&context, &mut payload).unwrap();
        (Header { checksum, ..header }, payload)
    }

    fn give(&mut self, (header, payload): &(Header, Vec<u8>)) {
        self.script.give(*header, payload);
    }

    fn challenge(&mut self) -> Bytes {
        let challenge = self.script.sent_one();
        assert_eq!(challenge.header.kind, PacketType::CHALLENGE);
        challenge.payload
    }

    fn answer(&mut self, challenge: &[u8], call_numbers: [u32; 4]) -> (Header, Vec<u8>) {
        let asked = Challenge {
            now: Instant::ZERO,
            epoch: Epoch(EPOCH),
            cid: Cid(self.cid),
            service: SERVICE,
            payload: challenge,
            call_numbers,
        };
        let payload = self.client.respond(&asked).unwrap().payload;
        (self.header(PacketType::RESPONSE, 0), payload)
    }

    /// The first call, through the handshake; and the response that did it.
    fn begin(&mut self, call_numbers: [u32; 4]) -> (CallId, (Header, Vec<u8>)) {
        let request = self.request(0, call_numbers[0], b"request");
        self.give(&request);
        let challenge = self.challenge();
        let response = self.answer(&challenge, call_numbers);
        self.give(&response);
        (self.script.incoming(), response)
    }

    fn read(&mut self, call: CallId) -> Vec<u8> {
        self.script.read_all(call).0
    }

    /// The code of the connection's abort.
    fn abort(&mut self) -> i32 {
        let sent: Vec<_> = self.script.wait_ms(1500).into_iter().map(|(_, sent)| sent).collect();
        let abort = sent.iter().find(|sent| sent.header.kind == PacketType::ABORT).expect("an abort");
        assert_eq!(abort.header.call, 0, "the connection is aborted");
        abort.abort()
    }

    /// Both are sent from another address: nothing of them may reach the application.
    fn refused(&mut self, response: &(Header, Vec<u8>)) -> i32 {
        self.give(response);
        let code = self.abort();
        assert!(!self.script.events().iter().any(|event| matches!(event, Event::IncomingCall { .. })));
        code
    }
}

#[test]
fn a_repeated_response_changes_nothing() {
    for level in [Level::Clear, Level::Auth, Level::Crypt] {
        let mut pair = Pair::new(level);
        let (call, response) = pair.begin([1, 0, 0, 0]);
        pair.give(&response);
        pair.give(&(response.0, vec![0; 60]));
        assert_eq!(pair.script.end.stats().drops(DropReason::UnwantedResponse), 2);
        assert_eq!(pair.read(call), b"request");
        let next = pair.request(1, 1, b"another");
        pair.give(&next);
        let call = pair.script.incoming();
        assert_eq!(pair.read(call), b"another");
    }
}

#[test]
fn older_calls_than_the_client_names_are_not_replayed() {
    let mut pair = Pair::new(Level::Crypt);
    pair.begin([5, 9, 0, 0]);
    let old = pair.request(1, 7, b"replayed");
    pair.give(&old);
    assert_eq!(pair.script.end.stats().drops(DropReason::OldCall), 1);
    assert_eq!(pair.script.events(), []);
}

#[test]
fn all_challenges_of_a_connection_take_the_same_answer() {
    let mut pair = Pair::new(Level::Crypt);
    let request = pair.request(0, 1, b"request");
    pair.give(&request);
    let first = pair.challenge();
    let later: Vec<_> = pair.script.wait_ms(4500).into_iter().map(|(_, sent)| sent).collect();
    let challenges: Vec<_> = later.iter().filter(|sent| sent.header.kind == PacketType::CHALLENGE).collect();
    assert!(challenges.len() == 2 && challenges.iter().all(|again| again.payload == first));
    let response = pair.answer(&first, [1, 0, 0, 0]);
    pair.give(&response);
    let call = pair.script.incoming();
    assert_eq!(pair.read(call), b"request");
}

#[test]
fn a_response_to_another_challenge_is_out_of_sequence() {
    let mut pair = Pair::new(Level::Clear);
    let request = pair.request(0, 1, b"request");
    pair.give(&request);
    let mut other = pair.challenge().to_vec();
    other[7] ^= 1;
    let response = pair.answer(&other, [1, 0, 0, 0]);
    assert_eq!(pair.refused(&response), 19_270_404);
}

#[test]
fn a_client_that_overlooks_the_least_level_is_refused() {
    let mut pair = Pair::with(Level::Auth, Level::Crypt);
    let request = pair.request(0, 1, b"request");
    pair.give(&request);
    let mut overlooked = pair.challenge().to_vec();
    assert_eq!(overlooked[8..], [0, 0, 0, 2, 0, 0, 0, 0]);
    overlooked[11] = 0;
    let response = pair.answer(&overlooked, [1, 0, 0, 0]);
    assert_eq!(pair.refused(&response), 19_270_402);
}

#[test]
fn call_numbers_below_zero_are_no_call_numbers() {
    let mut pair = Pair::new(Level::Clear);
    let request = pair.request(0, 1, b"request");
    pair.give(&request);
    let challenge = pair.challenge();
    let response = pair.answer(&challenge, [1, 0, 0x8000_0000, 0]);
    assert_eq!(pair.refused(&response), SEALED_INCONSISTENT);
}

#[test]
fn a_response_of_another_connection_is_worth_nothing() {
    let mut pair = Pair::new(Level::Clear);
    let request = pair.request(0, 1, b"request");
    pair.give(&request);
    let challenge = pair.challenge();
    pair.cid += 4;
    let (header, payload) = pair.answer(&challenge, [1, 0, 0, 0]);
    pair.cid -= 4;
    let moved = (Header { cid: pair.cid, ..header }, payload);
    assert_eq!(pair.refused(&moved), SEALED_INCONSISTENT);
}

#[test]
fn any_changed_byte_of_a_response_is_noticed() {
    let len = {
        let mut pair = Pair::new(Level::Crypt);
        pair.begin([1, 0, 0, 0]).1.1.len()
    };
    for at in 0..len {
        let mut pair = Pair::new(Level::Crypt);
        let request = pair.request(0, 1, b"request");
        pair.give(&request);
        let challenge = pair.challenge();
        let (header, mut payload) = pair.answer(&challenge, [1, 0, 0, 0]);
        payload[at] ^= 0x40;
        let code = pair.refused(&(header, payload));
        assert!((19_270_400..=19_270_412).contains(&code), "byte {at}: {code}");
    }
}

#[test]
fn what_is_cut_short_is_refused() {
    for len in [0, 8, 16, 55, 56, 87, 100, 209] {
        let mut pair = Pair::new(Level::Crypt);
        let request = pair.request(0, 1, b"request");
        pair.give(&request);
        let challenge = pair.challenge();
        let (header, payload) = pair.answer(&challenge, [1, 0, 0, 0]);
        let code = pair.refused(&(header, payload[..len].to_vec()));
        let expected = if len < 56 { 19_270_401 } else { 19_270_403 };
        assert_eq!(code, expected, "{len}");
    }
}

/// A forged packet comes first, then the client's own again: only the latter is read.
fn forged_then_genuine(pair: &mut Pair, forged: &(Header, Vec<u8>), genuine: &(Header, Vec<u8>)) {
    pair.give(forged);
    let call = pair.script.incoming();
    assert_eq!(pair.read(call), b"");
    assert_eq!(pair.script.end.stats().drops(DropReason::NotOpened), 1);
    pair.give(genuine);
    assert_eq!(pair.read(call), b"another");
    assert!(pair.script.sent().iter().all(|sent| sent.header.kind == PacketType::ACK), "nothing is aborted");
}

#[test]
fn packets_with_wrong_and_missing_checksums_are_dropped() {
    for level in [Level::Clear, Level::Auth, Level::Crypt] {
        for change in [|sum: u16| sum ^ 1, |_| 0] {
            let mut pair = Pair::new(level);
            pair.begin([1, 0, 0, 0]);
            let genuine = pair.request(1, 1, b"another");
            let header = Header { checksum: change(genuine.0.checksum), ..genuine.0 };
            let forged = (header, genuine.1.clone());
            forged_then_genuine(&mut pair, &forged, &genuine);
        }
    }
}

#[test]
fn changed_data_is_noticed_as_far_as_the_level_promises() {
    for (level, at) in [(Level::Auth, 0), (Level::Crypt, 1)] {
        let mut pair = Pair::new(level);
        pair.begin([1, 0, 0, 0]);
        let genuine = pair.request(1, 1, b"another");
        let mut forged = genuine.clone();
        forged.1[at] ^= 1;
        forged_then_genuine(&mut pair, &forged, &genuine);
    }
}

#[test]
fn the_old_handshake_is_refused_at_both_ends() {
    let mut pair = Pair::new(Level::Clear);
    let request = pair.request(0, 1, b"request");
    pair.give(&request);
    pair.challenge();
    let header = pair.header(PacketType::RESPONSE, 0);
    assert_eq!(pair.refused(&(header, vec![1; 200])), 19_270_400);
    let old = Challenge {
        now: Instant::ZERO,
        epoch: Epoch(EPOCH),
        cid: Cid(CID),
        service: SERVICE,
        payload: &[0x99, 0x55, 0xbb, 0x31, 0, 0, 0, 0],
        call_numbers: [1, 0, 0, 0],
    };
    assert_eq!(pair.client.respond(&old).map_err(|error| error.code), Err(19_270_401));
}

#[test]
fn a_ticket_opens_with_every_encryption_type() {
    let env = Parts::default().with_random(|bytes| bytes.fill(1)).shared();
    for key in keys().iter() {
        let part = ticket::TicketPart {
            flags: ticket::TicketPart::INVALID,
            keytype: 20,
            key: Secret::new(vec![3; 32]),
            realm: "EXAMPLE.ORG".to_owned(),
            client: vec!["alice".to_owned(), "admin".to_owned()],
            authtime: 1_000_000_000,
            starttime: Some(1_000_000_001),
            endtime: 1_000_003_600,
        };
        let printed = ticket::make(&part, key, &env).unwrap();
        assert_eq!(ticket::open(213, &printed, &keys()), Ok(part.clone()));
        // Kerberos has marked it as invalid for now.
        let unusable = ticket::check_times(&part, 1_000_000_002).map_err(|error| error.code());
        assert_eq!(unusable, Err(19_270_405));
    }
}

#[test]
fn tickets_of_kerberos_4_and_unknown_formats() {
    let refused = |kvno| ticket::open(kvno, &[0; 64], &keys()).map_err(|error| error.code());
    assert_eq!(refused(0), Err(19_270_408));
    assert_eq!(refused(255), Err(19_270_408));
    assert_eq!(refused(213), Err(19_270_407));
    assert_eq!(refused(256), Err(19_270_407));
    assert_eq!(refused(257), Err(19_270_407));
}

/// Plausible data from outside.
fn like_a_ticket() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let real = token(Level::Clear).ticket().to_vec();
    let len = real.len();
    let changes = proptest::collection::vec((0..len, any::<u8>()), 0..4);
    let changed = (changes, 0..=len).prop_map(move |(changes, cut)| {
        let mut ticket = real.clone();
        changes.into_iter().for_each(|(at, value)| ticket[at] = value);
        ticket.truncate(cut);
        ticket
    });
    let random =
        proptest::collection::vec(prop_oneof![Just(0x30_u8), Just(0xa0), Just(0xa1), any::<u8>()], 0..300);
    (prop_oneof![Just(213), Just(256), any::<u32>()], prop_oneof![changed, random])
}

proptest! {
    #[test]
    fn no_ticket_makes_a_server_panic((kvno, bytes) in like_a_ticket()) {
        if let Ok(part) = ticket::open(kvno, &bytes, &keys()) {
            prop_assert_eq!(bytes, token(Level::Clear).ticket().to_vec());
            prop_assert_eq!(part.client, ["afs"]);
        }
    }

    /// The contents that a KDC has encrypted are trusted, but need not be well-formed.
    #[test]
    fn no_content_of_a_ticket_makes_a_server_panic(
        plain in proptest::collection::vec(prop_oneof![Just(0x63_u8), Just(0x30), Just(0xa0), Just(4), any::<u8>()], 0..200)
    ) {
        let key = keys().best(KeyKind::RxkadKrb5).unwrap().clone();
        let env = Parts::default().with_random(|bytes| bytes.fill(1)).shared();
        let cipher = afs_auth::crypto::EncType::Aes256Sha1.encrypt(key.secret.expose(), 2, &plain, &env).unwrap();
        let len = |len: usize| [&[0x82][..], &u16::try_from(len).unwrap().to_be_bytes()].concat();
        let octets = [&[4][..], &len(cipher.len()), &cipher].concat();
        let fields = [&[0xa0, 3, 2, 1, 18, 0xa1, 3, 2, 1, 7, 0xa2][..], &len(octets.len()), &octets].concat();
        let whole = [&[0x30][..], &len(fields.len()), &fields].concat();
        prop_assert!(ticket::open(213, &whole, &keys()).is_err());
    }

    #[test]
    fn no_response_makes_a_server_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), version in any::<bool>()) {
        let mut bytes = bytes;
        if version {
            bytes.splice(..bytes.len().min(4), [0, 0, 0, 2]);
        }
        let mut session = server().accept();
        session.challenge(Instant::ZERO, &mut |out| out.fill(9));
        let (epoch, cid) = (Epoch(EPOCH), Cid(CID));
        let proof = Proof { now: Instant::ZERO, epoch, cid, service: SERVICE, checksum: 0, payload: &bytes };
        prop_assert!(session.verify(&proof).is_err());
        prop_assert!(!session.is_authenticated(Instant::ZERO) && session.identity().is_none());
    }

    #[test]
    fn no_packet_makes_a_connection_panic(payload in proptest::collection::vec(any::<u8>(), 0..200), level in 0..3) {
        let client = token(Level::from_number(level).unwrap()).source(env()).session();
        let mut packet = PacketContext {
            epoch: Epoch(EPOCH),
            cid_and_channel: CID,
            call: 1,
            seq: 1,
            service: SERVICE,
            security_index: 2,
            from_client: true,
            checksum: 0,
        };
        packet.checksum = client.seal(&packet, &mut vec![0; 64]).unwrap();
        let opened = client.open(&packet, payload.clone().into());
        prop_assert!(opened.is_err() || opened.unwrap().len() <= payload.len());
    }

    #[test]
    fn sealed_packets_are_opened_again(
        data in proptest::collection::vec(any::<u8>(), 0..1500),
        (call, seq, channel) in (any::<u32>(), 1..u32::MAX, 0_u32..4),
        level in 0..3,
    ) {
        let client = token(Level::from_number(level).unwrap()).source(env()).session();
        let mut packet = PacketContext {
            epoch: Epoch(EPOCH),
            cid_and_channel: CID + channel,
            call,
            seq,
            service: SERVICE,
            security_index: 2,
            from_client: true,
            checksum: 0,
        };
        let overhead = client.overhead();
        let mut payload = [&vec![0; overhead.header][..], &data].concat();
        packet.checksum = client.seal(&packet, &mut payload).unwrap();
        prop_assert!(payload.len() <= data.len() + overhead.header + overhead.trailer);
        prop_assert_ne!(packet.checksum, 0);
        prop_assert_eq!(client.open(&packet, payload.into()).unwrap(), data);
    }
}
