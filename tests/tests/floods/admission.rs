//! Hosts that prove their addresses and then occupy call slots, with requests that are never complete and replies that
//! are never acknowledged.

use afs_sim::SimRng;
use afs_wire::fs::{FetchData64, GetTime, SetStatus, StoreData64};
use afs_wire::ids::Fid;
use afs_wire::rpc::{ServiceId, encode_call};

use super::calls::{NULL, data, next};
use super::crowd::Crowd;
use super::flood::{Flood, answering, run, silent};
use super::setup::{Setup, server_at};

/// Hosts that reply to pings, and send nothing else that is valid.
const HOSTS: u16 = 512;
/// Most memory of admitted calls (256 MiB of `afs_rx::Config`), of connections with their addresses, and of 16,384
/// calls.
const GROWTH_KIB_MAX: u64 = (256 << 10) + 65_536 * 3 / 2 + 16_384 * 4;

#[test]
fn calls_that_are_never_complete_shut_nobody_out() {
    let Some(mut setup) = Setup::new("floods-admission") else { return };
    let (file, directory) = (setup.honest.file(), setup.honest.directory());
    let wave = move |crowd: &Crowd, rng: &mut SimRng| places(crowd, rng, file, directory);
    let flood = Flood {
        name: "places",
        rate: 10_000,
        at_least: 0,
        growth_kib_max: GROWTH_KIB_MAX,
        also: &[],
        wave: &wave,
    };
    run(&mut setup, &flood);
}

fn places(crowd: &Crowd, rng: &mut SimRng, file: Fid, directory: Fid) -> u64 {
    let (channel, kind) = (rng.below(4) as u32, rng.below(6));
    let from = if kind == 0 { silent(rng, HOSTS) } else { answering(rng, HOSTS) };
    let (line, files) = (next(crowd, from, ServiceId::FILE.0, NULL), server_at(7000));
    let send = |seq, last, payload: &[u8]| crowd.send(from, files, &data(line, channel, seq, last, payload));
    match kind {
        // The first packet of a request, as any host may send it.
        0 | 1 => {
            (0..4).for_each(|channel| crowd.send(from, files, &data(line, channel, 1, false, &[0])));
            4
        }
        // A store that begins and is never continued.
        2 => {
            let length = 1 << 30;
            let status = SetStatus::default();
            let store = StoreData64 { fid: file, status, position: 0, length, file_length: length };
            let mut first = encode_call(&store);
            first.resize(1416, 7);
            send(1, false, &first);
            (2..20).for_each(|seq| send(seq, false, &first));
            19
        }
        // Calls that any client may make, whose replies are never acknowledged.
        3 => {
            send(1, true, &encode_call(&GetTime {}));
            1
        }
        _ => {
            send(1, true, &encode_call(&FetchData64 { fid: directory, position: 0, length: 1 << 30 }));
            1
        }
    }
}
