//! Keys of encrypted caches: to whom they are given, and that they stay the same.

use crate::cell;

use afs_login::client::{self, LoginError};
use afs_rpc::{CallError, Connection, Level};
use afs_wire::error::AbortCode;
use cell::{Cell, Key, login, user};

const PASSPHRASE: &str = "correct horse";

fn asked(cell: &Cell, service: Connection) -> Result<Vec<u8>, LoginError> {
    cell.world.run(async move { client::cache_key(&service).await }).map(|key| key.expose().to_vec())
}

fn refused<T>(code: AbortCode) -> Result<T, LoginError> {
    Err(LoginError::Call(CallError::Abort(code)))
}

#[test]
fn the_key_is_the_users_and_the_same_after_each_login() {
    let mut cell = cell::cell(70);
    let mut keys = Vec::new();
    for name in ["alice", "bob"] {
        cell.register(name, PASSPHRASE);
        let grant = cell.log_in(name, PASSPHRASE).unwrap();
        keys.push(asked(&cell, cell.with(&grant.token)).unwrap());
    }
    assert!(keys[0] != keys[1] && keys.iter().all(|key| key.len() == 32));
    cell.register("alice", "another passphrase");
    cell.add_key("alice", &Key::new(7));
    cell.restart();
    let grants = [
        cell.log_in("alice", "another passphrase").unwrap(),
        cell.log_in_with("alice", Key::new(7)).unwrap(),
    ];
    for grant in grants {
        assert_eq!(asked(&cell, cell.with(&grant.token)).unwrap(), keys[0]);
    }
}

#[test]
fn nobody_else_gets_it_and_nobody_over_a_connection_that_can_be_read() {
    let cell = cell::cell(71);
    cell.register("alice", PASSPHRASE);
    for service in [cell.anonymous(), cell.as_owner()] {
        assert_eq!(asked(&cell, service), refused(AbortCode::LGNPERM));
    }
    for level in [Level::Auth, Level::Clear] {
        let mut readable = login("alice");
        readable.level = level;
        let grant = cell.log_in_as(readable, PASSPHRASE).unwrap();
        assert_eq!(asked(&cell, cell.with(&grant.token)), refused(AbortCode::LGNPROTECTION));
    }
}

#[test]
fn a_revoked_token_gets_no_key_and_a_later_login_the_same_as_before() {
    let cell = cell::cell(72);
    cell.register("alice", PASSPHRASE);
    let stolen = cell.log_in("alice", PASSPHRASE).unwrap();
    let key = asked(&cell, cell.with(&stolen.token)).unwrap();
    let (service, revoked) = (cell.as_owner(), client::Revoked::User(user("alice")));
    cell.world.run(async move { client::revoke(&service, &revoked, true).await }).unwrap();
    assert_eq!(asked(&cell, cell.with(&stolen.token)), refused(AbortCode::RXGKEXPIRED));
    cell.register("alice", "another passphrase");
    let later = cell.log_in("alice", "another passphrase").unwrap();
    assert_eq!(asked(&cell, cell.with(&later.token)).unwrap(), key);
}

#[test]
fn a_later_user_of_the_same_name_has_another_key() {
    let cell = cell::cell(73);
    cell.register("alice", PASSPHRASE);
    let asked_now = || {
        let grant = cell.log_in("alice", PASSPHRASE).unwrap();
        asked(&cell, cell.with(&grant.token)).unwrap()
    };
    let key = asked_now();
    cell.book.0.lock().unwrap().get_mut("alice").unwrap().id.0 += 100;
    cell.register("alice", PASSPHRASE);
    assert_ne!(asked_now(), key);
}
