//! Refusals of a server, with their codes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;

use std::sync::Arc;

use afs_auth::Secret;
use afs_auth::crypto::EncType;
use afs_auth::keys::SharedKeys;
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{
    AuthName, MasterKey, MintError, Minting, RxgkServer, RxgkTime, Variant, code, local_token, mint,
};
use afs_rpc::{Level, Person, Principal, SecuritySource, Terms, UnixTime};
use afs_rx::{
    Challenge, Cid, ClientSecurity, Config, Epoch, Instant, PacketContext, Proof, SecurityError,
    ServerSecurity, ServerSession,
};
use cell::support::Weather;
use cell::{Cell, NOW, cell_key, env, ring};
use proptest::prelude::*;

fn cell() -> Cell {
    Cell::new(1, Variant::OpenAfs, Weather::FAIR)
}

#[test]
fn expired_tokens() {
    let mut cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let connection = cell.connect(&token);
    assert_eq!(cell.call(connection, 10, 10), Ok(()));
    cell.wall.pass(3599);
    assert_eq!(cell.call(connection, 10, 10), Ok(()));
    let (mut session, nonce) = asked(&cell);
    let response = respond(&mut *client(&cell, &token), &nonce).unwrap();
    cell.wall.pass(1);
    // A connection ends when its token expires, and no new one begins.
    assert_eq!(cell.call(connection, 10, 10).unwrap_err().code(), code::EXPIRED.code);
    assert_eq!(cell.refusal(&token), code::EXPIRED.code);
    // A client does not show an expired token; what it has said before comes too late.
    assert_eq!(verify(&mut *session, (EPOCH, CID), &response), Err(code::EXPIRED));
}

#[test]
fn tokens_of_another_cell() {
    let mut cell = cell();
    // Another number, another type, and the right numbers with another key.
    let keys = [
        (cell_key(1, 4, EncType::DEFAULT), code::NO_SUCH_KEY),
        (cell_key(1, 3, EncType::Aes128Sha1), code::NO_SUCH_KEY),
        (cell_key(2, 3, EncType::DEFAULT), code::SEALED_INCONSISTENT),
    ];
    for (key, refused) in keys {
        let token = local_token(&ring(key), Variant::OpenAfs, Level::Crypt, &env(1)).unwrap();
        assert_eq!(cell.refusal(&token), refused.code);
    }
}

#[test]
fn changed_tokens() {
    let mut cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    for at in 12..token.sealed.len() {
        let mut forged = token.clone();
        forged.sealed[at] ^= 4;
        assert_eq!(answer(&cell, &forged, &token), Err(code::SEALED_INCONSISTENT), "{at}");
    }
    let mut none = token.clone();
    none.sealed.clear();
    assert_eq!(cell.refusal(&none), code::BAD_TOKEN.code);
    none.sealed = vec![0; 200];
    assert_eq!(cell.refusal(&none), code::BAD_TOKEN.code);
}

/// An attacker has seen the token on the wire, but does not know its key.
#[test]
fn a_token_without_its_key() {
    let mut cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let mut stolen = token.clone();
    stolen.key = MasterKey::new(20, Secret::new(vec![1; 32])).unwrap();
    assert_eq!(cell.refusal(&stolen), code::SEALED_INCONSISTENT.code);
    // Nor can the attacker use connections that the owner has open in the same process.
    let name = |token: &afs_auth::rxgk::RxgkToken| token.source(cell.wall.env(1)).name();
    assert_ne!(name(&stolen), name(&token));
    assert!(!format!("{token:?}").contains("sealed"));
}

#[test]
fn levels() {
    let mut cell = Cell::with(1, Variant::OpenAfs, Weather::FAIR, &Config::default(), Level::Crypt);
    for level in [Level::Clear, Level::Auth] {
        let token = cell.token(level, EncType::DEFAULT);
        assert_eq!(cell.refusal(&token), code::BAD_LEVEL.code);
        // The level is the token's, whatever the client requests.
        let mut wish = token.clone();
        wish.level = Level::Crypt;
        assert_eq!(cell.refusal(&wish), code::BAD_LEVEL.code);
    }
    let mut less = cell.token(Level::Crypt, EncType::DEFAULT);
    assert_eq!(answer(&cell, &less, &less), Ok([1, 2, 3, 4]));
    less.level = Level::Auth;
    assert_eq!(cell.refusal(&less), code::BAD_CHALLENGE.code);
}

