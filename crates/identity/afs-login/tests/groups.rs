//! Tokens without some groups: suspending, resuming and renewing.

use crate::cell;

use std::time::Duration;

use afs_login::client::{self, GroupChange, LoginError};
use afs_login::{Grant, client::Login};
use afs_rpc::{CallError, Level};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::login::Renewal;
use cell::{Cell, LIFETIMES, PROJECT, cell_name, login, passphrase, user};

const ADMINISTRATORS: &str = "system:administrators";
const PROJECT_NAME: &str = "alice:project";

fn refused<T>(code: AbortCode) -> Result<T, LoginError> {
    Err(LoginError::Call(CallError::Abort(code)))
}

fn change(suspend: &[&str], resume: &[&str], lasting: bool) -> GroupChange {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    GroupChange { suspend: names(suspend), resume: names(resume), lasting }
}

fn suspend(groups: &[&str]) -> GroupChange {
    change(groups, &[], false)
}

fn resume(groups: &[&str]) -> GroupChange {
    change(&[], groups, false)
}

/// A cell in which this user has logged in.
fn logged_in(seed: u64, name: &str) -> (Cell, Grant) {
    let cell = cell::cell(seed);
    cell.register(name, "correct horse");
    let grant = cell.log_in(name, "correct horse").unwrap();
    (cell, grant)
}

#[test]
fn groups_are_suspended_and_resumed_without_another_login() {
    let (cell, whole) = logged_in(40, "alice");
    assert_eq!((cell.suspended(&whole), &whole.without), (vec![], &vec![]));
    let one = cell.change_groups("alice", &whole, &suspend(&[PROJECT_NAME])).unwrap();
    assert_eq!((cell.suspended(&one), &one.without), (vec![PROJECT], &vec![PROJECT_NAME.to_owned()]));
    assert_eq!(one.token.expires(), whole.token.expires(), "it lasts no longer");
    let two = cell.change_groups("alice", &one, &suspend(&[ADMINISTRATORS, "ALICE:project"])).unwrap();
    assert_eq!(cell.suspended(&two), [PROJECT, ViceId::ADMINISTRATORS]);
    let back = cell.change_groups("alice", &two, &resume(&[PROJECT_NAME, "alice:other"])).unwrap();
    assert_eq!(cell.suspended(&back), [ViceId::ADMINISTRATORS]);
    let whole = cell.change_groups("alice", &back, &resume(&[ADMINISTRATORS])).unwrap();
    assert_eq!((cell.suspended(&whole), &whole.without), (vec![], &vec![]));
}

#[test]
fn a_renewed_token_is_without_the_same_groups_and_resumes_them() {
    let (cell, whole) = logged_in(41, "alice");
    let mut grant = cell.change_groups("alice", &whole, &suspend(&[PROJECT_NAME])).unwrap();
    for _ in 0..3 {
        cell.world.run_for(LIFETIMES.token.mul_f64(0.9));
        let renewed = cell.renew("alice", &grant).unwrap();
        assert!(renewed.token.expires() > grant.token.expires());
        assert_eq!((cell.suspended(&renewed), &renewed.without), (vec![PROJECT], &grant.without));
        grant = renewed;
    }
    assert_eq!(cell.suspended(&cell.change_groups("alice", &grant, &resume(&[PROJECT_NAME])).unwrap()), []);
}

#[test]
fn what_a_login_was_made_without_comes_back_with_another_login_alone() {
    let (cell, whole) = logged_in(42, "alice");
    let lasting = cell.change_groups("alice", &whole, &change(&[PROJECT_NAME], &[], true)).unwrap();
    assert_eq!(cell.change_groups("alice", &lasting, &resume(&[PROJECT_NAME])), Err(LoginError::Fixed));
    let more = cell.change_groups("alice", &lasting, &suspend(&[ADMINISTRATORS])).unwrap();
    let less = cell.change_groups("alice", &more, &resume(&[ADMINISTRATORS])).unwrap();
    assert_eq!(cell.suspended(&less), [PROJECT]);
    cell.world.run_for(LIFETIMES.token.mul_f64(0.9));
    let renewed = cell.renew("alice", &less).unwrap();
    assert_eq!(cell.suspended(&renewed), [PROJECT]);
    assert_eq!(cell.change_groups("alice", &renewed, &resume(&[PROJECT_NAME])), Err(LoginError::Fixed));
    // Also if a token with the group is renewed by it.
    let mixed = Grant { renewal: lasting.renewal.clone(), ..cell.log_in("alice", "correct horse").unwrap() };
    assert_eq!(cell.suspended(&cell.renew("alice", &mixed).unwrap()), [PROJECT]);
}

