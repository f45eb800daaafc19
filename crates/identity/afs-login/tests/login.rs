//! Tests of logins, renewals and their limits.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;

use std::net::SocketAddr;
use std::time::Duration;

use afs_auth::Token;
use afs_login::client::{self, LoginError};
use afs_login::{Grant, LoginSecret};
use afs_rpc::{CallError, Level, Limits, Security, UnixTime};
use afs_rx::packet::{Header, PacketType, flags};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::login::{PassphraseStart, VERSION, Wish};
use afs_wire::rpc::ServiceId;
use afs_wire::xdr::ByteString;
use cell::{Cell, Key, LIFETIMES, cell, cell_name, login, passphrase, user};

fn refused<T>(code: AbortCode) -> Result<T, LoginError> {
    Err(LoginError::Call(CallError::Abort(code)))
}

fn after(time: UnixTime, by: Duration) -> u64 {
    time.secs + by.as_secs()
}

#[test]
fn the_right_passphrase_gives_a_token_that_proves_who_one_is() {
    let cell = cell(1);
    cell.register("alice", "correct horse");
    let grant = cell.log_in("alice", "correct horse").unwrap();
    assert_eq!(grant.token.level(), Level::Crypt);
    let end = grant.token.expires().unwrap().secs;
    assert!(end.abs_diff(after(cell.now(), LIFETIMES.token)) < 5);
    assert!(grant.renewable_until.secs.abs_diff(after(cell.now(), LIFETIMES.renewable)) < 5);
    assert_eq!(grant.host_key, Some(cell.secret.host_key()));
    // The service itself accepts it.
    let service = cell.with(&grant.token);
    let ways = cell.world.run(async move { client::list_ways(&service, &user("alice")).await }).unwrap();
    assert!(ways.passphrase.0 > 0 && ways.keys.is_empty());
}

#[test]
fn names_are_not_case_sensitive_and_wishes_are_granted_within_bounds() {
    let cell = cell(2);
    cell.register("alice", "correct horse");
    let mut wished = login("ALICE");
    (wished.lifetime, wished.level) = (600, Level::Auth);
    let grant = cell.log_in_as(wished.clone(), "correct horse").unwrap();
    assert_eq!(grant.token.level(), Level::Auth);
    assert!(grant.token.expires().unwrap().secs.abs_diff(cell.now().secs + 600) < 5);
    wished.lifetime = u32::MAX;
    let grant = cell.log_in_as(wished, "correct horse").unwrap();
    assert!(grant.token.expires().unwrap().secs <= after(cell.now(), LIFETIMES.token));
}

#[test]
fn a_wrong_passphrase_and_an_unknown_user_are_refused_alike() {
    let cell = cell(3);
    cell.register("alice", "correct horse");
    assert_eq!(cell.log_in("alice", "correct hors"), Err(LoginError::Denied));
    // bob exists and has no passphrase; mallory does not exist.
    assert_eq!(cell.log_in("bob", "correct horse"), Err(LoginError::Denied));
    assert_eq!(cell.log_in("mallory", "correct horse"), Err(LoginError::Denied));
    let answers = ["alice", "bob", "mallory"].map(|name| {
        let service = cell.anonymous();
        let start = begun(name);
        cell.world.run(async move { service.call(&start).await }).unwrap()
    });
    let lengths = answers.map(|answer| (answer.attempt.len(), answer.message.len()));
    assert_eq!((lengths[0].1, lengths[1].1), (lengths[1].1, lengths[2].1));
}

/// A first message that OPAQUE accepts: a group element and the further fields.
fn begun(name: &str) -> PassphraseStart {
    // The generator of ristretto255, a nonce, and the generator again.
    let generator = "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76";
    let generator: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&generator[2 * at..2 * at + 2], 16).unwrap()).collect();
    PassphraseStart {
        version: VERSION,
        user: ByteString::new(name).unwrap(),
        wish: Wish { lifetime: 0, level: 2 },
        message: ByteString::new([&generator[..], &[5; 32], &generator].concat()).unwrap(),
    }
}

