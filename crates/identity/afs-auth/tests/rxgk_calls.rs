//! Complete calls with rxgk between two endpoints.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;
use crate::fake;

use std::sync::Arc;

use afs_auth::crypto::EncType;
use afs_auth::keys::{KeyRing, SharedKeys};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{CallbackOffer, RxgkServer, Variant, code, local_token};
use afs_rpc::{CallError, Class, Level, Principal, Protection, Security};
use afs_rx::Config;
use afs_sim::OneHost;
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use cell::support::Weather;
use cell::{Cell, cell_key, env};
use fake::{Fake, ask_status};

const AES: [EncType; 4] =
    [EncType::Aes128Sha1, EncType::Aes256Sha1, EncType::Aes128Sha256, EncType::Aes256Sha384];
const LEVELS: [Level; 3] = [Level::Clear, Level::Auth, Level::Crypt];
const STORMY: Weather =
    Weather { loss: 30, repeat: 20, delay_min_us: 100, delay_max_us: 3000, in_order: false };

/// Sizes around what fits in a packet, and none.
const SIZES: [usize; 6] = [0, 1, 1363, 1364, 1365, 5000];

#[test]
fn every_level_and_encryption_type() {
    for (level, enctype) in LEVELS.into_iter().flat_map(|level| AES.map(|enctype| (level, enctype))) {
        let mut cell = Cell::new(1, Variant::OpenAfs, Weather::FAIR);
        let token = cell.token(level, enctype);
        let connection = cell.connect(&token);
        for (ask, answer) in SIZES.into_iter().flat_map(|ask| SIZES.map(|answer| (ask, answer))) {
            assert_eq!(cell.call(connection, ask, answer), Ok(()), "{level:?} {enctype} {ask} {answer}");
        }
        let credential = &cell.credentials[0];
        assert_eq!(credential.principal, Principal::local("alice"));
        assert_eq!(credential.protection, Protection { class: Class::Rxgk, level });
        assert_eq!(credential.expires, token.expires());
        assert_eq!(credential.callback, None);
    }
}

#[test]
fn the_other_variant() {
    for level in LEVELS {
        let mut cell = Cell::new(2, Variant::Yfs, Weather::FAIR);
        let token = local_token(&cell.keys, Variant::Yfs, level, &cell.env).unwrap();
        let connection = cell.connect(&token);
        assert_eq!(cell.call(connection, 3000, 3000), Ok(()));
        assert_eq!(cell.credentials[0].principal, Principal::CellKey);
    }
}

#[test]
fn printed_tokens_are_the_cell_and_never_expire() {
    let mut cell = Cell::new(3, Variant::OpenAfs, Weather::FAIR);
    let token = local_token(&cell.keys, Variant::OpenAfs, Level::Crypt, &cell.env).unwrap();
    assert_eq!(token.expires(), None);
    cell.wall.pass(1 << 32);
    let connection = cell.connect(&token);
    assert_eq!(cell.call(connection, 10, 10), Ok(()));
    assert_eq!(cell.credentials[0].principal, Principal::CellKey);
    assert!(local_token(&KeyRing::default(), Variant::OpenAfs, Level::Crypt, &cell.env).is_none());
    let old = cell::ring(cell_key(1, 1, EncType::Rc4Hmac));
    assert!(local_token(&old, Variant::OpenAfs, Level::Crypt, &cell.env).is_none());
}

#[test]
fn bulk_over_a_bad_network() {
    for (seed, level) in LEVELS.into_iter().enumerate() {
        let mut cell = Cell::new(seed as u64, Variant::OpenAfs, STORMY);
        let token = cell.token(level, EncType::DEFAULT);
        let connection = cell.connect(&token);
        assert_eq!(cell.call(connection, 3 << 20, 1 << 20), Ok(()), "{level:?}");
        assert_eq!(cell.call(connection, 1 << 20, 3 << 20), Ok(()), "{level:?}");
    }
}

/// Datagrams of 16 KiB, as on loopback.
#[test]
fn large_packets() {
    let mut config = Config::default();
    config.packet_size = 16384;
    for level in LEVELS {
        let mut cell = Cell::with(5, Variant::OpenAfs, STORMY, &config, Level::Clear);
        let token = cell.token(level, EncType::DEFAULT);
        let connection = cell.connect(&token);
        assert_eq!(cell.call(connection, 3 << 20, 3 << 20), Ok(()), "{level:?}");
    }
}