#[test]
fn suspending_needs_the_token_alone_and_resuming_the_login() {
    let (cell, whole) = logged_in(43, "alice");
    let without_right = |grant: Grant, renewal: Renewal| Grant { renewal, ..grant };
    let end = whole.token.expires();
    let narrow = without_right(whole.clone(), Renewal::empty());
    let narrow = cell.change_groups("alice", &narrow, &suspend(&[PROJECT_NAME])).unwrap();
    assert_eq!((cell.suspended(&narrow), narrow.token.expires()), (vec![PROJECT], end));
    assert!(narrow.renewal.is_empty());
    let resumed = |renewal: Renewal| {
        cell.change_groups("alice", &without_right(narrow.clone(), renewal), &resume(&[PROJECT_NAME]))
    };
    assert_eq!(resumed(Renewal::empty()), refused(AbortCode::LGNNOTRENEWABLE));
    // A forged right, and one of another user.
    let mut forged = whole.renewal.to_vec();
    forged[40] ^= 1;
    assert_eq!(resumed(Renewal::new(forged).unwrap()), refused(AbortCode::LGNNOTRENEWABLE));
    cell.register("bob", "battery staple");
    let bob = cell.log_in("bob", "battery staple").unwrap();
    assert_eq!(resumed(bob.renewal), refused(AbortCode::LGNNOTRENEWABLE));
    assert_eq!(cell.suspended(&resumed(whole.renewal.clone()).unwrap()), []);
    // A right that does not count any more.
    cell.register("alice", "battery staple");
    assert_eq!(resumed(whole.renewal), refused(AbortCode::LGNNOTRENEWABLE));
}

#[test]
fn groups_that_are_none_or_of_everybody_are_refused_by_name() {
    let (cell, whole) = logged_in(44, "alice");
    for name in
        ["alice:nothing", "bob", "system:anyuser", "system:authuser", "anonymous", "", &"g".repeat(65)]
    {
        for order in [suspend(&[PROJECT_NAME, name]), resume(&[name])] {
            assert_eq!(cell.change_groups("alice", &whole, &order), Err(LoginError::NoGroup), "{name}");
        }
    }
    let many: Vec<&str> = std::iter::repeat_n(PROJECT_NAME, 33).collect();
    assert_eq!(cell.change_groups("alice", &whole, &suspend(&many)), Err(LoginError::TooManyGroups));
}

#[test]
fn only_a_protected_connection_with_a_token_changes_groups() {
    let (cell, whole) = logged_in(45, "alice");
    let by = |service: afs_rpc::Connection, level: Level| {
        let (env, renewal) = (cell.env.clone(), whole.renewal.clone());
        let login = Login { level, ..login("alice") };
        let order = suspend(&[PROJECT_NAME]);
        cell.world.run(async move { client::change_groups(&service, &login, &renewal, &order, &env).await })
    };
    assert_eq!(by(cell.anonymous(), Level::Crypt), refused(AbortCode::LGNPERM));
    assert_eq!(by(cell.as_owner(), Level::Crypt), refused(AbortCode::LGNPERM));
    let clear = Login { level: Level::Clear, ..login("alice") };
    let clear = cell.log_in_as(clear, "correct horse").unwrap();
    assert_eq!(by(cell.with(&clear.token), Level::Clear), refused(AbortCode::LGNPROTECTION));
    cell.world.run_for(LIFETIMES.token + Duration::from_secs(10));
    assert!(by(cell.with(&whole.token), Level::Crypt).is_err(), "it has expired");
}

#[test]
fn an_administrator_without_the_group_changes_only_the_own_ways_to_log_in() {
    let (cell, whole) = logged_in(46, "root");
    cell.register("alice", "correct horse");
    let grant = cell.change_groups("root", &whole, &suspend(&[ADMINISTRATORS])).unwrap();
    let set = |grant: &Grant, name: &'static str| {
        let (service, env) = (cell.with(&grant.token), cell.env.clone());
        cell.world.run(async move {
            let secret = passphrase("battery staple");
            client::register_passphrase(&service, &cell_name(), &user(name), &secret, &env).await
        })
    };
    assert_eq!(set(&grant, "alice"), refused(AbortCode::LGNPERM));
    set(&whole, "alice").unwrap();
    set(&grant, "root").unwrap();
}
