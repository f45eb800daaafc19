//! Checker of the invariants that hold during any attack: secrecy, amplification, and bounds of what a server holds.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::{Seen, Tap, World};
use afs_testkit::allocated;
use parking_lot::Mutex;

use super::adversary::{is_false, is_third};
use super::cell::{Cell, SERVER};
use super::content;
use super::machine::Machine;

/// Listens as long as the world lasts, and records the first violation.
#[derive(Clone)]
pub struct Invariants(Arc<Mutex<Inner>>);

struct Inner {
    machine: Machine,
    secrecy: Secrecy,
    /// Whether bytes sent to false sources are checked.
    weighs: bool,
    /// The last bytes of each stream to the adversary, in which contents may have begun.
    tails: BTreeMap<(SocketAddr, SocketAddr), Vec<u8>>,
    /// By false source: bytes it sent, bytes the server sent to it.
    exchanged: BTreeMap<SocketAddr, (u64, u64)>,
    /// Limit of the memory that all machines hold together, caches included.
    held_max: isize,
    /// Memory that the machines held at the beginning.
    base: isize,
    most: isize,
    /// Most connections to an endpoint of the server.
    connections: usize,
    complaint: Option<String>,
}

/// Where the contents of files must not appear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Secrecy {
    /// No restriction.
    Nothing,
    /// At the adversary's own addresses.
    FromStrangers,
    /// Anywhere on the network.
    FromListeners,
}

impl Invariants {
    /// Begins to listen; `weighs`: also checks how much the server sends to false sources.
    #[must_use]
    pub fn new(cell: &Cell, secrecy: Secrecy, weighs: bool, held_max: isize) -> Self {
        let world = cell.sim.world();
        let inner = Inner {
            machine: cell.machine.clone(),
            secrecy,
            weighs,
            tails: BTreeMap::new(),
            exchanged: BTreeMap::new(),
            held_max,
            base: allocated::held(),
            most: 0,
            connections: 0,
            complaint: None,
        };
        let invariants = Self(Arc::new(Mutex::new(inner)));
        let node = world.node("witness", IpAddr::from([10, 0, 0, 251]));
        let env = world.env(node);
        let taps = (world.tap(), world.tap_streams());
        env.spawn(Box::pin(invariants.clone().watch(world.clone(), taps, node)));
        invariants
    }

    async fn watch(self, world: World, (tap, streams): (Tap, Tap), node: afs_sim::NodeId) {
        let env = world.env(node);
        loop {
            env.sleep(Duration::from_millis(100)).await;
            let mut inner = self.0.lock();
            for seen in tap.take() {
                inner.look_at(&seen);
            }
            for seen in streams.take() {
                inner.look_at_stream(&seen);
            }
            inner.look_inside();
        }
    }

    /// Whether there was no violation.
    ///
    /// # Errors
    /// The first violation.
    pub fn verdict(&self) -> Result<(), String> {
        let inner = self.0.lock();
        if let Some(complaint) = &inner.complaint {
            return Err(complaint.clone());
        }
        for (address, (sent, answered)) in &inner.exchanged {
            if inner.weighs && *answered > AMPLIFICATION * sent {
                return Err(format!("{address} never answered, and got {answered} bytes for {sent}"));
            }
        }
        Ok(())
    }

    /// Whether anonymous users may not read files.
    #[must_use]
    pub fn keeps_files_secret(&self) -> bool {
        self.0.lock().secrecy != Secrecy::Nothing
    }

    /// Records a violation that was found elsewhere.
    pub fn complain(&self, what: String) {
        self.0.lock().complain(what);
    }

    /// Most connections that clients had to an endpoint of the server at a time.
    #[must_use]
    pub fn most_connections(&self) -> usize {
        self.0.lock().connections
    }

    /// Most memory held in addition to that at the beginning, in bytes.
    #[must_use]
    pub fn most_held(&self) -> isize {
        self.0.lock().most
    }
}

