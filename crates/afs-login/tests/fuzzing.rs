//! Runs the fuzz target over seeded inputs: random ones, and valid ones with changes.

#![allow(clippy::unwrap_used)]

use crate::cell;

use afs_login::fuzzing::login_values;
use cell::{Key, cell};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        login_values(&bytes);
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