#[test]
fn guessing_is_slowed_and_forgiven() {
    let cell = cell(4);
    cell.register("alice", "correct horse");
    let guess = |name: &str| {
        let (service, start) = (cell.anonymous(), begun(name));
        cell.world.run(async move { service.call(&start).await.map(|_| ()) })
    };
    let slow = Err(CallError::Abort(AbortCode::LGNSLOW));
    for name in ["alice", "mallory"] {
        let outcomes: Vec<_> = (0..8).map(|_| guess(name)).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 6, "{name}");
        assert_eq!(outcomes.last(), Some(&slow), "{name}");
    }
    assert_eq!(cell.log_in("alice", "correct horse"), Err(LoginError::Slow));
    // Other users are not delayed.
    assert!(guess("bob").is_ok());
    cell.world.run_for(Duration::from_secs(2));
    cell.log_in("alice", "correct horse").unwrap();
}

#[test]
fn a_flood_from_one_place_is_turned_away_before_it_costs_anything() {
    let cell = cell(5);
    let mut answered = 0;
    for n in 0..300 {
        let (service, start) = (cell.anonymous(), begun(&format!("user{n}")));
        answered += usize::from(cell.world.run(async move { service.call(&start).await }).is_ok());
    }
    assert!(answered <= 33, "{answered}");
}

/// A passphrase login of alice from the host.
fn log_in_from(cell: &Cell, host: u8, port: u16) -> Result<Grant, LoginError> {
    let at = SocketAddr::from(([192, 0, 2, host], port));
    let rx = cell.world.node_at(at, Default::default(), Limits::default());
    let service = rx.connection(cell.server_at, ServiceId::LOGIN, Security::null());
    let env = cell.env.clone();
    cell.world.run(async move {
        client::login_with_passphrase(&service, &login("alice"), &passphrase("correct horse"), &env).await
    })
}

#[test]
fn guesses_in_a_users_name_do_not_shut_the_user_out() {
    let cell = cell(30);
    cell.register("alice", "correct horse");
    for round in 0..200 {
        let (service, start) = (cell.anonymous(), begun("alice"));
        let _ = cell.world.run(async move { service.call(&start).await });
        if round % 50 == 49 {
            log_in_from(&cell, 7, 7000 + round).unwrap();
            log_in_from(&cell, 8, 7000 + round).unwrap();
        }
    }
    assert_eq!(cell.log_in("alice", "correct horse"), Err(LoginError::Slow), "where the guesses come from");
}

#[test]
fn starts_under_a_false_address_are_not_counted() {
    let cell = cell(31);
    cell.register("alice", "correct horse");
    let request = afs_wire::rpc::encode_call(&begun("alice"));
    let now = cell.world.env().now();
    for number in 0..100u32 {
        let header = Header {
            epoch: 0x8000_0001,
            cid: 4 * number,
            call: 1,
            seq: 1,
            serial: 1,
            kind: PacketType::DATA,
            flags: flags::CLIENT_INITIATED | flags::LAST_PACKET,
            user_status: 0,
            security_index: 0,
            checksum: 0,
            service: ServiceId::LOGIN.0,
        };
        let victim = SocketAddr::from(([192, 0, 2, 7], 999));
        let datagram = [&header.to_bytes()[..], &request].concat();
        cell.server_rx.handle_datagrams(now, [(victim, datagram.into())]);
    }
    cell.world.run_for(Duration::from_millis(100));
    log_in_from(&cell, 7, 7001).unwrap();
}

#[test]
fn a_place_where_the_user_was_before_counts_after_a_restart_too() {
    let mut cell = cell(32);
    cell.register("alice", "correct horse");
    log_in_from(&cell, 7, 7001).unwrap();
    cell.restart();
    for n in 0..100 {
        let at = SocketAddr::from(([192, 0, 2, 7], 6000 + n));
        let rx = cell.world.node_at(at, Default::default(), Limits::default());
        let service = rx.connection(cell.server_at, ServiceId::LOGIN, Security::null());
        let start = begun(&format!("user{n}"));
        let _ = cell.world.run(async move { service.call(&start).await });
    }
    log_in_from(&cell, 7, 7002).unwrap();
    let start = begun("bob");
    let rx = cell.world.node_at(([192, 0, 2, 7], 7003).into(), Default::default(), Limits::default());
    let service = rx.connection(cell.server_at, ServiceId::LOGIN, Security::null());
    let stranger = cell.world.run(async move { service.call(&start).await });
    assert_eq!(stranger.map(drop), Err(CallError::Abort(AbortCode::LGNSLOW)));
}

#[test]
fn a_login_with_a_key_is_never_slowed() {
    let cell = cell(33);
    cell.add_key("alice", &Key::new(1));
    for n in 0..100 {
        let (service, start) = (cell.anonymous(), begun(&format!("user{n}")));
        let _ = cell.world.run(async move { service.call(&start).await });
    }
    for _ in 0..50 {
        cell.log_in_with("alice", Key::new(2)).unwrap_err();
    }
    cell.log_in_with("alice", Key::new(1)).unwrap();
}

