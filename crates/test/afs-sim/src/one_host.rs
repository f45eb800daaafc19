//! World of one host, for tests of calls: all endpoints share an environment, and even the host's own datagrams can be lost.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvRef, Instant, Limits, Rx};
use afs_rx::Config;
use parking_lot::Mutex;

use crate::net::LinkConfig;
use crate::node::NodeId;
use crate::world::{Sim, WorldConfig};

/// A world in which ready tasks run in order and every datagram takes a millisecond.
pub struct OneHost {
    sim: Sim,
    node: NodeId,
    /// Endpoints live as long as the world.
    endpoints: Mutex<Vec<Rx>>,
}

impl OneHost {
    /// A host at 127.0.0.1 without endpoints.
    #[must_use]
    pub fn new(seed: u64) -> Arc<Self> {
        let sim = Sim::with_config(WorldConfig { in_order: true, ..WorldConfig::new(seed) });
        let node = sim.node("host", HOST);
        let host = Self { sim, node, endpoints: Mutex::default() };
        host.lose_one_in(0);
        Arc::new(host)
    }

    /// The environment of everything here.
    #[must_use]
    pub fn env(&self) -> EnvRef {
        self.sim.env(self.node)
    }

    /// Time since the world began.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.sim.now() - Instant::ZERO
    }

    /// From here on one datagram in `n` is lost; 0 is none.
    pub fn lose_one_in(&self, n: u32) {
        let loss_per_million = 1_000_000u32.checked_div(n).unwrap_or(0);
        let (latency_min, latency_max) = (LATENCY, LATENCY);
        let link = LinkConfig { latency_min, latency_max, loss_per_million, ..LinkConfig::default() };
        self.sim.set_link(link);
        self.sim.set_link_between(self.node, self.node, link);
    }

    /// Whether nothing passes between the host's own addresses.
    pub fn cut(&self, cut: bool) {
        if cut { self.sim.cut(self.node, self.node) } else { self.sim.mend(self.node, self.node) }
    }

    /// An endpoint at a port of the host, with the default settings.
    #[must_use]
    pub fn node(&self, port: u16) -> (Rx, SocketAddr) {
        self.node_with(port, Config::default(), Limits::default())
    }

    /// An endpoint at a port of the host.
    #[must_use]
    pub fn node_with(&self, port: u16, config: Config, limits: Limits) -> (Rx, SocketAddr) {
        let at = SocketAddr::new(HOST, port);
        (self.node_at(at, config, limits), at)
    }

    /// An endpoint at any address; one that is not the host's belongs to a host of its own.
    #[must_use]
    pub fn node_at(&self, at: SocketAddr, config: Config, limits: Limits) -> Rx {
        let node = if at.ip() == HOST { self.node } else { self.sim.node(&at.to_string(), at.ip()) };
        let rx = self.sim.rx(node, self.env(), at, config, limits);
        self.endpoints.lock().push(rx.clone());
        rx
    }

    /// Runs until `work` is done.
    ///
    /// # Panics
    /// If it is not within a month of virtual time.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.sim.block_on(self.node, MONTH, work).unwrap_or_else(|hang| panic!("{hang}"))
    }

    /// Runs for this long.
    pub fn run_for(&self, duration: Duration) {
        self.sim.run_for(duration);
    }
}

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LATENCY: Duration = Duration::from_millis(1);
const MONTH: Duration = Duration::from_secs(30 * 86_400);
