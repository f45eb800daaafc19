//! Entry points of fuzz targets: each function takes any bytes and must not panic. `fuzz/` calls them with inputs of
//! libFuzzer, `tests/rxkad_fuzzing.rs` with seeded ones.

use std::sync::Arc;

use afs_rpc::{EnvRef, Level, Parts, UnixTime};
use afs_rx::{Challenge, Cid, ClientSecurity, Epoch, Instant, PacketContext, Proof, ServerSecurity};

use super::ticket::{TicketFormat, decode_part, open};
use super::{RxkadLimits, RxkadServer, RxkadToken, SessionKey};
use crate::Secret;
use crate::keys::{CellKey, KeyKind, KeyRing, SharedKeys};
use crate::names::LocalNames;

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] =
    &[("key_files", key_files), ("rxkad_ticket", rxkad_ticket), ("rxkad_handshake", rxkad_handshake)];

const EPOCH: Epoch = Epoch(0x8000_0001);
const CID: Cid = Cid(0x1000);
const SERVICE: u16 = 1;

/// `KeyFile`, `KeyFileExt` and keytabs. A `KeyFileExt` that was read is written and read again.
pub fn key_files(bytes: &[u8]) {
    let _ = KeyRing::from_key_file(bytes);
    let _ = KeyRing::from_keytab(bytes);
    if let Ok(keys) = KeyRing::from_key_file_ext(bytes) {
        assert_eq!(KeyRing::from_key_file_ext(keys.to_key_file_ext().expose()), Ok(keys));
    }
}

/// Tickets in both formats, and their decrypted contents.
pub fn rxkad_ticket(bytes: &[u8]) {
    let keys = keys();
    for format in [TicketFormat::EncryptedData, TicketFormat::Ticket] {
        assert!(open(format.number(), bytes, &keys).is_err(), "nobody guesses a ticket");
    }
    if let Some(encoded) = decode_part(bytes).and_then(|part| part.encode().ok().map(|bytes| (part, bytes))) {
        let (part, bytes) = encoded;
        assert_eq!(decode_part(bytes.expose()), Some(part));
    }
}

/// The first byte chooses: a response for a server, a challenge for a client, or a packet of one of three levels.
pub fn rxkad_handshake(bytes: &[u8]) {
    let Some((choice, payload)) = bytes.split_first() else { return };
    match choice % 5 {
        0 => respond_to_server(payload),
        1 => challenge_client(payload),
        level => packet(i32::from(level) - 2, payload),
    }
}

fn respond_to_server(payload: &[u8]) {
    let names = Arc::new(LocalNames::of_cell("example.org"));
    let limits = RxkadLimits::default();
    let mut session = RxkadServer::new(SharedKeys::new(keys()), names, env(), limits).accept();
    session.challenge(Instant::ZERO, &mut |out| out.fill(9));
    let proof = Proof { now: Instant::ZERO, epoch: EPOCH, cid: CID, service: SERVICE, checksum: 0, payload };
    assert!(session.verify(&proof).is_err(), "nobody guesses a response");
}

fn challenge_client(payload: &[u8]) {
    let Some(mut client) = client(Level::Crypt) else { return };
    let now = Instant::ZERO;
    let challenge =
        Challenge { now, epoch: EPOCH, cid: CID, service: SERVICE, payload, call_numbers: [1; 4] };
    let _ = client.respond(&challenge);
}

fn packet(level: i32, payload: &[u8]) {
    let Some(client) = Level::from_number(level).and_then(client) else { return };
    let mut packet = PacketContext {
        epoch: EPOCH,
        cid_and_channel: CID.0,
        call: 1,
        seq: 1,
        service: SERVICE,
        security_index: super::INDEX,
        from_client: false,
        checksum: 0,
    };
    let mut sealed = [&vec![0; client.overhead().header][..], payload].concat();
    packet.checksum = client.seal(&packet, &mut sealed).unwrap_or_default();
    if payload.len() <= usize::from(u16::MAX) {
        assert_eq!(client.open(&packet, sealed.into()).ok().as_deref(), Some(payload));
    }
    let opened = client.open(&packet, payload.to_vec().into());
    assert!(opened.is_err() || opened.is_ok_and(|data| data.len() <= payload.len()));
}

fn client(level: Level) -> Option<Box<dyn ClientSecurity>> {
    let token = RxkadToken::new(
        TicketFormat::Ticket,
        &[0; 32],
        SessionKey::new(*b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        None,
    );
    Some(token.ok()?.with_level(level).source(env()).session())
}

fn env() -> EnvRef {
    Parts::default().with_wall(|| UnixTime { secs: 1_000_000_000, nanos: 0 }).shared()
}

fn keys() -> KeyRing {
    let mut keys = KeyRing::default();
    for (enctype, len) in [(17, 16), (18, 32), (19, 16), (20, 32), (23, 16)] {
        let secret = Secret::new(vec![7; len]);
        let _ = keys.add(CellKey { kind: KeyKind::RxkadKrb5, kvno: 0, enctype, secret });
    }
    keys
}
