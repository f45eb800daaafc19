//! Thousands of first contacts, from hosts that never reply to the identity query.

use afs_sim::SimRng;
use afs_wire::fs::{FetchStatus, GetCapabilities, GetTime};
use afs_wire::ids::Fid;
use afs_wire::rpc::{ServiceId, encode_call};

use super::calls::{NULL, data, next};
use super::crowd::Crowd;
use super::flood::{Flood, answering, run, silent};
use super::setup::{Setup, server_at};

/// Hosts that reply to pings, and as many that do not, each with four ports.
const HOSTS: u16 = 2048;
/// Connections with their addresses, 16,384 calls, and as many identity queries as there are calls being served (4096,
/// 8 KiB).
const GROWTH_KIB_MAX: u64 = 65_536 * 3 / 2 + 16_384 * 4 + 4096 * 8;

#[test]
fn hosts_that_do_not_identify_themselves_keep_no_other_out() {
    let Some(mut setup) = Setup::new("floods-hosts") else { return };
    let directory = setup.honest.directory();
    let wave = move |crowd: &Crowd, rng: &mut SimRng| contact(crowd, rng, directory);
    let flood = Flood {
        name: "first contacts",
        // 1500 first contacts a second: each may take two thirds of a second until it is displaced by another one.
        rate: 3000,
        at_least: 0,
        growth_kib_max: GROWTH_KIB_MAX,
        also: &[],
        wave: &wave,
    };
    run(&mut setup, &flood);
}

fn contact(crowd: &Crowd, rng: &mut SimRng, directory: Fid) -> u64 {
    let from = if rng.chance(500_000) { silent(rng, HOSTS) } else { answering(rng, HOSTS) };
    let line = next(crowd, from, ServiceId::FILE.0, NULL);
    let request = match rng.below(4) {
        0 => encode_call(&GetTime {}),
        1 => encode_call(&GetCapabilities {}),
        _ => encode_call(&FetchStatus { fid: directory }),
    };
    crowd.send(from, server_at(7000), &data(line, 0, 1, true, &request));
    1
}
