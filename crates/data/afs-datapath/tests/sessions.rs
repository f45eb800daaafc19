//! Both ends against peers that say what a seed says: nothing panics or hangs, limits and capabilities hold, and nothing is left.
//!
//! `ANDREW_SEEDS=N` plays that many conversations, `ANDREW_FIRST_SEED=S` those from that seed on. The fuzz targets `drive_session` and
//! `client_session` play the same.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use afs_sim::SimRng;

use crate::conversations::{Reached, play_to_client, play_to_drive};

/// Bytes of a script.
const LEN: usize = 900;
/// Conversations of each end.
const USUAL: u64 = 240;

thread_local! {
    /// Panics on this thread, those included that end one task alone.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            usual(panic);
        }));
    });
}

#[track_caller]
fn each_seed(play: fn(&[u8], &Reached)) -> Reached {
    count_panics();
    let reached = Reached::default();
    for seed in afs_sim::crash::seeds(USUAL) {
        let mut rng = SimRng::new(seed);
        let script: Vec<u8> = (0..LEN).map(|_| rng.u64() as u8).collect();
        let played = catch_unwind(AssertUnwindSafe(|| play(&script, &reached)));
        assert!(played.is_ok() && PANICS.get() == 0, "the conversation of seed {seed}");
    }
    reached
}

/// What a drive must have been brought to: requests of each kind that began, and each way in which they end.
const OF_DRIVE: [&str; 25] = [
    "greeted",
    "presented",
    "read begun",
    "read to its end",
    "store begun",
    "stored",
    "stream begun",
    "stream to its end",
    "chunks begun",
    "chunks opened",
    "performed",
    "credited",
    "busy",
    "stalled",
    "no handle",
    "otherwise failed",
    "forged",
    "expired",
    "other_epoch",
    "revoked",
    "other_object",
    "out_of_range",
    "not_allowed",
    "turned away",
    "told of a violation",
];

/// What a client must have been brought to.
const OF_CLIENT: [&str; 21] = [
    "opened",
    "not opened",
    "read asked",
    "store asked",
    "stream asked",
    "bound asked",
    "bytes came",
    "read to its end",
    "stored",
    "stream to its end",
    "performed",
    "bound read",
    "damaged",
    "failed",
    "given up",
    "cancelled",
    "stalled",
    "silent",
    "violated",
    "no frame",
    "whole",
];

#[test]
fn a_drive_withstands_any_client() {
    each_seed(play_to_drive).assert_all(&OF_DRIVE);
}

#[test]
fn a_client_withstands_any_drive() {
    each_seed(play_to_client).assert_all(&OF_CLIENT);
}
