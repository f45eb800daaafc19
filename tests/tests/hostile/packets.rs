//! Meaningless and malicious bytes, at every port.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::Path;

use afs_rpc::CallError;
use afs_sim::SimRng;
use afs_wire::error::AbortCode;
use andrew_tests::hostile::caller::Caller;
use andrew_tests::hostile::damage::{damage, noise_up_to};
use andrew_tests::hostile::datagram_flood::DatagramFlood;
use andrew_tests::hostile::packets::{of_call, of_every_type};
use andrew_tests::hostile::process::{resident_kib, udp_addresses};
use andrew_tests::hostile::samples::{SERVER_PORTS, SERVERS, Server, calls_to};
use andrew_tests::live::closing::write_and_close;
use andrew_tests::live::files::Pattern;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::setup::Setup;

use crate::hostile::{assert_calm, fid, folder_for_all, shown};

/// Datagrams to each port.
const DATAGRAMS: u64 = 12_000;
/// Calls to each service.
const CALLS: u64 = 1_500;
/// Most memory that the storm may leave in use. Every connection is kept for ten minutes, also a forged one.
const GROWTH_KIB_MAX: u64 = 160 << 10;

#[test]
fn datagrams_that_mean_harm_do_none() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("datagrams", 1, seconds(240));
    let mut cell = setup.up("rl", &[]);
    let (harmed, kept) = grounds(&setup, cell.mount());
    let ports = udp_addresses(cell.process.pid());
    assert!(ports.len() >= 4, "three servers and a client have ports: {}", shown(&ports));

    let before = resident_kib(cell.process.pid());
    let mut flood = DatagramFlood::new(1);
    let mut rng = SimRng::new(2);
    for port in &ports {
        flood.send_all(*port, &genuine(&mut rng, *port, &harmed), DATAGRAMS);
    }
    let growth = resident_kib(cell.process.pid()).saturating_sub(before);
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB more than before");
    assert_calm(&mut cell);
    assert_kept(cell.mount(), &kept);
    cell.stop();

    let cell = setup.up("rl", &[]);
    assert_kept(cell.mount(), &kept);
    cell.stop();
}

#[test]
fn calls_with_damaged_arguments_are_answered() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("damaged_calls", 2, seconds(240));
    let mut cell = setup.up("rl", &[]);
    let (harmed, kept) = grounds(&setup, cell.mount());
    let caller = Caller::new(setup.address().parse().unwrap(), [9; 16]);
    let before = resident_kib(cell.process.pid());
    for server in SERVERS {
        for peer in peers(server, setup.address(), &udp_addresses(cell.process.pid())) {
            assert_answered(&caller, peer, server, &harmed);
        }
    }
    let growth = resident_kib(cell.process.pid()).saturating_sub(before);
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB more than before");
    assert_calm(&mut cell);
    assert_kept(cell.mount(), &kept);
    drop(caller);
    cell.stop();
}

/// A folder in which all users may do everything, and one in which they may do nothing.
fn grounds(setup: &Setup, top: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
    let harmed = folder_for_all(setup, top, "harmed", "all");
    write_and_close(&harmed.join("file"), &[7; 20_000]).unwrap();
    let kept = folder_for_all(setup, top, "kept", "none");
    Pattern(3).write(&kept.join("large"), 40).unwrap();
    write_and_close(&kept.join("small"), b"kept").unwrap();
    (harmed, kept)
}

/// The cell works, and the inaccessible folder is unchanged.
fn assert_kept(top: &Path, kept: &Path) {
    Pattern(3).check(&kept.join("large"), 40).unwrap().unwrap();
    assert_eq!(fs::read(kept.join("small")).unwrap(), b"kept");
    let fresh = top.join("after");
    write_and_close(&fresh, b"still at work").unwrap();
    assert_eq!(fs::read(&fresh).unwrap(), b"still at work");
    fs::remove_file(&fresh).unwrap();
}

/// Real datagrams of calls to the process at a port, and some for the other ports.
fn genuine(rng: &mut SimRng, port: SocketAddrV4, harmed: &Path) -> Vec<Vec<u8>> {
    let (directory, file) = (fid(harmed), fid(&harmed.join("file")));
    let mut out = Vec::new();
    for server in SERVERS {
        let is_theirs = server.port() == port.port()
            || server == Server::Callback && !SERVER_PORTS.contains(&port.port());
        let service = server.service().0;
        let calls = calls_to(server, rng, directory, file);
        let reply = noise_up_to(rng, 5_000);
        for call in calls.iter().take(if is_theirs { usize::MAX } else { 3 }) {
            out.extend(of_call(rng, service, call, &reply));
        }
        out.extend(of_every_type(rng, service));
    }
    out
}

fn peers(server: Server, address: &str, ports: &[SocketAddrV4]) -> Vec<SocketAddr> {
    match server {
        Server::Callback => {
            let clients = ports.iter().filter(|port| !SERVER_PORTS.contains(&port.port()));
            clients.map(|port| SocketAddr::V4(*port)).collect()
        }
        _ => vec![SocketAddr::new(address.parse().unwrap(), server.port())],
    }
}

/// With any arguments, the call ends with a reply or with an error code, within the time limit.
fn assert_answered(caller: &Caller, peer: SocketAddr, server: Server, harmed: &Path) {
    let mut rng = SimRng::new(u64::from(server.port()) + u64::from(server.service().0));
    let samples = calls_to(server, &mut rng, fid(harmed), fid(&harmed.join("file")));
    let mut answers = BTreeMap::new();
    for _ in 0..CALLS {
        let (one, other) = (rng.pick(&samples).unwrap(), rng.pick(&samples).unwrap());
        // The opcode is kept: with another one the arguments are not decoded.
        let mut body = one[..4].to_vec();
        body.extend(damage(&mut rng, &one[4..], &other[4..]));
        match caller.call_raw(peer, server, body.clone()) {
            Ok(_) => *answers.entry(0).or_insert(0) += 1,
            Err(CallError::Abort(code)) => *answers.entry(code.0).or_insert(0) += 1,
            Err(error) => panic!("{server:?} at {peer}: {error} to {:.200?}", body),
        }
    }
    // The owner's own socket is a client without a callback service: calls of that kind are not served there.
    let is_offered = !answers.contains_key(&AbortCode::RX_INVALID_OPERATION.0);
    // Damaged calls were decoded, and did not always fail at the same place.
    assert!(answers.len() > 1 || !is_offered, "{server:?} answered {answers:?}");
    assert!(answers.len() > 8 || server != Server::File, "{server:?} answered {answers:?}");
}
