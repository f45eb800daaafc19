//! Messages that were changed, repeated, or forged.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;

use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_login::client::{self, LoginError};
use afs_rpc::{CallError, Connection};
use afs_wire::error::AbortCode;
use afs_wire::login::{PassphraseFinish, SshFinish};
use cell::{Cell, Key, cell, login, passphrase};
use proptest::prelude::*;

use crate::middle::{Attack, Middle, Tape};

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_bit_of_a_login_with_a_passphrase_gives_no_token(message in 0..4usize, place in 0.0..1.0f64) {
        let cell = cell(20);
        cell.register("alice", "correct horse");
        let meddler = flipping(cell.anonymous(), message, place);
        let (env, changed) = (cell.env.clone(), meddler.changed.clone());
        let outcome = cell.world.run(async move {
            client::login_with_passphrase(&meddler, &login("alice"), &passphrase("correct horse"), &env).await
        });
        prop_assert!(outcome.is_err() || !changed.load(Ordering::SeqCst), "{:?}", outcome);
    }

    #[test]
    fn a_changed_bit_of_a_login_with_a_key_gives_no_token(message in 0..4usize, place in 0.0..1.0f64) {
        let cell = cell(21);
        cell.add_key("alice", &Key::new(1));
        let meddler = flipping(cell.anonymous(), message, place);
        let (env, changed) = (cell.env.clone(), meddler.changed.clone());
        let known = cell.secret.host_key();
        let outcome = cell.world.run(async move {
            client::login_with_ssh(&meddler, &login("alice"), &Key::new(1), |key| *key == known, &env).await
        });
        prop_assert!(outcome.is_err() || !changed.load(Ordering::SeqCst), "{:?}", outcome);
    }

    #[test]
    fn a_changed_bit_of_a_renewal_gives_no_token(message in 0..2usize, place in 0.0..1.0f64) {
        let cell = cell(22);
        cell.add_key("alice", &Key::new(1));
        let grant = cell.log_in_with("alice", Key::new(1)).unwrap();
        let meddler = flipping(cell.with(&grant.token), message, place);
        let (env, changed) = (cell.env.clone(), meddler.changed.clone());
        let outcome = cell.world.run(async move {
            client::renew(&meddler, &login("alice"), &grant.renewal, &env).await
        });
        prop_assert!(outcome.is_err() || !changed.load(Ordering::SeqCst), "{:?}", outcome);
    }
}

/// Found by the test above: the length of the key within the signature was changed, which its parser does not verify.
#[test]
fn a_signature_in_another_form_gives_no_token() {
    let cell = cell(21);
    cell.add_key("alice", &Key::new(1));
    let meddler = flipping(cell.anonymous(), 2, 0.590_559_833_759_737_3);
    let (env, changed) = (cell.env.clone(), meddler.changed.clone());
    let known = cell.secret.host_key();
    let outcome = cell.world.run(async move {
        client::login_with_ssh(&meddler, &login("alice"), &Key::new(1), |key| *key == known, &env).await
    });
    assert!(changed.load(Ordering::SeqCst) && outcome.is_err(), "{outcome:?}");
}

/// A connection of which one bit of one message is changed.
fn flipping(service: Connection, message: usize, place: f64) -> Middle {
    Middle::attacking(service, &Tape::default(), message, Attack::Flip(place))
}

/// One whose messages are recorded.
fn recorded(cell: &Cell) -> Middle {
    Middle::listening(cell.anonymous(), &Tape::default())
}

#[test]
fn a_finish_said_again_gives_nothing_that_another_could_open_and_soon_nothing_at_all() {
    let cell = cell(23);
    cell.register("alice", "correct horse");
    let recorder = recorded(&cell);
    let (env, heard) = (cell.env.clone(), recorder.clone());
    let grant = cell.world.run(async move {
        client::login_with_passphrase(&recorder, &login("alice"), &passphrase("correct horse"), &env).await
    });
    grant.unwrap();
    let finish: PassphraseFinish = heard.heard();
    let again = |finish: PassphraseFinish| {
        let service = cell.anonymous();
        cell.world.run(async move { service.call(&finish).await })
    };
    // Sealed with a key that only the first client has.
    assert!(again(finish.clone()).is_ok());
    cell.world.run_for(Duration::from_secs(130));
    assert_eq!(again(finish).unwrap_err(), CallError::Abort(AbortCode::LGNOVER));
}

#[test]
fn a_signature_counts_in_its_own_login_only() {
    let cell = cell(24);
    cell.add_key("alice", &Key::new(1));
    let earlier = recorded(&cell);
    let (env, known) = (cell.env.clone(), cell.secret.host_key());
    let log_in = |recorder: Middle| {
        let env = env.clone();
        cell.world.run(async move {
            client::login_with_ssh(&recorder, &login("alice"), &Key::new(1), |key| *key == known, &env).await
        })
    };
    log_in(earlier.clone()).unwrap();
    let later = recorded(&cell);
    log_in(later.clone()).unwrap();
    let first: SshFinish = earlier.heard();
    let mut second: SshFinish = later.heard();
    second.signature = first.signature;
    let service = cell.anonymous();
    let outcome = cell.world.run(async move { service.call(&second).await });
    assert_eq!(outcome.unwrap_err(), CallError::Abort(AbortCode::LGNDENIED));
}

#[test]
fn another_version_is_refused_as_such() {
    let cell = cell(25);
    let service = cell.anonymous();
    let ask = PassphraseFinish { version: 2, attempt: Default::default(), message: Default::default() };
    let outcome = cell.world.run(async move { service.call(&ask).await });
    assert_eq!(outcome.unwrap_err(), CallError::Abort(AbortCode::LGNVERSION));
}

#[test]
fn a_service_without_the_record_gives_no_token() {
    // Another service of the same name, with a login secret of its own.
    let (cell, other) = (cell(26), cell(27));
    cell.register("alice", "correct horse");
    other.register("alice", "something else");
    assert_eq!(other.log_in("alice", "correct horse"), Err(LoginError::Denied));
}
