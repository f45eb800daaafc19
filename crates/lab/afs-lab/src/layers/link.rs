//! The end that receives, and the peer's process if it is on this machine.

use super::PACKETS;
use super::served::config;
use super::wire::{Ports, Request, read, write};
use crate::error::{Context, LabError};
use afs_datapath::session::{Client, Fingerprint, Patience, Security};
use afs_net::{System, Udp};
use afs_rpc::Connection;
use afs_wire::rpc::ServiceId;
use std::io::{self, BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A peer as a child process at a loopback address. It ends when this is dropped.
pub struct PeerProcess {
    child: Child,
    address: SocketAddr,
}

impl PeerProcess {
    /// Starts `PROGRAM lab peer`, which says where it listens, and ends with its input.
    ///
    /// # Errors
    /// The program cannot be run, or says something else.
    pub fn start(program: &Path) -> Result<Self, LabError> {
        let words = ["peer", "--listen", "127.0.0.1:0"];
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().during("run", program)?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let address = said.and_then(Result::ok).and_then(|_| line.trim().parse().ok());
        match address {
            Some(address) => Ok(Self { child, address }),
            None => {
                end(&mut child);
                Err(LabError::Answer { command: words.join(" ") })
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    drop(child.stdin.take());
    let _ = child.kill();
    let _ = child.wait();
}

/// This end of a link to a peer.
pub struct Link {
    peer: SocketAddr,
    ports: Ports,
    /// Dropped before their threads.
    endpoints: Vec<Udp>,
    pub(super) system: Arc<System>,
}

impl Link {
    /// Asks a peer for its ports, and opens the endpoints of this end.
    ///
    /// # Errors
    /// It is not reached, or says something else.
    pub fn open(peer: SocketAddr) -> Result<Self, LabError> {
        let ports: Ports =
            ask(peer, &Request::Ports).and_then(|mut stream| read(&mut stream)).map_err(network)?;
        let system = System::new().map_err(network)?;
        let own = own_address(peer).map_err(network)?;
        let open = |packet| Udp::bind(&system, own, config(packet)).map_err(network);
        let endpoints = PACKETS.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { peer, ports, endpoints, system })
    }

    /// A connection to the peer with a request on it.
    pub(super) fn ask(&self, request: &Request) -> io::Result<BufReader<TcpStream>> {
        ask(self.peer, request)
    }

    /// The address of this end, with a port that the kernel chooses.
    pub(super) fn own_address(&self) -> io::Result<SocketAddr> {
        own_address(self.peer)
    }

    /// Calls in packets of [`PACKETS`] of that number.
    pub(super) fn calls(&self, packets: usize) -> Option<Connection> {
        let at = SocketAddr::new(self.peer.ip(), *self.ports.rx.get(packets)?);
        Some(self.endpoints.get(packets)?.rx().connection(at, ServiceId::FILE, afs_rpc::Security::null()))
    }

    /// A session of the data path.
    pub(super) async fn session(&self, is_secured: bool) -> Result<Client, LabError> {
        let env = self.system.env();
        let at = SocketAddr::new(self.peer.ip(), self.ports.path);
        let stream = env.connect(at).await.map_err(network)?;
        let security = match is_secured {
            true => Security::Tls(Fingerprint(self.ports.fingerprint)),
            false => Security::Clear,
        };
        let opened = Client::open(env, stream, security, Patience::default()).await;
        opened.map_err(|lost| network(io::Error::other(lost.to_string())))
    }
}

fn ask(peer: SocketAddr, request: &Request) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(peer)?;
    stream.set_nodelay(true)?;
    write(&mut stream, request)?;
    Ok(BufReader::new(stream))
}

/// The address from which the peer is reached.
fn own_address(peer: SocketAddr) -> io::Result<SocketAddr> {
    let socket = std::net::UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    socket.connect(peer)?;
    Ok(SocketAddr::new(socket.local_addr()?.ip(), 0))
}

pub(super) fn network(source: io::Error) -> LabError {
    LabError::Network { operation: "use the link to the peer", source }
}
