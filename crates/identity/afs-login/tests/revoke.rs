//! Revoked tokens: who may revoke whose, and what is left of a login afterwards.

use crate::cell;

use std::net::{IpAddr, Ipv4Addr};

use afs_login::Grant;
use afs_login::client::{self, LoginError, Revoked};
use afs_rpc::{CallError, Connection};
use afs_wire::error::AbortCode;
use cell::{Cell, Key, user};

const PASSPHRASE: &str = "correct horse";

/// A cell in which everybody has logged in with a passphrase.
fn cell_with(seed: u64, names: &[&str]) -> (Cell, Vec<Grant>) {
    let cell = cell::cell(seed);
    let log_in = |name: &&str| {
        cell.register(name, PASSPHRASE);
        cell.log_in(name, PASSPHRASE).unwrap()
    };
    let grants = names.iter().map(log_in).collect();
    (cell, grants)
}

fn revoke(cell: &Cell, service: Connection, revoked: Revoked, lock: bool) -> Result<Vec<String>, LoginError> {
    cell.world.run(async move { client::revoke(&service, &revoked, lock).await })
}

fn of(name: &str) -> Revoked {
    Revoked::User(user(name))
}

fn refused<T>(code: AbortCode) -> Result<T, LoginError> {
    Err(LoginError::Call(CallError::Abort(code)))
}

/// Whether the servers of the cell take the token for its user's.
fn counts(cell: &Cell, name: &str, grant: &Grant) -> bool {
    let service = cell.with(&grant.token);
    let user = user(name);
    let listed = cell.world.run(async move { client::list_ways(&service, &user).await }).is_ok();
    let renewed = cell.renew(name, grant).is_ok();
    let narrowed = cell.change_groups(name, grant, &client::GroupChange::default()).is_ok();
    assert_eq!((listed, renewed), (narrowed, narrowed), "a token counts at every call or at none");
    listed
}

#[test]
fn all_tokens_of_a_user_end_and_those_of_others_and_later_ones_count() {
    let (cell, grants) = cell_with(60, &["alice", "bob"]);
    let [alice, bob] = grants.try_into().unwrap_or_else(|_| panic!("two"));
    let another = cell.log_in("alice", PASSPHRASE).unwrap();
    assert!(counts(&cell, "alice", &alice) && counts(&cell, "alice", &another));
    assert_eq!(revoke(&cell, cell.as_owner(), of("alice"), false).unwrap(), ["alice"]);
    assert!(!counts(&cell, "alice", &alice) && !counts(&cell, "alice", &another));
    assert!(counts(&cell, "bob", &bob));
    let later = cell.log_in("alice", PASSPHRASE).unwrap();
    assert!(counts(&cell, "alice", &later), "in the same second, too");
    let renewed = cell.renew("alice", &later).unwrap();
    assert!(counts(&cell, "alice", &renewed));
    // Twice at the same time of the clock.
    revoke(&cell, cell.as_owner(), of("alice"), false).unwrap();
    assert!(!counts(&cell, "alice", &later) && !counts(&cell, "alice", &renewed));
    // What renewed the earlier token renews no later one.
    let last = cell.log_in("alice", PASSPHRASE).unwrap();
    let mixed = Grant { renewal: later.renewal, ..last };
    assert_eq!(cell.renew("alice", &mixed), refused(AbortCode::LGNNOTRENEWABLE));
}

#[test]
fn users_revoke_their_own_and_administrators_those_of_everybody() {
    let (cell, grants) = cell_with(61, &["alice", "bob", "root"]);
    let [alice, bob, root] = grants.try_into().unwrap_or_else(|_| panic!("three"));
    assert_eq!(revoke(&cell, cell.with(&bob.token), of("alice"), false), refused(AbortCode::LGNPERM));
    assert_eq!(revoke(&cell, cell.anonymous(), of("alice"), false), refused(AbortCode::LGNPERM));
    assert!(counts(&cell, "alice", &alice));
    assert_eq!(revoke(&cell, cell.with(&alice.token), of("alice"), false).unwrap(), ["alice"]);
    assert!(!counts(&cell, "alice", &alice));
    // A revoked token revokes nothing any more, and sets no passphrase.
    assert_eq!(revoke(&cell, cell.with(&alice.token), of("alice"), false), refused(AbortCode::RXGKEXPIRED));
    assert_eq!(revoke(&cell, cell.with(&root.token), of("bob"), false).unwrap(), ["bob"]);
    assert!(!counts(&cell, "bob", &bob));
    assert_eq!(revoke(&cell, cell.with(&root.token), of("nobody"), false), refused(AbortCode::LGNNOUSER));
    revoke(&cell, cell.as_owner(), of("root"), false).unwrap();
    assert_eq!(revoke(&cell, cell.with(&root.token), of("alice"), false), refused(AbortCode::RXGKEXPIRED));
}

#[test]
fn a_locked_user_logs_in_no_more_until_somebody_sets_a_passphrase() {
    let (cell, grants) = cell_with(62, &["alice", "bob"]);
    cell.add_key("alice", &Key::new(7));
    cell.log_in_with("alice", Key::new(7)).unwrap();
    revoke(&cell, cell.as_owner(), of("alice"), true).unwrap();
    assert!(!counts(&cell, "alice", &grants[0]));
    assert_eq!(cell.log_in("alice", PASSPHRASE), Err(LoginError::Denied));
    assert_eq!(cell.log_in_with("alice", Key::new(7)), Err(LoginError::Denied));
    assert!(counts(&cell, "bob", &cell.log_in("bob", PASSPHRASE).unwrap()));
    cell.register("alice", PASSPHRASE);
    assert!(counts(&cell, "alice", &cell.log_in("alice", PASSPHRASE).unwrap()));
}

#[test]
fn a_host_ends_the_tokens_of_all_who_have_logged_in_there() {
    let (cell, grants) = cell_with(63, &["alice", "root"]);
    let [alice, root] = grants.try_into().unwrap_or_else(|_| panic!("two"));
    cell.register("bob", PASSPHRASE);
    let here = Revoked::Host(cell.server_at.ip());
    let elsewhere = Revoked::Host(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9)));
    assert_eq!(revoke(&cell, cell.with(&alice.token), here.clone(), false), refused(AbortCode::LGNPERM));
    assert_eq!(revoke(&cell, cell.with(&root.token), elsewhere, false).unwrap(), [""; 0]);
    assert!(counts(&cell, "alice", &alice) && counts(&cell, "root", &root));
    let mut revoked = revoke(&cell, cell.with(&root.token), here, false).unwrap();
    revoked.sort();
    assert_eq!(revoked, ["alice", "root"], "not bob, who has never logged in");
    assert!(!counts(&cell, "alice", &alice) && !counts(&cell, "root", &root));
}