/// The clock advances by a second with every packet and a key is used up after 64 KiB.
#[test]
fn new_keys_in_mid_transfer() {
    for level in [Level::Auth, Level::Crypt] {
        let mut cell = Cell::new(6, Variant::OpenAfs, STORMY);
        let token = cell.token(level, EncType::Aes128Sha1);
        let token = cell.with_lifetime(&token, 0, 16);
        let token = cell.changed(&token, token.variant, |contents| contents.expires.0 = 0);
        cell.wall.tick(1);
        let connection = cell.connect(&token);
        for _ in 0..10 {
            assert_eq!(cell.call(connection, 300_000, 300_000), Ok(()));
        }
        let numbers = cell.numbers();
        // Each end can advance by one each time the other has followed.
        assert!(numbers.len() >= 15, "{level:?} {numbers:?}");
        assert!(numbers.iter().copied().eq(0..numbers.len() as u16), "{numbers:?}");
    }
}

#[test]
fn new_keys_after_their_time() {
    let mut cell = Cell::new(7, Variant::OpenAfs, Weather::FAIR);
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let token = cell.with_lifetime(&token, 60, 0);
    let connection = cell.connect(&token);
    for passed in [0, 59, 2, 59, 2] {
        cell.wall.pass(passed);
        assert_eq!(cell.call(connection, 100, 100), Ok(()));
    }
    assert_eq!(cell.numbers().into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

/// Without protection no key is used, so none is used up.
#[test]
fn clear_connections_keep_their_key() {
    let mut cell = Cell::new(8, Variant::OpenAfs, Weather::FAIR);
    let token = cell.token(Level::Clear, EncType::DEFAULT);
    let token = cell.with_lifetime(&token, 1, 10);
    let connection = cell.connect(&token);
    for _ in 0..3 {
        cell.wall.pass(100);
        assert_eq!(cell.call(connection, 10_000, 10_000), Ok(()));
    }
    assert_eq!(cell.numbers().into_iter().collect::<Vec<_>>(), [0]);
}

/// The client gives the server a token for calls back, and authenticates the caller by it.
#[test]
fn callbacks_prove_who_calls() {
    let mut cell = Cell::new(9, Variant::OpenAfs, Weather::FAIR);
    let offer = Arc::new(CallbackOffer::new(Uuid([7; 16]), &cell.env).unwrap());
    let token = cell.token(Level::Crypt, EncType::DEFAULT);
    let source = token.source_with_callback(cell.env.clone(), offer.clone());
    assert_ne!(source.name(), token.source(cell.env.clone()).name());
    let connection = cell.connect_with(source.session());
    assert_eq!(cell.call(connection, 10, 10), Ok(()));
    let callback = cell.credentials[0].callback.clone().expect("the client can be called back");

    // The callback service, with the client's own keys, accepts the server's token, and no other.
    assert_eq!(called(offer.keys(), callback.clone()), Ok(42));
    let other = CallbackOffer::new(Uuid([7; 16]), &env(99)).unwrap();
    let refused = |error: afs_rx::SecurityError| Err(CallError::Abort(AbortCode(error.code)));
    assert_eq!(called(other.keys(), callback), refused(code::SEALED_INCONSISTENT));
    // A token of the cell names another key number.
    assert_eq!(called(offer.keys(), Security::new(source)), refused(code::NO_SUCH_KEY));
}

/// A call of a server to a callback service that accepts these keys.
fn called(keys: SharedKeys, security: Security) -> Result<u64, CallError> {
    let world = OneHost::new(1);
    let ((client, client_at), (server, _)) = (world.node(7001), world.node(7000));
    let names = Arc::new(LocalNames::of_cell("example.org"));
    let class = RxgkServer::new(Variant::OpenAfs, keys, names, env(1), Level::Crypt);
    client.listen_with(Fake::new(world.env()).service(), vec![Box::new(class)]).unwrap();
    let connection = server.connection(client_at, ServiceId::FILE, security);
    world.run(async move { ask_status(&connection, 42).await }).map(|status| status.length)
}
