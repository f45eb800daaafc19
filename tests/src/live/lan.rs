//! Hosts of one test on a network of their own: namespaces on a bridge.

use std::process::Command;

use super::netns::{Netns, PATH};
use super::process::{run, seconds};

/// Hosts with addresses 10.0.0.NUMBER; removed when this is dropped.
#[derive(Debug)]
pub struct Lan {
    hosts: Vec<(u8, String, Netns)>,
    hub: String,
    _hub: Netns,
}

impl Lan {
    /// Creates hosts with these numbers. `name` is the prefix of the names of the namespaces: at most six letters.
    #[must_use]
    pub fn new(name: &str, numbers: &[u8]) -> Self {
        let hub = format!("{name}-hub");
        let lan_hub = Netns::fresh(&hub);
        ip(&["-n", &hub, "link", "add", "br0", "type", "bridge"]);
        ip(&["-n", &hub, "link", "set", "br0", "up"]);
        let host = |number: &u8| {
            let (host, port, address) =
                (format!("{name}-{number}"), format!("v{number}"), format!("{}/24", address(*number)));
            let netns = Netns::fresh(&host);
            ip(&["-n", &hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &host]);
            ip(&["-n", &hub, "link", "set", &port, "master", "br0", "up"]);
            ip(&["-n", &host, "addr", "add", &address, "dev", "eth0"]);
            ip(&["-n", &host, "link", "set", "eth0", "up"]);
            (*number, host, netns)
        };
        Self { hosts: numbers.iter().map(host).collect(), hub, _hub: lan_hub }
    }

    /// The namespace of a host.
    ///
    /// # Panics
    /// If there is no host with that number.
    #[must_use]
    pub fn netns(&self, number: u8) -> Netns {
        Netns::existing(self.name(number))
    }

    /// The address of a host.
    #[must_use]
    pub fn address(&self, number: u8) -> String {
        address(number)
    }

    /// Limits the rate at which a host sends.
    pub fn slow_down(&self, number: u8, bytes_a_second: u32) {
        let rate = format!("{bytes_a_second}bps");
        let mut command = Command::new("tc");
        command.env("PATH", PATH).args(["-n", self.name(number), "qdisc", "replace", "dev", "eth0", "root"]);
        // One datagram may pass at once, and none is dropped.
        command.args(["tbf", "rate", &rate, "burst", "1600", "limit", "1000000"]);
        drop(run(command, seconds(60)));
    }

    /// Lets the network swallow, without a word, what a host sends or is sent in packets over this size, as a tunnel does whose routers send no
    /// messages.
    pub fn narrow(&self, number: u8, bytes: u32) {
        // A batch of packets that the kernel divides only at the other end would pass whatever its size.
        for (_, host, _) in &self.hosts {
            ip(&["-n", host, "link", "set", "eth0", "gso_max_segs", "1"]);
        }
        ip(&["-n", &self.hub, "link", "set", &format!("v{number}"), "mtu", &bytes.to_string()]);
    }

    fn name(&self, number: u8) -> &str {
        let host = self.hosts.iter().find(|(known, ..)| *known == number);
        host.map_or_else(|| panic!("no host {number}"), |(_, name, _)| name.as_str())
    }
}

fn address(number: u8) -> String {
    format!("10.0.0.{number}")
}

fn ip(arguments: &[&str]) {
    let mut command = Command::new("ip");
    command.env("PATH", PATH).args(arguments);
    drop(run(command, seconds(60)));
}
