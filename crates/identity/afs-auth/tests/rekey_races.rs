//! Packets of earlier and later keys, recorded and forged, around each change of a connection's key.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::cell;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use afs_auth::crypto::EncType;
use afs_auth::rxgk::Variant;
use afs_rpc::Level;
use bytes::Bytes;
use cell::Cell;
use cell::support::{Dice, Third, Weather};

/// Packets overtake each other by more than a change of keys takes.
const ROUGH: Weather =
    Weather { loss: 30, repeat: 30, delay_min_us: 100, delay_max_us: 5000, in_order: false };
/// Packets that are remembered.
const HEARD_MAX: usize = 4000;
/// Of an Rx packet's header: its type, and the number of its key.
const TYPE_AT: usize = 20;
const NUMBER_AT: usize = 24;
const DATA: u8 = 1;
const CHALLENGE: u8 = 6;
const RESPONSE: u8 = 7;

/// What is sent, by the number of its key and that of the latest packet: (kind, difference).
type Counts = Arc<Mutex<BTreeMap<(&'static str, i32), u64>>>;

/// Repeats packets as they were, with another number, and with another payload under another number. Acks and aborts are
/// protected at no level: they stay out of this.
fn third(counts: &Counts) -> Third {
    let (counts, mut heard) = (counts.clone(), Vec::<(usize, Bytes)>::new());
    let mut latest = 0;
    Box::new(move |dice, to, datagram| {
        if ![DATA, CHALLENGE, RESPONSE].contains(&datagram[TYPE_AT]) {
            return Vec::new();
        }
        latest = latest.max(number(datagram));
        if heard.len() == HEARD_MAX {
            heard.remove(dice.below(HEARD_MAX as u64) as usize);
        }
        heard.push((to, datagram.clone()));
        let times = dice.below(3);
        (0..times).map(|_| sent(dice, &heard, latest, &counts)).collect()
    })
}

fn sent(dice: &mut Dice, heard: &[(usize, Bytes)], latest: u16, counts: &Counts) -> (usize, Bytes) {
    let (to, datagram) = &heard[dice.below(heard.len() as u64) as usize];
    let mut forged = datagram.to_vec();
    let kind = match (datagram[TYPE_AT], dice.below(3)) {
        (DATA, 1) => {
            renumber(&mut forged, dice, latest);
            "renumbered"
        }
        (DATA, 2) => {
            renumber(&mut forged, dice, latest);
            let at = NUMBER_AT + 4 + dice.below((forged.len() - NUMBER_AT - 4).max(1) as u64) as usize;
            forged.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << dice.below(8));
            "forged"
        }
        (DATA, _) => "repeated",
        _ => "handshake",
    };
    let difference = i32::from(number(&forged)) - i32::from(latest);
    *counts.lock().unwrap().entry((kind, difference.clamp(-4, 2))).or_default() += 1;
    (*to, forged.into())
}

/// A number around the latest one, or one that is far from it.
fn renumber(packet: &mut [u8], dice: &mut Dice, latest: u16) {
    let near = latest.wrapping_add(dice.below(7) as u16).wrapping_sub(4);
    let number = if dice.per_mille(100) { dice.below(1 << 16) as u16 } else { near };
    packet[NUMBER_AT..NUMBER_AT + 2].copy_from_slice(&number.to_be_bytes());
}

fn number(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[NUMBER_AT], packet[NUMBER_AT + 1]])
}

/// Calls on one connection whose key is used up every 64 KiB.
fn calls_go_on(seed: u64, level: Level) -> Counts {
    let counts = Counts::default();
    let mut cell = Cell::new(seed, Variant::OpenAfs, ROUGH);
    cell.world.third = Some(third(&counts));
    let token = cell.token(level, EncType::Aes128Sha1);
    let token = cell.with_lifetime(&token, 0, 16);
    let token = cell.changed(&token, token.variant, |contents| contents.expires.0 = 0);
    cell.wall.tick(1);
    let connection = cell.connect(&token);
    for number in 1..=8 {
        assert_eq!(cell.call(connection, 150_000, 150_000), Ok(()), "{level:?}, seed {seed}, call {number}");
        assert_eq!(cell.credentials.len(), number, "{level:?}, seed {seed}: a call that nobody has made");
    }
    let numbers = cell.numbers();
    assert!(numbers.len() >= 6, "{level:?}, seed {seed}: {numbers:?}");
    assert!(numbers.iter().copied().eq(0..numbers.len() as u16), "{level:?}, seed {seed}: {numbers:?}");
    counts
}

#[test]
fn no_packet_of_another_key_ends_a_connection_makes_a_call_or_changes_the_key() {
    let mut all: BTreeMap<(&str, i32), u64> = BTreeMap::new();
    for level in [Level::Auth, Level::Crypt] {
        for seed in 0..6 {
            let counts = calls_go_on(seed, level);
            counts.lock().unwrap().iter().for_each(|(key, count)| *all.entry(*key).or_default() += count);
        }
    }
    // Older than is accepted, accepted, the present one, the next, and one beyond.
    for difference in -4..=2 {
        for kind in ["renumbered", "forged"] {
            assert!(
                all.get(&(kind, difference)).is_some_and(|count| *count > 10),
                "{kind} {difference}: {all:?}"
            );
        }
    }
    for (kind, difference) in [("repeated", 0), ("repeated", -1), ("repeated", -4), ("handshake", -4)] {
        assert!(
            all.get(&(kind, difference)).is_some_and(|count| *count > 10),
            "{kind} {difference}: {all:?}"
        );
    }
}