#[test]
fn the_wrong_index() {
    let mut cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let other = cell.changed(&token, Variant::Yfs, |_| ());
    // Nothing is offered under 6; and under 4 the other variant's token does not decode.
    assert_eq!(cell.refusal(&other), afs_rx::code::INVALID_OPERATION);
    let mut mixed = other.clone();
    mixed.variant = Variant::OpenAfs;
    assert_eq!(cell.refusal(&mixed), code::BAD_TOKEN.code);
}

#[test]
fn identities() {
    let mut cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let mut refused = |identities: Vec<AuthName>| {
        let token = cell.changed(&token, token.variant, |contents| contents.identities = identities);
        cell.refusal(&token)
    };
    let two = vec![AuthName::krb4("alice"), AuthName::krb4("bob")];
    assert_eq!(refused(two), code::INCONSISTENCY.code);
    assert_eq!(refused(vec![AuthName::krb4("afs")]), code::NOT_AUTHENTICATED.code);
    assert_eq!(refused(vec![AuthName { kind: 9, ..AuthName::krb4("alice") }]), code::NOT_AUTHENTICATED.code);
    assert_eq!(refused(vec![AuthName::krb4("alice"); 33]), code::BAD_TOKEN.code);
}

#[test]
fn tokens_that_are_not_made() {
    let cell = cell();
    let expires = UnixTime { secs: NOW, nanos: 0 };
    let good = Minting {
        terms: Terms::default(),
        name: "alice".into(),
        level: Level::Crypt,
        expires,
        enctype: EncType::DEFAULT,
    };
    let minted = |minting: Minting| mint(&cell.keys, &minting, &cell.env).map(|_| ());
    assert_eq!(minted(good.clone()), Ok(()));
    assert_eq!(minted(Minting { name: "alice.admin".into(), ..good.clone() }), Ok(()));
    for name in ["", "afs", "alice@example.org", "Alice", ".admin", "a\0b"] {
        assert!(minted(Minting { name: name.into(), ..good.clone() }).is_err(), "{name:?}");
    }
    assert_eq!(minted(Minting { expires: UnixTime::default(), ..good.clone() }), Err(MintError::Endless));
    assert_eq!(minted(Minting { enctype: EncType::Rc4Hmac, ..good.clone() }), Err(MintError::EncType));
    assert_eq!(mint(&afs_auth::keys::KeyRing::default(), &good, &cell.env), Err(MintError::NoKey));
}

/// A session of the cell's server that has sent its challenge.
fn asked(cell: &Cell) -> (Box<dyn ServerSession>, Vec<u8>) {
    let names = Arc::new(LocalNames::of_cell("example.org"));
    let keys = SharedKeys::new(cell.keys.clone());
    let mut class = RxgkServer::new(Variant::OpenAfs, keys, names, cell.env.clone(), Level::Clear);
    let mut session = class.accept();
    let env = cell.env.clone();
    let nonce = session.challenge(Instant::ZERO, &mut |out| env.random(out));
    assert_eq!(
        nonce,
        session.challenge(Instant::ZERO, &mut |out| env.random(out)),
        "the question stays the same"
    );
    (session, nonce)
}

const EPOCH: Epoch = Epoch(0x8000_0001);
const CID: Cid = Cid::of(0x1000);

fn respond(client: &mut dyn ClientSecurity, nonce: &[u8]) -> Result<afs_rx::Response, SecurityError> {
    client.respond(&Challenge {
        now: Instant::ZERO,
        epoch: EPOCH,
        cid: CID,
        service: 1,
        payload: nonce,
        call_numbers: [1, 2, 3, 4],
    })
}

