//! The end that sends: a listener that takes orders, and the endpoints that send what is ordered.

use super::key;
use super::served::{Files, endpoints};
use super::wire::{Ports, Request, read, write};
use afs_datapath::capability::Revocations;
use afs_datapath::session::{Drive, DriveLimits, Identity, Offer, accept};
use afs_net::{System, Udp, threads};
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes of a write to TCP.
const WRITE: usize = 256 << 10;
/// Most bytes of a request.
const BYTES_MAX: u64 = 1 << 36;
/// Largest payload of a datagram over IPv4.
const DATAGRAM_MAX: usize = 65_507;
/// Most connections at a time, each of which has a thread.
const CONNECTIONS_MAX: u32 = 64;
/// How long a connection may wait for a request, or for its client to take bytes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A peer. It sends to the address that has connected, and to no other.
pub struct Peer {
    address: SocketAddr,
    _endpoints: Vec<Udp>,
    _system: Arc<System>,
}

impl Peer {
    /// Listens at an address; port 0 is one that is free.
    ///
    /// # Errors
    /// The address is not of this host, or in use.
    pub fn listen(at: SocketAddr) -> io::Result<Self> {
        let system = System::new()?;
        let (env, endpoints) = (system.env(), endpoints(&system, at)?);
        let identity = Identity::generate(&*env).map_err(|_| io::Error::other("no key for TLS"))?;
        let listening = env.listen(SocketAddr::new(at.ip(), 0))?;
        let ports = Ports {
            rx: endpoints.iter().map(|udp| udp.local_addr().port()).collect(),
            path: listening.local_addr().port(),
            fingerprint: identity.fingerprint().0,
        };
        let drive = Drive::new(key(), Revocations::default(), Arc::new(Files), DriveLimits::default());
        env.spawn(Box::pin(accept(env.clone(), listening, Offer::tls_or_clear(identity), drive)));
        let listener = TcpListener::bind(at)?;
        let address = listener.local_addr()?;
        threads::start("peer", move || serve(&listener, &ports))?;
        Ok(Self { address, _endpoints: endpoints, _system: system })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn serve(listener: &TcpListener, ports: &Ports) {
    let connections = Arc::new(AtomicU32::new(0));
    for stream in listener.incoming().flatten() {
        if connections.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            connections.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let ports = ports.clone();
        let served = connections.clone();
        let serve = move || {
            // A client that has gone, or asks for what there is not, gets nothing more.
            let _gone = converse(stream, &ports);
            served.fetch_sub(1, Ordering::AcqRel);
        };
        if threads::start("peer", serve).is_err() {
            connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn converse(mut stream: TcpStream, ports: &Ports) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut requests = BufReader::new(stream.try_clone()?);
    loop {
        match read(&mut requests)? {
            Request::Ports => write(&mut stream, ports)?,
            Request::Udp { port, datagram, bytes } => {
                let own = SocketAddr::new(stream.local_addr()?.ip(), 0);
                let to = SocketAddr::new(stream.peer_addr()?.ip(), port);
                let sent = send(own, to, datagram.clamp(1, DATAGRAM_MAX), bytes.min(BYTES_MAX))?;
                write(&mut stream, &sent)?;
            }
            Request::Tcp { bytes } => return pour(&mut stream, bytes.min(BYTES_MAX)),
        }
    }
}

/// Datagrams as fast as the kernel takes them; what it refuses counts as lost.
fn send(own: SocketAddr, to: SocketAddr, datagram: usize, bytes: u64) -> io::Result<u64> {
    let socket = UdpSocket::bind(own)?;
    socket.connect(to)?;
    let (payload, mut sent) = (vec![7; datagram], 0);
    while sent < bytes {
        // Port unreachable, or no buffer: the receiver counts what arrives.
        let _lost = socket.send(&payload);
        sent += datagram as u64;
    }
    Ok(sent)
}

fn pour(stream: &mut TcpStream, bytes: u64) -> io::Result<()> {
    let (piece, mut left) = (vec![7; WRITE], bytes);
    while left > 0 {
        let part = left.min(WRITE as u64);
        stream.write_all(&piece[..part as usize])?;
        left -= part;
    }
    Ok(())
}
