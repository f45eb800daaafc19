//! The requests with the longest replies, from false addresses that never reply.

use afs_sim::SimRng;
use afs_wire::fs::{FetchData64, FetchStatus, GetStatistics64};
use afs_wire::ids::{Fid, PartitionNumber};
use afs_wire::rpc::{ServiceId, encode_call};
use afs_wire::vl::{GetEntryByNameN, GetEntryByNameU, NameText};
use afs_wire::vol::ListVolumes;

use super::calls::{NULL, RXGK, data, next};
use super::crowd::Crowd;
use super::flood::{Flood, run, silent};
use super::setup::{Setup, server_at};

/// Hosts whose addresses are used, each with four ports.
const HOSTS: u16 = 512;
/// Two connections of each of these ports to each of four services, with their addresses, and 16,384 calls at each
/// service.
const GROWTH_KIB_MAX: u64 = 16_384 * 3 / 2 + 4 * 16_384 * 2;

#[test]
fn addresses_that_prove_nothing_get_three_times_what_they_send_at_most() {
    let Some(mut setup) = Setup::new("floods-amplification") else { return };
    let directory = setup.honest.directory();
    let wave = move |crowd: &Crowd, rng: &mut SimRng| small_request(crowd, rng, directory);
    let flood = Flood {
        name: "amplification",
        rate: 10_000,
        at_least: 0,
        growth_kib_max: GROWTH_KIB_MAX,
        also: &[],
        wave: &wave,
    };
    run(&mut setup, &flood);
}

fn small_request(crowd: &Crowd, rng: &mut SimRng, directory: Fid) -> u64 {
    let from = silent(rng, HOSTS);
    let name = || NameText::new(&b"root.cell"[..]).unwrap();
    let (port, service, request) = match rng.below(7) {
        0 => (7000, ServiceId::FILE, encode_call(&FetchStatus { fid: directory })),
        1 => (7000, ServiceId::FILE, encode_call(&FetchData64 { fid: directory, position: 0, length: 9000 })),
        2 => (7000, ServiceId::FILE, encode_call(&GetStatistics64 { version: 16 })),
        3 => (7003, ServiceId::LOCATION, encode_call(&GetEntryByNameN { name: name() })),
        4 => (7003, ServiceId::LOCATION, encode_call(&GetEntryByNameU { name: name() })),
        5 => (7005, ServiceId::VOLUME, encode_call(&ListVolumes { partition: PartitionNumber(0), flags: 1 })),
        // No such service: the refusal is the whole reply.
        _ => (7002, ServiceId(999), Vec::new()),
    };
    let security = if rng.chance(300_000) { RXGK } else { NULL };
    let line = next(crowd, from, service.0, security);
    crowd.send(from, server_at(port), &data(line, 0, 1, true, &request));
    1
}