fn verify(
    session: &mut dyn ServerSession,
    (epoch, cid): (Epoch, Cid),
    response: &afs_rx::Response,
) -> Result<[u32; 4], SecurityError> {
    let (payload, checksum) = (&response.payload[..], response.checksum);
    let proof = Proof { now: Instant::ZERO, epoch, cid, service: 1, checksum, payload };
    session.verify(&proof).map(|verified| verified.call_numbers.unwrap())
}

/// The server's verdict on `shown`, presented with the key of `held`.
fn answer(
    cell: &Cell,
    shown: &afs_auth::rxgk::RxgkToken,
    held: &afs_auth::rxgk::RxgkToken,
) -> Result<[u32; 4], SecurityError> {
    let (mut session, nonce) = asked(cell);
    let mut both = held.clone();
    both.sealed.clone_from(&shown.sealed);
    let response = respond(&mut *client(cell, &both), &nonce)?;
    verify(&mut *session, (EPOCH, CID), &response)
}

fn client(cell: &Cell, token: &afs_auth::rxgk::RxgkToken) -> Box<dyn ClientSecurity> {
    let source: Arc<dyn SecuritySource> = token.source(cell.env.clone());
    source.session()
}

#[test]
fn responses_cannot_be_replayed() {
    let cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let ((mut session, nonce), (mut other, _)) = (asked(&cell), asked(&cell));
    let response = respond(&mut *client(&cell, &token), &nonce).unwrap();
    // On another session the challenge was another, and here the keys are another connection's.
    assert_eq!(verify(&mut *other, (EPOCH, CID), &response), Err(code::BAD_CHALLENGE));
    let (mut moved, _) = asked(&cell);
    let elsewhere = verify(&mut *moved, (EPOCH, Cid::of(0x2000)), &response);
    assert_eq!(elsewhere, Err(code::SEALED_INCONSISTENT));
    assert_eq!(verify(&mut *session, (EPOCH, CID), &response), Ok([1, 2, 3, 4]));
    // The challenge is void once it has been responded to, correctly or not.
    assert_eq!(verify(&mut *session, (EPOCH, CID), &response), Err(code::BAD_CHALLENGE));
    assert_eq!(verify(&mut *other, (EPOCH, CID), &response), Err(code::BAD_CHALLENGE));
}

#[test]
fn key_numbers() {
    let cell = cell();
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    for checksum in [2, 5, u16::MAX] {
        let (mut session, nonce) = asked(&cell);
        let mut response = respond(&mut *client(&cell, &token), &nonce).unwrap();
        response.checksum = checksum;
        assert_eq!(verify(&mut *session, (EPOCH, CID), &response), Err(code::BAD_KEY_NUMBER));
    }
    let (session, client) = joined(&cell, Level::Auth);
    let mut packet = context(1);
    let mut payload = vec![0; client.overhead().header + 10];
    packet.checksum = client.seal(&packet, &mut payload).unwrap();
    assert_eq!(session.open(&packet, payload.clone().into()).unwrap().len(), 10);
    for checksum in [2, 5, u16::MAX] {
        packet.checksum = checksum;
        assert_eq!(session.open(&packet, payload.clone().into()), Err(code::BAD_KEY_NUMBER));
    }
    // A forged packet with the next number changes nothing.
    packet.checksum = 1;
    assert_eq!(session.open(&packet, payload.clone().into()), Err(code::SEALED_INCONSISTENT));
    let mut reply = vec![0; session.overhead().header];
    assert_eq!(session.seal(&PacketContext { from_client: false, ..packet }, &mut reply), Ok(0));
}

/// Both ends of an authenticated connection.
fn joined(cell: &Cell, level: Level) -> (Box<dyn ServerSession>, Box<dyn ClientSecurity>) {
    let token = cell.token(level, EncType::DEFAULT);
    let (mut session, nonce) = asked(cell);
    let mut client = client(cell, &token);
    let response = respond(&mut *client, &nonce).unwrap();
    verify(&mut *session, (EPOCH, CID), &response).unwrap();
    (session, client)
}

fn context(seq: u32) -> PacketContext {
    PacketContext {
        epoch: EPOCH,
        cid_and_channel: CID.with_channel(0),
        call: 1,
        seq,
        service: 1,
        security_index: 4,
        from_client: true,
        checksum: 0,
    }
}

