//! Keys and tokens of a cell whose databases are in etcd, while a reader reads: no key is made while a host is down, then one is rotated
//! on all of them, and another host revokes the tokens of a user.

use andrew_tests::live::process::seconds;
use andrew_tests::live::residents::{Home, RESIDENT};
use andrew_tests::live::wait::until;

use super::cell::{CELL, ThreeHosts};
use super::rounds::start_reader;

pub fn change(cell: &mut ThreeHosts) {
    let reader = start_reader(cell);
    refused_without(cell, 1);
    let listed = cell.servers[0].andrew(&["key", "rotate"]);
    for server in &cell.servers {
        let listed = server.andrew(&["key", "list"]);
        assert!(listed.contains("number   2") && !listed.contains("not used"), "{listed}");
    }
    println!("a key of three hosts with etcd is rotated:\n{listed}");
    cell.login();
    cell.residents.check();
    reader.wait_for_more();
    revoked(cell, 2);
    reader.wait_for_more();
    reader.finish();
}

/// With a host that does not reply no key is made anywhere.
fn refused_without(cell: &mut ThreeHosts, down: usize) {
    cell.servers[down].kill();
    let refused = cell.servers[0].try_andrew(&["key", "rotate"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("--without"), "{said}");
    assert!(said.contains(cell.servers[down].address()), "{said}");
    cell.servers[down].again();
    for server in &cell.servers {
        assert!(!server.andrew(&["key", "list"]).contains("number   2"));
    }
}

/// The tokens of the resident end at every host, and those of a new login count.
fn revoked(cell: &mut ThreeHosts, by: usize) {
    let home = cell.mount.path().join("on11").join(RESIDENT);
    // A new name each time, so that the server is asked.
    let can_work = || cell.residents.can(&home, "touch $A/seen$(date +%N)");
    assert!(can_work());
    cell.servers[by].andrew(&["revoke", RESIDENT]);
    until("the end of the tokens", seconds(20), || (!can_work()).then_some(()));
    let (state, addresses, top) = (cell.servers[0].state(), cell.addresses(), cell.mount.path().join("on11"));
    let site = [cell.servers[0].address(), "a"];
    let home = Home { state: &state, cell: CELL, servers: &addresses, site: &site, top: &top };
    cell.residents = cell.residents.at(cell.client.host.netns(), &home);
}
