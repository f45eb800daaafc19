//! Entry points of fuzz targets; see `fuzz/` and `tests/rxgk_random_bytes.rs`.

use std::sync::Arc;

use afs_rpc::{EnvRef, Level, Parts, UnixTime};
use afs_rx::{Cid, Epoch, Instant, PacketContext, Proof, ServerSecurity, ServerSession};
use afs_wire::xdr::Encode;
use bytes::Bytes;

use crate::crypto::EncType;
use crate::keys::{CellKey, KeyKind, KeyRing, SharedKeys};
use crate::names::LocalNames;
use crate::rxgk::{
    Authenticator, ConnectionSeed, Response, RxgkServer, RxgkTime, RxgkToken, Variant, local_token,
    open_token, usage,
};
use crate::{Secret, Token};

const EPOCH: Epoch = Epoch(0x8000_0001);
const CID: Cid = Cid::of(0x1000);
const START: RxgkTime = RxgkTime(42);
const ENCTYPE: EncType = EncType::Aes128Sha1;

/// Passes bytes to every decoder of rxgk that reads a peer's bytes, sealed correctly where the decoder is behind a
/// seal. The first byte chooses the decoder.
pub fn rxgk(bytes: &[u8]) {
    let Some((&place, bytes)) = bytes.split_first() else { return };
    let level = if place & 0x80 == 0 { Level::Crypt } else { Level::Auth };
    let Some(cell) = Cell::new(level) else { return };
    match place & 7 {
        0 => cell.response(bytes.to_vec()),
        1 => cell.token(bytes),
        2 => cell.authenticator(bytes),
        3 => cell.appdata(bytes),
        4 => cell.packet_inside(bytes),
        5 => cell.packet(bytes),
        _ => drop(Token::decode(bytes)),
    }
}

/// A server, and a client that can seal anything.
struct Cell {
    keys: KeyRing,
    token: RxgkToken,
    env: EnvRef,
}

impl Cell {
    fn new(level: Level) -> Option<Self> {
        let env = Parts::default().with_wall(UnixTime::default).with_random(|out| out.fill(7)).shared();
        let secret = ENCTYPE.generate(&env);
        let mut keys = KeyRing::default();
        keys.add(CellKey { kind: KeyKind::Rxgk, kvno: 1, enctype: ENCTYPE.number(), secret }).ok()?;
        let token = local_token(&keys, Variant::OpenAfs, level, &env)?;
        Some(Self { keys, token, env })
    }

    /// A session that has sent its challenge.
    fn session(&self) -> Box<dyn ServerSession> {
        let (keys, names) = (SharedKeys::new(self.keys.clone()), Arc::new(LocalNames::default()));
        let env = self.env.clone();
        let mut session = RxgkServer::new(Variant::OpenAfs, keys, names, env, Level::Clear).accept();
        session.challenge(Instant::ZERO, &mut |out| self.env.random(out));
        session
    }

    /// Bytes sealed for the usage, with the connection's key.
    fn sealed(&self, usage: u32, plain: &[u8]) -> Option<Vec<u8>> {
        let seed = ConnectionSeed { epoch: EPOCH, cid: CID, start: START };
        let transport = self.token.key.transport_key(&seed, 0).ok()?;
        ENCTYPE.encrypt(transport.secret().expose(), usage, plain, &self.env).ok()
    }

    fn answered(&self, authenticator: Vec<u8>) -> Box<dyn ServerSession> {
        let response = Response { start: START, token: self.token.sealed.clone(), authenticator };
        self.verified(&response.encode())
    }

    fn verified(&self, payload: &[u8]) -> Box<dyn ServerSession> {
        let mut session = self.session();
        let (now, epoch, cid) = (Instant::ZERO, EPOCH, CID);
        let accepted = session.verify(&Proof { now, epoch, cid, service: 1, checksum: 0, payload });
        assert_eq!(accepted.is_ok(), session.identity().is_some());
        session
    }

    fn response(&self, payload: Vec<u8>) {
        if let Ok(response) = Response::decode(&payload) {
            assert_eq!(Response::decode(&response.encode()), Ok(response));
        }
        let _ = self.verified(&payload);
    }

    /// The server decodes a token.
    fn token(&self, plain: &[u8]) {
        let Some(key) = self.keys.best(KeyKind::Rxgk) else { return };
        let sealed = ENCTYPE.encrypt(key.secret.expose(), usage::SERVER_ENC_TOKEN, plain, &self.env);
        let mut token = Vec::new();
        key.kvno.encode(&mut token);
        key.enctype.encode(&mut token);
        let sealed = sealed.unwrap_or_default();
        (sealed.len() as u32).encode(&mut token);
        token.extend_from_slice(&sealed);
        token.resize(token.len().next_multiple_of(4), 0);
        for variant in [Variant::OpenAfs, Variant::Yfs] {
            let _ = open_token(variant, &token, &self.keys);
            let _ = open_token(variant, plain, &self.keys);
        }
    }

    /// The server decodes an authenticator.
    fn authenticator(&self, plain: &[u8]) {
        if let Some(sealed) = self.sealed(usage::CLIENT_ENC_RESPONSE, plain) {
            let _ = self.answered(sealed);
        }
    }

    /// The server decodes a valid client's application data.
    fn appdata(&self, bytes: &[u8]) {
        let mut proof = Authenticator::new([7; 20], self.token.level, EPOCH, CID);
        proof.appdata = Secret::new(bytes.to_vec());
        let seed = ConnectionSeed { epoch: EPOCH, cid: CID, start: START };
        let Ok(transport) = self.token.key.transport_key(&seed, 0) else { return };
        if let Ok(sealed) = proof.seal(&transport, &self.env) {
            assert!(self.answered(sealed).identity().is_some(), "application data refuses nobody");
        }
    }

    /// A sealed packet with these bytes in it.
    fn packet_inside(&self, plain: &[u8]) {
        let payload = self.sealed(usage::CLIENT_ENC_PACKET, plain).unwrap_or_default();
        self.packet(&payload);
    }

    fn packet(&self, payload: &[u8]) {
        let proof = Authenticator::new([7; 20], self.token.level, EPOCH, CID);
        let seed = ConnectionSeed { epoch: EPOCH, cid: CID, start: START };
        let Ok(transport) = self.token.key.transport_key(&seed, 0) else { return };
        let Ok(sealed) = proof.seal(&transport, &self.env) else { return };
        let server = self.answered(sealed);
        let client = self.token.source(self.env.clone()).session();
        for checksum in [0, 1, u16::MAX] {
            let _ = server.open(&context(true, checksum), Bytes::copy_from_slice(payload));
            let _ = client.open(&context(false, checksum), Bytes::copy_from_slice(payload));
        }
    }
}

fn context(from_client: bool, checksum: u16) -> PacketContext {
    PacketContext {
        epoch: EPOCH,
        cid_and_channel: CID.with_channel(0),
        call: 1,
        seq: 1,
        service: 1,
        security_index: Variant::OpenAfs.index(),
        from_client,
        checksum,
    }
}
