//! Addresses of the adversary: hundreds of its own, at which it receives, and false ones, at which nobody does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use afs_rpc::EnvRef;
use afs_sim::{NodeId, World};

/// Hosts with an IPv4 address.
pub const V4_HOSTS: u16 = 200;
/// Sites of IPv6, each a /48, and hosts of each, with a /64.
pub const V6_SITES: u16 = 8;
/// See [`V6_SITES`].
pub const V6_HOSTS: u16 = 8;

/// A host of the adversary.
#[derive(Clone)]
pub(super) struct Host {
    pub ip: IpAddr,
    pub node: NodeId,
    pub env: EnvRef,
}

/// All its hosts, in turn.
pub(super) struct Addresses {
    hosts: Vec<Host>,
    turn: usize,
    next_port: u16,
    next_false: u32,
}

impl Addresses {
    pub fn new(world: &World) -> Self {
        let v4 =
            (0..V4_HOSTS).map(|n| IpAddr::from(Ipv4Addr::new(10, THIRD_NET, (n >> 8) as u8, n as u8 + 1)));
        let v6 = (0..V6_SITES * V6_HOSTS).map(|n| {
            let (site, network) = (n % V6_SITES, n / V6_SITES);
            IpAddr::from(Ipv6Addr::new(DOCUMENTATION[0], DOCUMENTATION[1], site, network, 0, 0, 0, 1))
        });
        let host = |ip: IpAddr| {
            let node = world.node(&format!("adversary {ip}"), ip);
            Host { ip, node, env: world.env(node) }
        };
        Self { hosts: v4.chain(v6).map(host).collect(), turn: 0, next_port: 20_000, next_false: 1 }
    }

    /// The first host, on which the adversary's tasks run.
    pub fn first(&self) -> &Host {
        &self.hosts[0]
    }

    /// The next host.
    pub fn next(&mut self) -> &Host {
        self.turn = (self.turn + 1) % self.hosts.len();
        &self.hosts[self.turn]
    }

    /// The next of the hosts on which it plays clients: few, so that they have several names each, as where an attacker has fewer addresses
    /// than the server has places.
    pub fn next_for_client(&mut self) -> &Host {
        self.turn = (self.turn + 1) % CLIENT_HOSTS;
        &self.hosts[self.turn]
    }

    /// The next host that can reach an IPv4 server by a stream.
    pub fn next_v4(&mut self) -> &Host {
        self.turn = (self.turn + 1) % usize::from(V4_HOSTS);
        &self.hosts[self.turn]
    }

    /// An unused port of the next host.
    pub fn third(&mut self) -> SocketAddr {
        self.next_port = if self.next_port < FAKE_CLIENTS - 1 { self.next_port + 1 } else { 20_000 };
        let port = self.next_port;
        SocketAddr::new(self.next().ip, port)
    }

    /// An address without a machine, which never replies.
    pub fn false_source(&mut self) -> SocketAddr {
        self.next_false += 1;
        let [_, b, c, d] = self.next_false.to_be_bytes();
        SocketAddr::from(([FALSE_NET, b, c, d], 7001))
    }
}

/// Whether the address is one of the adversary's own.
#[must_use]
pub fn is_third(address: SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(ip) => ip.octets()[..2] == [10, THIRD_NET],
        IpAddr::V6(ip) => ip.segments()[..2] == DOCUMENTATION,
    }
}

/// Whether the address is a false source.
#[must_use]
pub fn is_false(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.octets()[0] == FALSE_NET)
}

const CLIENT_HOSTS: usize = 16;
const THIRD_NET: u8 = 66;
pub(super) const FALSE_NET: u8 = 99;
/// RFC 3849.
const DOCUMENTATION: [u16; 2] = [0x2001, 0xdb8];
/// From this port on, the adversary's hosts have endpoints of Rx.
pub(super) const FAKE_CLIENTS: u16 = 40_000;
