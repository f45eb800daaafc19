//! Random damage of bytes: noise, flipped bits, edge values, pieces of other messages.

use afs_sim::SimRng;

/// Damages bytes in one way or in a few successive ones. `other` is a source of pieces.
#[must_use]
pub fn damage(rng: &mut SimRng, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        once(rng, &mut out, other);
    }
    out
}

fn once(rng: &mut SimRng, bytes: &mut Vec<u8>, other: &[u8]) {
    match rng.below(8) {
        0 => bytes.truncate(rng.index(bytes.len() + 1)),
        1 => flip_bits(rng, bytes),
        2 | 3 => set_word(rng, bytes),
        4 => set_byte(rng, bytes),
        5 => bytes.extend(noise_up_to(rng, 64)),
        6 => bytes.extend(noise_up_to(rng, 20_000)),
        _ => splice(rng, bytes, other),
    }
}

/// Random bytes, fewer than `bound`.
#[must_use]
pub fn noise_up_to(rng: &mut SimRng, bound: u64) -> Vec<u8> {
    let mut out = vec![0; usize::try_from(rng.below(bound)).unwrap_or(0)];
    rng.fill(&mut out);
    out
}

fn flip_bits(rng: &mut SimRng, bytes: &mut [u8]) {
    for _ in 0..=rng.below(8) {
        let at = rng.index(bytes.len());
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
    }
}

/// Sets an aligned word: counts and lengths are words, and edge values find those without a bound.
fn set_word(rng: &mut SimRng, bytes: &mut [u8]) {
    const EDGES: [u32; 12] = [
        0,
        1,
        2,
        0xff,
        0x100,
        0xffff,
        0x1_0000,
        0x7fff_ffff,
        0x8000_0000,
        0x8000_0001,
        0xffff_fffe,
        0xffff_ffff,
    ];
    let at = rng.index(bytes.len() / 4) * 4;
    let word = rng.pick(&EDGES).copied().unwrap_or_default();
    if let Some(four) = bytes.get_mut(at..at + 4) {
        four.copy_from_slice(&word.to_be_bytes());
    }
}

fn set_byte(rng: &mut SimRng, bytes: &mut [u8]) {
    let at = rng.index(bytes.len());
    if let Some(byte) = bytes.get_mut(at) {
        *byte = rng.u64().to_be_bytes()[0];
    }
}

/// Joins the front of one message and the back of another.
fn splice(rng: &mut SimRng, bytes: &mut Vec<u8>, other: &[u8]) {
    bytes.truncate(rng.index(bytes.len() + 1));
    bytes.extend_from_slice(other.get(rng.index(other.len() + 1)..).unwrap_or_default());
}
