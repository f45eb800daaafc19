//! Runs the fuzz target over seeded inputs: random ones, and valid ones with changes.

#![allow(clippy::unwrap_used)]

use crate::cell;

use afs_login::fuzzing::{login_values, ssh_agent_replies};
use cell::{Key, cell};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        login_values(&bytes);
        ssh_agent_replies(&bytes);
    }
}

#[test]
fn keys_and_signatures_of_an_agent_with_changes() {
    let string = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let blob = Key::new(1).user_key().blob().to_vec();
    let keys = [&[0, 0, 0, 1][..], &string(&blob), &string(b"comment")].concat();
    let signature = string(&[string(b"ssh-ed25519"), string(&[7; 64])].concat());
    for sample in [keys, signature] {
        for at in 0..sample.len() {
            let mut changed = sample.clone();
            changed[at] ^= 0x41;
            ssh_agent_replies(&changed);
            ssh_agent_replies(&sample[..at]);
        }
    }
}

#[test]
fn good_values_with_changes() {
    let cell = cell(30);
    cell.add_key("alice", &Key::new(1));
    let grant = cell.log_in_with("alice", Key::new(1)).unwrap().encode().to_vec();
    let secret = cell.secret.encode().to_vec();
    let key = Key::new(1).user_key().blob().to_vec();
    for sample in [grant, secret, key] {
        for at in 0..sample.len() {
            let mut changed = sample.clone();
            changed[at] ^= 0x41;
            login_values(&changed);
            login_values(&sample[..at]);
        }
        login_values(&sample);
    }
}
