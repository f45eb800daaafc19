//! A stored token, for tests and as a seed for fuzzing.

#![allow(clippy::unwrap_used, reason = "a sample that cannot be made is a failed test")]

use super::kept::KeptToken;
use afs_auth::Token;
use afs_auth::crypto::EncType;
use afs_auth::keys::{KeyKind, KeyRing, generate};
use afs_auth::rxgk::{Minting, mint};
use afs_login::Grant;
use afs_rpc::{Level, Parts, Terms, UnixTime};
use afs_wire::ids::CellName;
use afs_wire::login::Renewal;
use std::net::Ipv4Addr;

/// A token of a user of `cell`, valid until `end` in Unix seconds.
pub(super) fn kept(cell: &str, end: u64) -> KeptToken {
    let env = Parts::default().with_random(|out| out.fill(0x5a)).shared();
    let mut keys = KeyRing::default();
    keys.add(generate(KeyKind::Rxgk, 20, 1, &env).unwrap()).unwrap();
    let (expires, enctype) = (UnixTime { secs: end, nanos: 0 }, EncType::DEFAULT);
    let minting =
        Minting { name: "alice".into(), level: Level::Crypt, expires, enctype, terms: Terms::default() };
    let token = Token::Rxgk(mint(&keys, &minting, &env).unwrap());
    let renewal = Renewal::new([9; 100]).unwrap();
    let renewable_until = UnixTime { secs: end + 1000, nanos: 0 };
    KeptToken {
        cell: CellName::new(cell).unwrap(),
        user: "alice".into(),
        grant: Grant { token, renewal, renewable_until, host_key: None, without: Vec::new() },
        servers: vec![Ipv4Addr::new(192, 0, 2, 1)],
        base_port: 7000,
    }
}
