//! Hosts as network namespaces on a bridge, each with a cable that can be disconnected.

use std::process::Command;

use super::netns::{Netns, PATH};
use super::process::{run, seconds};

/// A bridge with hosts; removed when this is dropped.
#[derive(Debug)]
pub struct Bridge {
    number: u8,
}

/// A host on a bridge. Processes on it must be dropped before.
#[derive(Debug)]
pub struct Host {
    netns: Netns,
    address: String,
    cable: String,
}

impl Bridge {
    /// `number` (0 to 99) determines the addresses of the hosts, 10.100+number.0.x, and the names of the namespaces.
    /// Namespaces of an earlier run are removed.
    #[must_use]
    pub fn new(number: u8) -> Self {
        let bridge = Self { number };
        bridge.clear();
        let name = bridge.name();
        ip(&["link", "add", &name, "type", "bridge"]);
        ip(&["link", "set", &name, "up"]);
        bridge
    }

    /// Adds a host with this last byte of the address.
    #[must_use]
    pub fn host(&self, number: u8) -> Host {
        let (name, cable) = (format!("andrew{}-h{number}", self.number), self.cable(number));
        let address = format!("10.{}.0.{number}", 100 + u16::from(self.number));
        let netns = Netns::fresh(&name);
        // A cable of an earlier run disappears only some time after its namespace.
        remove(&cable);
        ip(&["link", "add", &cable, "type", "veth", "peer", "name", "eth0", "netns", &name]);
        ip(&["link", "set", &cable, "master", &self.name(), "up"]);
        ip(&["-n", &name, "addr", "add", &format!("{address}/24"), "dev", "eth0"]);
        ip(&["-n", &name, "link", "set", "eth0", "up"]);
        Host { netns, address, cable }
    }

    fn name(&self) -> String {
        format!("andrew{}br", self.number)
    }

    fn cable(&self, host: u8) -> String {
        format!("andrew{}v{host}", self.number)
    }

    fn clear(&self) {
        remove(&self.name());
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Host {
    /// Its namespace.
    #[must_use]
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Disconnects the host from all others: packets in both directions are lost.
    pub fn cut_off(&self) {
        ip(&["link", "set", &self.cable, "nomaster"]);
    }

    /// Connects it again.
    pub fn mend(&self, bridge: &Bridge) {
        ip(&["link", "set", &self.cable, "master", &bridge.name()]);
    }
}

fn remove(link: &str) {
    let _ = Command::new("ip").env("PATH", PATH).args(["link", "del", link]).output();
}

fn ip(words: &[&str]) {
    let mut command = Command::new("ip");
    command.env("PATH", PATH).args(words);
    run(command, seconds(60));
}
