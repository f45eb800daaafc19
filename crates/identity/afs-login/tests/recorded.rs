//! What the login service records.

use crate::cell;

use afs_login::client::{self, Revoked};
use afs_wire::error::AbortCode;
use cell::{Cell, Key, user};

const PASSPHRASE: &str = "correct horse";

/// What was recorded since the last time.
fn records(cell: &Cell) -> Vec<(&'static str, String, AbortCode)> {
    std::mem::take(&mut *cell.log.0.lock().unwrap())
}

fn good(call: &'static str, about: &str) -> Vec<(&'static str, String, AbortCode)> {
    vec![(call, about.to_owned(), AbortCode::OK)]
}

#[test]
fn logins_and_changes_to_ways_to_log_in_are_recorded_with_their_user_and_outcome() {
    let cell = cell::cell(90);
    let key = Key::new(7).user_key();
    cell.register("alice", PASSPHRASE);
    assert_eq!(records(&cell), good("RegisterFinish", "alice"));
    cell.add_key("alice", &Key::new(7));
    assert_eq!(records(&cell), good("AddSshKey", &format!("alice {key}")));
    let grant = cell.log_in("alice", PASSPHRASE).unwrap();
    assert_eq!(records(&cell), good("PassphraseFinish", "alice"));
    cell.log_in_with("alice", Key::new(7)).unwrap();
    assert_eq!(records(&cell), good("SshFinish", "alice"));
    cell.log_in_with("bob", Key::new(7)).unwrap_err();
    assert_eq!(records(&cell), [("SshFinish", "bob".into(), AbortCode::LGNDENIED)]);
    cell.renew("alice", &grant).unwrap();
    assert_eq!(records(&cell), [], "nothing changes for others");

    let (service, about) = (cell.with(&grant.token), format!("alice {key}"));
    cell.world.run(async move { client::remove_ssh_key(&service, &user("alice"), &key).await }).unwrap();
    assert_eq!(records(&cell), good("RemoveSshKey", &about));
    let service = cell.with(&grant.token);
    cell.world.run(async move { client::remove_passphrase(&service, &user("alice")).await }).unwrap();
    assert_eq!(records(&cell), good("RemovePassphrase", "alice"));
}

#[test]
fn revocations_are_recorded_with_whom_they_concern() {
    let cell = cell::cell(91);
    cell.register("alice", PASSPHRASE);
    let grant = cell.log_in("alice", PASSPHRASE).unwrap();
    records(&cell);
    let revoke = |service, revoked: Revoked, lock| {
        let done = cell.world.run(async move { client::revoke(&service, &revoked, lock).await });
        (done.is_ok(), records(&cell))
    };
    let bob = || Revoked::User(user("bob"));
    let refused = vec![("Revoke", "bob".to_owned(), AbortCode::LGNPERM)];
    assert_eq!(revoke(cell.with(&grant.token), bob(), false), (false, refused));
    let locked = good("Revoke", "bob, with their ways to log in");
    assert_eq!(revoke(cell.as_owner(), bob(), true), (true, locked));
    let host = Revoked::Host("192.0.2.9".parse().unwrap());
    assert_eq!(revoke(cell.as_owner(), host, false).1, good("Revoke", "the users of 192.0.2.9"));
}