impl Inner {
    fn look_at(&mut self, seen: &Seen) {
        let size = seen.data.len() as u64;
        if is_false(seen.from) {
            // A packet that the network duplicates counts twice for the server.
            self.exchanged.entry(seen.from).or_default().0 += size * (1 + u64::from(seen.doubled));
        }
        if is_false(seen.to) && seen.from.ip() == IpAddr::V4(SERVER) {
            self.exchanged.entry(seen.to).or_default().1 += size;
        }
        let shown = match self.secrecy {
            Secrecy::Nothing => false,
            Secrecy::FromStrangers => is_third(seen.to) || is_false(seen.to),
            Secrecy::FromListeners => true,
        };
        if shown && content::is_in(&seen.data) {
            self.complain(format!("a file's bytes went from {} to {}", seen.from, seen.to));
        }
    }

    /// Streams of clients are clear, so that a listener on the network reads them; the adversary's own must have no bytes of
    /// files.
    fn look_at_stream(&mut self, seen: &Seen) {
        if self.secrecy == Secrecy::Nothing || !is_third(seen.to) {
            return;
        }
        let mut bytes = self.tails.remove(&(seen.from, seen.to)).unwrap_or_default();
        bytes.extend_from_slice(&seen.data);
        if content::is_in(&bytes) {
            self.complain(format!("a file's bytes went by a stream from {} to {}", seen.from, seen.to));
        }
        let rest = bytes.split_off(bytes.len().saturating_sub(content::MARK_LEN - 1));
        self.tails.insert((seen.from, seen.to), rest);
    }

    fn look_inside(&mut self) {
        self.most = self.most.max(allocated::held() - self.base);
        if self.most > self.held_max {
            self.complain(format!("{} bytes are held", self.most));
        }
        let settings = self.machine.settings.clone();
        let server = self.machine.server.clone();
        let of_rx = server.processes(|of| [Some(of.files_rx.clone()), of.databases_rx.clone()]);
        for rx in of_rx.into_iter().flatten().flatten().filter_map(|rx| rx.upgrade()) {
            let holdings = rx.holdings();
            self.connections = self.connections.max(holdings.server_connections);
            let bounded = holdings.server_connections <= settings.rx.server_connections_max
                && holdings.calls <= settings.rx.incoming_calls_max + CALLS_OUT_MAX
                && holdings.control_packets <= settings.rx.control_packets_max
                && holdings.buffered_bytes <= settings.rx.receive_buffer_total;
            if !bounded {
                self.complain(format!("beyond its bounds: {holdings:?}"));
            }
        }
        let clients = self.machine.clients.lock().clone();
        for rx in clients.iter().filter_map(afs_rpc::WeakRx::upgrade) {
            let holdings = rx.holdings();
            if holdings.server_connections > CLIENT_CONNECTIONS_MAX {
                self.complain(format!("a client is beyond its bounds: {holdings:?}"));
            }
        }
        let files = server.processes(|of| of.files.upgrade()).flatten();
        if let Some(hosts) = files.map(|files| files.clients().hosts().len())
            && hosts > settings.files.hosts
        {
            self.complain(format!("{hosts} hosts are known"));
        }
        let drive = settings.files.drive;
        if let Some(counts) = self.machine.drive_counts()
            && (counts.connected > drive.connections || counts.in_progress > drive.requests)
        {
            self.complain(format!("a drive is beyond its bounds: {counts:?}"));
        }
    }

    fn complain(&mut self, what: String) {
        if self.complaint.is_none() {
            self.machine.server.world.note(format!("invariants: {what}"));
            self.complaint = Some(what);
        }
    }
}

/// Bytes that may be sent to an unvalidated address for each byte from it, as in QUIC (RFC 9000, 8.1).
const AMPLIFICATION: u64 = 3;
/// Calls that a server makes itself, which are counted with those it receives.
const CALLS_OUT_MAX: usize = 512;
/// Connections to a client, from servers or with their addresses.
const CLIENT_CONNECTIONS_MAX: usize = 512;
