//! Files of the audit log of a running cell, under a flood of calls that are refused, and over its stop.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use afs_net::{System, Udp};
use afs_rpc::Security;
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::vl::GetNewVolumeId;
use andrew_tests::live::cell::{Cell, CellOptions, command};
use andrew_tests::live::loopback::own_address;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::Scratch;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

/// Addresses of the attacker, and calls from each.
const ADDRESSES: u8 = 200;
const CALLS: u64 = 30;

#[test]
fn a_flood_of_refused_calls_displaces_no_change_and_a_stop_loses_no_count() {
    let scratch = Scratch::new("refused-calls");
    let _watchdog = Watchdog::new("refused_calls", seconds(200), || ());
    let (netns, servers) = (Netns::machine(), own_address(1));
    let cell = Cell::serve(&netns, scratch.path(), &CellOptions::at(&servers.to_string(), "rl"));
    let state = cell.state().to_owned();
    flood(servers);
    let create = ["vos", "--state", state.to_str().unwrap(), "create", "during.flood"];
    drop(command(&netns, &create));
    cell.stop();

    let refused = records(&state, "audit-anonymous.log");
    let of_flood = refused.iter().filter(|record| record["call"] == GetNewVolumeId::NAME);
    let sum: u64 = of_flood.clone().map(|record| record["more"].as_u64().unwrap_or(1)).sum();
    assert_eq!(sum, u64::from(ADDRESSES) * CALLS, "records and counts");
    let recorded = of_flood.filter(|record| record["code"].is_number()).count();
    assert!(recorded < 128 * CALLS as usize + 1, "{recorded} records");
    let changes = records(&state, "audit.log");
    assert!(changes.iter().all(|record| record["code"] == 0 && record["who"] != "(anybody)"));
    assert!(changes.iter().any(|record| record["call"] == "CreateVolume"), "{changes:?}");
}

/// Calls that only administrators may make, from all addresses.
fn flood(servers: Ipv4Addr) {
    let system = System::with_workers(2).unwrap();
    let location = SocketAddr::from((servers, 7003));
    for n in 0..ADDRESSES {
        let address = SocketAddr::from((own_address(n + 2), 0));
        let udp = Udp::bind(&system, address, afs_rx::Config::default()).unwrap();
        let connection = udp.rx().connection(location, ServiceId::LOCATION, Security::null());
        for _ in 0..CALLS {
            system.block_on(connection.call(&GetNewVolumeId { count: 1 })).unwrap_err();
        }
    }
}

fn records(state: &Path, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(state.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
