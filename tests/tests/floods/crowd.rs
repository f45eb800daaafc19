//! Thousands of hosts simulated by one machine: every address of a network, with counts of the bytes sent from and to
//! each.
//!
//! Hosts below [`ANSWERING`] never reply to anything, like hosts whose addresses an attacker forges. The others reply
//! to pings, and so prove their addresses; they reply to nothing else.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

use andrew_tests::live::netns::Netns;
use andrew_tests::sim::adversary::answers::ping_reply;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::flood::give_way;
use super::sink;

/// The network of the crowd, in the notation of `ip`.
pub const NETWORK: &str = "10.77.0.0/16";
/// Hosts from this number on reply to pings.
pub const ANSWERING: u16 = 1 << 15;
/// Ports that each host sends from.
pub const PORTS: usize = 4;
/// The first of them.
const FIRST_PORT: u16 = 7001;
/// Interval at which a receiver checks whether to stop.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Bytes of Rx from and to each host.
struct Tally(Vec<[AtomicU64; 2]>);

/// The crowd. Its receivers stop when it is dropped.
pub struct Crowd {
    sockets: Vec<Arc<Socket>>,
    tally: Arc<Tally>,
    /// Number of call numbers given out.
    numbers: AtomicU32,
    /// Whether datagrams are sent to the sink.
    diverted: AtomicBool,
    stop: Arc<AtomicBool>,
    receivers: Vec<JoinHandle<()>>,
}

/// One port of all hosts.
struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
}

/// One host of the crowd, and one of its ports (below [`PORTS`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    pub host: u16,
    pub port: usize,
}

impl Crowd {
    /// In a namespace to which the whole network is local.
    pub fn new(netns: &Netns) -> Self {
        let bind = |port: usize| Socket::bind(FIRST_PORT + u16::try_from(port).unwrap()).unwrap();
        let sockets: Vec<_> = netns.inside(|| (0..PORTS).map(|port| Arc::new(bind(port))).collect());
        let tally = Arc::new(Tally((0..=u16::MAX).map(|_| Default::default()).collect()));
        let stop = Arc::new(AtomicBool::new(false));
        let receiver = |socket: &Arc<Socket>| {
            let (socket, tally, stop) = (socket.clone(), tally.clone(), stop.clone());
            std::thread::spawn(move || receive(&socket, &tally, &stop))
        };
        let receivers = sockets.iter().map(receiver).collect();
        let (numbers, diverted) = (AtomicU32::new(1), AtomicBool::new(false));
        Self { sockets, tally, numbers, diverted, stop, receivers }
    }

    /// Sends a datagram as one of the hosts.
    pub fn send(&self, from: Source, to: SocketAddr, datagram: &[u8]) {
        if self.is_diverted() {
            return self.sockets[from.port].send(from.host, sink::address(), datagram);
        }
        self.tally.count(from.host, 0, datagram.len());
        self.sockets[from.port].send(from.host, to, datagram);
    }

    /// Sends all datagrams from now on to the sink, or to their destinations.
    pub fn divert(&self, to_sink: bool) {
        self.diverted.store(to_sink, Ordering::Relaxed);
    }

    /// Whether datagrams are sent to the sink, and none to the servers.
    pub fn is_diverted(&self) -> bool {
        self.diverted.load(Ordering::Relaxed)
    }

    /// A call number above all earlier ones.
    pub fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes from hosts that never replied, and the largest ratio of bytes received to bytes sent of one of them.
    pub fn amplification(&self) -> (u64, f64) {
        let silent = &self.tally.0[..usize::from(ANSWERING)];
        let of = |[sent, got]: &[AtomicU64; 2]| (sent.load(Ordering::Relaxed), got.load(Ordering::Relaxed));
        let ratio = |(sent, got)| got as f64 / f64::max(sent as f64, 1.0);
        let sent = silent.iter().map(|host| of(host).0).sum();
        (sent, silent.iter().map(|host| ratio(of(host))).fold(0.0, f64::max))
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for receiver in self.receivers.drain(..) {
            let _ = receiver.join();
        }
    }
}

/// The address of a host.
pub fn address(host: u16) -> Ipv4Addr {
    let [high, low] = host.to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

impl Tally {
    fn count(&self, host: u16, way: usize, bytes: usize) {
        self.0[usize::from(host)][way].fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Socket {
    fn bind(port: u16) -> io::Result<Self> {
        let udp = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
        let state = UdpSocketState::new((&udp).into())?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&udp, 32 << 20)?;
        Ok(Self { udp, state })
    }

    fn send(&self, host: u16, destination: SocketAddr, contents: &[u8]) {
        let src_ip = Some(IpAddr::V4(address(host)));
        let transmit = Transmit { destination, ecn: None, contents, segment_size: None, src_ip };
        // A datagram that this machine refuses to send does not concern the server.
        let _ = self.state.try_send((&self.udp).into(), &transmit);
    }
}

fn receive(socket: &Socket, tally: &Tally, stop: &AtomicBool) {
    let mut buffers: Vec<Vec<u8>> = (0..BATCH_SIZE).map(|_| vec![0; 64 << 10]).collect();
    give_way(true);
    while !stop.load(Ordering::Relaxed) {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| slices.next().unwrap());
        let Ok(count) = socket.state.recv((&socket.udp).into(), &mut slices, &mut metas) else {
            let _ = poll(&mut [PollFd::new(&socket.udp, PollFlags::IN)], Some(&GLANCE));
            continue;
        };
        for (meta, slice) in metas.iter().zip(&slices).take(count) {
            let Some(IpAddr::V4(to)) = meta.dst_ip else { continue };
            let [_, _, high, low] = to.octets();
            let host = u16::from_be_bytes([high, low]);
            tally.count(host, 1, meta.len);
            for datagram in slice[..meta.len].chunks(meta.stride.max(1)).filter(|_| host >= ANSWERING) {
                if let Some(answer) = ping_reply(datagram) {
                    tally.count(host, 0, answer.len());
                    socket.send(host, meta.addr, &answer);
                }
            }
        }
    }
}
