//! Where a flood goes that is to cost no server anything: a socket on the servers' host that nobody reads.
//!
//! What honest clients see of such a flood is what the attacker's program and the kernels take of a machine that all share.

use std::net::{SocketAddr, UdpSocket};

use andrew_tests::live::netns::Netns;

use super::setup::server_at;

/// The port of the discard service (RFC 863).
const PORT: u16 = 9;

/// The socket. The kernel drops what comes once its buffer is full, which is after a datagram or two.
pub struct Sink {
    _socket: UdpSocket,
}

impl Sink {
    /// In the servers' namespace.
    pub fn new(netns: &Netns) -> Self {
        let socket = netns.inside(|| UdpSocket::bind(address())).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 1).unwrap();
        Self { _socket: socket }
    }
}

/// Where it is.
pub fn address() -> SocketAddr {
    server_at(PORT)
}
