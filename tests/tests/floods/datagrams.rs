//! Packets from forged addresses: incomplete calls, gaps in packet sequences, and handshakes that are never completed.

use afs_sim::SimRng;
use afs_wire::rpc::ServiceId;

use super::calls::{NULL, RXGK, data, fresh};
use super::crowd::{ANSWERING, Crowd};
use super::flood::{Flood, run, silent};
use super::setup::{Setup, server_at};

/// More connections than a server remembers.
const AT_LEAST: u64 = 80_000;
/// 65,536 connections with their addresses (1.5 KiB each), 16,384 calls (2 KiB each), and a quarter of 256 MiB for packets
/// that wait: `afs_rx::Config`.
const GROWTH_KIB_MAX: u64 = 65_536 * 3 / 2 + 16_384 * 2 + (64 << 10);

/// Largest payload that a packet may have, and a length above any packet's.
const LARGEST: usize = 16_384 - 28;
const TOO_LARGE: usize = 40_000;

#[test]
fn pieces_of_calls_take_bounded_memory() {
    let Some(mut setup) = Setup::new("floods-datagrams") else { return };
    let flood = Flood {
        name: "pieces of calls",
        rate: 15_000,
        at_least: AT_LEAST,
        growth_kib_max: GROWTH_KIB_MAX,
        also: &[],
        wave: &pieces,
    };
    run(&mut setup, &flood);
}

fn pieces(crowd: &Crowd, rng: &mut SimRng) -> u64 {
    let (from, files) = (silent(rng, ANSWERING), server_at(7000));
    let security = if rng.chance(250_000) { RXGK } else { NULL };
    let line = fresh(rng, ServiceId::FILE.0, security);
    let channel = rng.below(4) as u32;
    let filler = [7; TOO_LARGE];
    let send = |seq, len| crowd.send(from, files, &data(line, channel, seq, false, &filler[..len]));
    match rng.below(8) {
        // The first packet, and one as far behind it as a window reaches.
        0..=2 => {
            send(1, 1);
            send(2 + rng.below(2900) as u32, 1);
            2
        }
        // A window full of gaps.
        3 | 4 => {
            (1..16).for_each(|n| send(2 * n, 1416));
            15
        }
        5 => {
            send(1, LARGEST);
            send(3, LARGEST);
            2
        }
        6 => {
            send(1, TOO_LARGE);
            1
        }
        _ => {
            send(1, 1416);
            1
        }
    }
}
