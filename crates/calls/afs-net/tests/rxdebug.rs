//! OpenAFS's `rxdebug` understands the replies of our endpoints.
//!
//! Where the program is not installed the test is skipped, with a message.

// Tests and their helpers may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::fake;

use std::net::SocketAddr;
use std::process::Command;

use afs_net::{System, Udp};
use afs_rpc::Security;
use afs_rx::Config;
use afs_wire::rpc::ServiceId;
use fake::*;

fn rxdebug(port: u16, question: &[&str]) -> Option<String> {
    let port = port.to_string();
    let output = Command::new("rxdebug").args(["127.0.0.1", &port]).args(question).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn rxdebug_shows_version_counters_connections_and_peers() {
    let system = System::new().unwrap();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Udp::bind(&system, loopback, Config::default()).unwrap();
    let client = Udp::bind(&system, loopback, Config::default()).unwrap();
    server.rx().listen(Fake::new(system.env()).service()).unwrap();
    let connection = client.rx().connection(server.local_addr(), ServiceId::FILE, Security::null());
    for vnode in 0..3 {
        system.block_on(ask_status(&connection, vnode)).unwrap();
    }
    let port = server.local_addr().port();
    let ask = |question: &[&str]| rxdebug(port, question);
    let Some(version) = ask(&["-version"]) else {
        eprintln!("rxdebug is not installed: not compared with OpenAFS");
        return;
    };
    let from = format!("port {}", client.local_addr().port());
    let shows = |text: Option<String>, what: &str| {
        let text = text.unwrap();
        assert!(text.contains(what), "{what} is not in:\n{text}");
    };
    shows(Some(version), "AFS version: Andrew");
    shows(ask(&["-rxstats", "-noconns"]), "packets read: data 3 ");
    shows(ask(&["-peers", "-noconns"]), &from);
    shows(ask(&["-allconnections"]), &from);
    shows(ask(&["-allconnections"]), "call 0: # 0, state ");
}
