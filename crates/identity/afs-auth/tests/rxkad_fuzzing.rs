//! Runs the fuzz targets over seeded inputs: random ones, and real ones with changes.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use crate::support;

use afs_auth::Secret;
use afs_auth::keys::{KeyKind, KeyRing, generate};
use afs_auth::rxkad::fuzzing::TARGETS;
use afs_auth::rxkad::local_token;
use afs_rpc::{Level, Parts};
use support::Dice;

/// Valid input of each target.
fn real() -> Vec<Vec<u8>> {
    let env = Parts::default().with_random(|bytes| bytes.fill(5)).shared();
    let mut keys = KeyRing::default();
    keys.add(generate(KeyKind::RxkadKrb5, 18, 3, &env).unwrap()).unwrap();
    let file: Secret = keys.to_key_file_ext();
    let ticket = local_token(&keys, &env, Level::Clear).unwrap().ticket().to_vec();
    let mut keytab =
        vec![5, 2, 0, 0, 0, 40, 0, 1, 0, 1, b'R', 0, 3, b'a', b'f', b's', 0, 0, 0, 1, 0, 0, 0, 0, 7];
    keytab.extend([0, 17, 0, 16]);
    keytab.extend([9; 16]);
    let response =
        [&[0, 0, 0, 0, 2, 0, 0, 0, 0][..], &[3; 40], &[0, 0, 0, 213, 0, 0, 0, ticket.len() as u8], &ticket]
            .concat();
    let challenge = vec![1, 0, 0, 0, 2, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    let part = "63693067a00703050000080000a1133011a003020101a10a040868c87a15f78c4ae6a2021b00a310300ea003020100\
        a10730051b03616673a40b3009a003020100a1020400a511180f31393730303130313030303030305a\
        a711180f32303338303131393033313430375a";
    let part =
        (0..part.len() / 2).map(|at| u8::from_str_radix(&part[at * 2..at * 2 + 2], 16).unwrap()).collect();
    vec![file.expose().to_vec(), keytab, ticket, part, response, challenge]
}

#[test]
fn nothing_makes_a_target_panic() {
    let (mut dice, real) = (Dice::new(41), real());
    for round in 0..20_000 {
        let mut bytes = match round % 3 {
            0 => (0..dice.below(300)).map(|_| dice.next() as u8).collect(),
            _ => real[dice.below(real.len() as u64) as usize].clone(),
        };
        for _ in 0..dice.below(4) {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at..].iter_mut().take(1).for_each(|byte| *byte = dice.next() as u8);
        }
        bytes.truncate(if dice.per_mille(300) {
            dice.below(bytes.len() as u64 + 1) as usize
        } else {
            bytes.len()
        });
        TARGETS.iter().for_each(|(_, run)| run(&bytes));
    }
}