#[test]
fn an_ssh_key_gives_a_token_and_another_does_not() {
    let cell = cell(6);
    cell.add_key("alice", &Key::new(1));
    let grant = cell.log_in_with("alice", Key::new(1)).unwrap();
    assert!(matches!(grant.token, Token::Rxgk(_)));
    for (name, key) in [("alice", 2), ("bob", 1), ("mallory", 1)] {
        assert_eq!(cell.log_in_with(name, Key::new(key)), Err(LoginError::Denied), "{name} {key}");
    }
    let service = cell.with(&grant.token);
    let ways = cell.world.run(async move { client::list_ways(&service, &user("alice")).await }).unwrap();
    assert_eq!(ways.keys.iter().map(|key| key.comment.to_text()).collect::<Vec<_>>(), ["laptop"]);
}

#[test]
fn another_host_key_is_refused_before_anything_is_signed() {
    struct Never(Key);
    impl afs_login::Signer for Never {
        fn key(&self) -> &ssh_key::PublicKey {
            self.0.key()
        }
        fn sign(&self, _: &[u8]) -> Result<ssh_key::Signature, String> {
            panic!("it was asked to sign")
        }
    }
    let cell = cell(7);
    cell.add_key("alice", &Key::new(1));
    let other = LoginSecret::generate(&cell.env).host_key();
    let (service, env) = (cell.anonymous(), cell.env.clone());
    let outcome = cell.world.run(async move {
        client::login_with_ssh(&service, &login("alice"), &Never(Key::new(1)), |key| *key == other, &env)
            .await
    });
    assert_eq!(outcome, Err(LoginError::Host(cell.secret.host_key())));
}

#[test]
fn a_token_is_renewed_until_its_time_is_over() {
    let cell = cell(8);
    cell.register("alice", "correct horse");
    let mut grant = cell.log_in("alice", "correct horse").unwrap();
    let until = grant.renewable_until;
    let mut renewed = 0;
    while let Some(at) = grant.renew_at(cell.now()) {
        cell.world.run_for(Duration::from_secs(at.secs - cell.now().secs));
        let new = cell.renew("alice", &grant).unwrap();
        assert!(new.token.expires() > grant.token.expires() && new.renewable_until == until);
        grant = new;
        renewed += 1;
    }
    assert!((6..10).contains(&renewed), "{renewed}");
    assert!(grant.token.expires().unwrap() <= until && grant.renewal.is_empty());
}

#[test]
fn an_expired_token_renews_nothing() {
    let cell = cell(9);
    cell.register("alice", "correct horse");
    let grant = cell.log_in("alice", "correct horse").unwrap();
    cell.world.run_for(LIFETIMES.token + Duration::from_secs(10));
    assert!(matches!(cell.renew("alice", &grant), Err(LoginError::Call(_))));
}

#[test]
fn renewals_end_with_a_new_passphrase_a_removed_key_and_a_new_person_of_the_name() {
    let cell = cell(10);
    cell.register("alice", "correct horse");
    cell.add_key("alice", &Key::new(1));
    let first = cell.log_in("alice", "correct horse").unwrap();
    cell.renew("alice", &first).unwrap();
    cell.register("alice", "battery staple");
    assert_eq!(cell.renew("alice", &first), refused(AbortCode::LGNNOTRENEWABLE));
    assert_eq!(cell.log_in("alice", "correct horse"), Err(LoginError::Denied));
    let second = cell.log_in("alice", "battery staple").unwrap();
    let (service, key) = (cell.with(&second.token), Key::new(1).user_key());
    cell.world.run(async move { client::remove_ssh_key(&service, &user("alice"), &key).await }).unwrap();
    assert_eq!(cell.renew("alice", &second), refused(AbortCode::LGNNOTRENEWABLE));
    assert_eq!(cell.log_in_with("alice", Key::new(1)), Err(LoginError::Denied));
    let third = cell.log_in("alice", "battery staple").unwrap();
    cell.book.0.lock().unwrap().get_mut("alice").unwrap().id = ViceId(300);
    assert_eq!(cell.renew("alice", &third), refused(AbortCode::LGNNOTRENEWABLE));
    assert_eq!(cell.log_in("alice", "battery staple"), Err(LoginError::Denied));
}

