//! Destination of a flood that is to cost the server nothing: a socket on the servers' host that is never read.
//!
//! The effect of such a flood on honest clients is the cost of the attacker's program and the kernels on a machine that
//! all share.

use std::net::{SocketAddr, UdpSocket};

use andrew_tests::live::netns::Netns;

use super::setup::server_at;

/// The port of the discard service (RFC 863).
const PORT: u16 = 9;

/// The socket. The kernel drops all datagrams once its buffer is full, after a datagram or two.
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

/// The socket's address.
pub fn address() -> SocketAddr {
    server_at(PORT)
}
