//! UDP socket configured for Rx: buffers, fragmentation, error queue.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use quinn_udp::{UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, recvmsg, sockopt};

/// The socket and its offload state.
#[derive(Debug)]
pub(super) struct Socket {
    udp: UdpSocket,
    pub(super) state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    pub(super) fn bind(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let udp = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&udp))?;
        if let Err(error) = state.enable_transport_errors(UdpSockRef::from(&udp)) {
            tracing::info!(%error, "closed ports are noticed by silence only");
        }
        enlarge_buffers(&udp, buffer);
        allow_fragments(&udp);
        let local = udp.local_addr()?;
        Ok(Self { udp, state, local })
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn handle(&self) -> UdpSockRef<'_> {
        UdpSockRef::from(&self.udp)
    }

    /// The next peer that the network declared unreachable (ICMP), once for each datagram concerned.
    pub(super) fn next_unreachable(&self) -> Option<SocketAddr> {
        let mut start = [0; 64];
        let mut control = RecvAncillaryBuffer::default();
        let flags = RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT;
        loop {
            let message = recvmsg(&self.udp, &mut [IoSliceMut::new(&mut start)], &mut control, flags).ok()?;
            // The destination of the datagram, not the sender of the ICMP message.
            if let Some(Ok(peer)) = message.address.map(SocketAddr::try_from) {
                return Some(peer);
            }
        }
    }

    pub(super) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.udp, PollFlags::IN)
    }

    /// Waits until the kernel takes datagrams again. `false` if it does not within `patience`.
    pub(super) fn wait_writable(&self, patience: Duration) -> bool {
        let limit = timespec(patience);
        matches!(poll(&mut [PollFd::new(&self.udp, PollFlags::OUT)], Some(&limit)), Ok(n) if n > 0)
    }
}

/// Converts a duration for the kernel.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Requests large buffers, above the system's limit where this process may.
fn enlarge_buffers(udp: &UdpSocket, bytes: usize) {
    let receive = sockopt::set_socket_recv_buffer_size_force(udp, bytes)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(udp, bytes));
    let send = sockopt::set_socket_send_buffer_size_force(udp, bytes)
        .or_else(|_| sockopt::set_socket_send_buffer_size(udp, bytes));
    if let Err(error) = receive.and(send) {
        tracing::info!(%error, bytes, "the kernel keeps its own size of socket buffers");
    }
}

/// Lets the network fragment, as every AFS-3 peer does: Rx cannot learn the size of a path that drops silently.
/// Source: `docs/protocol/rx.md` "15. Traps", 16.
fn allow_fragments(udp: &UdpSocket) {
    if let Err(error) = sockopt::set_ip_mtu_discover(udp, sockopt::Ipv4PathMtuDiscovery::DONT) {
        tracing::info!(%error, "datagrams are sent with the don't-fragment bit");
    }
}