#[test]
fn renewals_of_others_and_without_a_token_are_refused() {
    let cell = cell(11);
    cell.register("alice", "correct horse");
    cell.register("bob", "battery staple");
    let alice = cell.log_in("alice", "correct horse").unwrap();
    let mut bob = cell.log_in("bob", "battery staple").unwrap();
    bob.renewal = alice.renewal.clone();
    assert_eq!(cell.renew("bob", &bob), refused(AbortCode::LGNNOTRENEWABLE));
    let (service, env) = (cell.anonymous(), cell.env.clone());
    let outcome =
        cell.world.run(async move { client::renew(&service, &login("alice"), &alice.renewal, &env).await });
    assert_eq!(outcome, refused(AbortCode::LGNPERM));
}

#[test]
fn only_the_user_and_administrators_change_how_one_logs_in() {
    let cell = cell(12);
    for name in ["alice", "bob", "root"] {
        cell.register(name, "correct horse");
    }
    let change = |service: afs_rpc::Connection, name: &'static str| {
        let env = cell.env.clone();
        let secret = passphrase("battery staple");
        cell.world.run(async move {
            client::register_passphrase(&service, &cell_name(), &user(name), &secret, &env).await
        })
    };
    let token = |name: &str| cell.log_in(name, "correct horse").unwrap().token;
    let (bob, root) = (token("bob"), token("root"));
    assert_eq!(change(cell.anonymous(), "alice"), refused(AbortCode::LGNPERM));
    assert_eq!(change(cell.with(&bob), "alice"), refused(AbortCode::LGNPERM));
    assert_eq!(change(cell.with(&bob), "nobody"), refused(AbortCode::LGNPERM));
    assert_eq!(change(cell.with(&root), "nobody"), refused(AbortCode::LGNNOUSER));
    let mut readable = login("alice");
    readable.level = Level::Auth;
    let readable = cell.log_in_as(readable, "correct horse").unwrap().token;
    assert_eq!(change(cell.with(&readable), "alice"), refused(AbortCode::LGNPROTECTION));
    change(cell.with(&root), "alice").unwrap();
    cell.log_in("alice", "battery staple").unwrap();
    change(cell.with(&bob), "bob").unwrap();
    cell.log_in("bob", "battery staple").unwrap();
}

#[test]
fn a_passphrase_has_a_least_length_and_can_be_taken_away() {
    let cell = cell(13);
    let (service, env) = (cell.as_owner(), cell.env.clone());
    let short = cell.world.run(async move {
        client::register_passphrase(&service, &cell_name(), &user("alice"), &passphrase("seven77"), &env)
            .await
    });
    assert_eq!(short, Err(LoginError::TooShort(8)));
    cell.register("alice", "correct horse");
    let service = cell.as_owner();
    cell.world.run(async move { client::remove_passphrase(&service, &user("alice")).await }).unwrap();
    assert_eq!(cell.log_in("alice", "correct horse"), Err(LoginError::Denied));
}

#[test]
fn a_user_has_so_many_keys_and_no_more() {
    let cell = cell(14);
    for seed in 0..32 {
        cell.add_key("alice", &Key::new(seed));
    }
    cell.add_key("alice", &Key::new(7));
    let (service, key) = (cell.as_owner(), Key::new(99).user_key());
    let outcome =
        cell.world.run(async move { client::add_ssh_key(&service, &user("alice"), &key, "").await });
    assert_eq!(outcome, refused(AbortCode::LGNFULL));
    cell.log_in_with("alice", Key::new(31)).unwrap();
}

#[test]
fn secrets_are_not_shown() {
    let cell = cell(15);
    cell.register("alice", "correct horse");
    let grant = cell.log_in("alice", "correct horse").unwrap();
    let encoded = grant.encode();
    assert_eq!(Grant::decode(&encoded), Ok(grant.clone()));
    let shown = format!("{grant:?} {:?} {:?} {:?}", cell.secret, cell.server, passphrase("correct horse"));
    assert!(!shown.contains("correct horse"), "{shown}");
    let Token::Rxgk(token) = &grant.token else { panic!("{shown}") };
    let key = token.key.secret().expose();
    for secret in [key, &cell.secret.encode()[..64]] {
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let list = format!("{secret:?}");
        assert!(!shown.contains(&hex[..16]) && !shown.contains(&list[1..20]), "{shown}");
    }
    let again = LoginSecret::decode(&cell.secret.encode()).unwrap();
    assert_eq!(again.host_key(), cell.secret.host_key());
}