#[test]
fn no_call_is_accepted_before_the_proof() {
    let cell = cell();
    let (session, _) = asked(&cell);
    assert_eq!(session.open(&context(1), vec![0; 100].into()), Err(code::NOT_AUTHENTICATED));
    assert_eq!(session.seal(&context(1), &mut vec![0; 100]), Err(code::NOT_AUTHENTICATED));
    assert!(session.identity().is_none() && !session.is_authenticated(Instant::ZERO));
    let mut client = client(&cell, &cell.token(Level::Crypt, EncType::DEFAULT));
    for bad in [&[0; 19][..], &[0; 21], &[]] {
        assert_eq!(respond(&mut *client, bad), Err(code::BAD_CHALLENGE));
    }
}

#[test]
fn times() {
    let time = RxgkTime::from(UnixTime { secs: 1, nanos: 250 });
    assert_eq!(time, RxgkTime(10_000_002));
    assert_eq!(time.expiry(), Some(UnixTime { secs: 1, nanos: 200 }));
    assert!(
        time.has_passed(UnixTime { secs: 2, nanos: 0 }) && !time.has_passed(UnixTime { secs: 1, nanos: 0 })
    );
    assert!(
        RxgkTime(-5).has_passed(UnixTime::default())
            && !RxgkTime::NEVER.has_passed(UnixTime { secs: 9, nanos: 0 })
    );
    assert_eq!(RxgkTime::from(UnixTime { secs: u64::MAX, nanos: 0 }), RxgkTime(i64::MAX));
}

proptest! {
    #[test]
    fn garbage_for_a_response(payload in prop::collection::vec(any::<u8>(), 0..600), checksum in 0..3u16) {
        let (mut session, _) = asked(&cell());
        let response = afs_rx::Response { payload, checksum };
        prop_assert!(verify(&mut *session, (EPOCH, CID), &response).is_err());
    }

    /// Any bit of a valid response but those of the padding, of which there is none here.
    #[test]
    fn a_changed_response(at: prop::sample::Index, bit in 0..8) {
        let cell = cell();
        let token = cell.token(Level::Crypt, EncType::DEFAULT);
        let (mut session, nonce) = asked(&cell);
        let mut response = respond(&mut *client(&cell, &token), &nonce).unwrap();
        let at = at.index(response.payload.len());
        response.payload[at] ^= 1u8 << bit;
        prop_assert!(verify(&mut *session, (EPOCH, CID), &response).is_err());
    }

    #[test]
    fn garbage_for_a_packet(payload in prop::collection::vec(any::<u8>(), 0..200), checksum in 0..3u16) {
        for level in [Level::Auth, Level::Crypt] {
            let (session, client) = joined(&cell(), level);
            let packet = PacketContext { checksum, ..context(1) };
            prop_assert!(session.open(&packet, payload.clone().into()).is_err());
            let packet = PacketContext { from_client: false, ..packet };
            prop_assert!(client.open(&packet, payload.clone().into()).is_err());
        }
    }
}

/// A user, and who changes the user's client, may send what a holder of the cell's key sends.
#[test]
fn a_person_in_a_users_token_is_not_believed() {
    let mut cell = cell();
    let person = || Person::of_user(0, Some("root"));
    let alice = cell.token(Level::Crypt, EncType::DEFAULT);
    let own = local_token(&cell.keys, Variant::OpenAfs, Level::Crypt, &cell.env).unwrap();
    for token in [&alice, &own] {
        let session = token.source_for(cell.env.clone(), person()).session();
        let connection = cell.connect_with(session);
        assert_eq!(cell.call(connection, 10, 10), Ok(()));
    }
    let connection = cell.connect(&own);
    assert_eq!(cell.call(connection, 10, 10), Ok(()));
    let found: Vec<_> = cell.credentials.iter().map(|of| (of.principal.clone(), of.person.clone())).collect();
    let key = Principal::CellKey;
    assert_eq!(found, [(Principal::local("alice"), None), (key.clone(), Some(person())), (key, None)]);
}
