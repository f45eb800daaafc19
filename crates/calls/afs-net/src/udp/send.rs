//! Sending side of a socket: GSO batches, with a fallback to single datagrams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quinn_udp::Transmit as Datagram;
use rustix::io::Errno;

use super::socket::Socket;

/// How long a sender waits for a full socket before it drops a datagram; Rx retransmits it.
const PATIENCE: Duration = Duration::from_millis(10);

/// Sends datagrams and batches, the latter in one system call where the kernel segments them.
#[derive(Debug)]
pub(super) struct Sender {
    socket: Arc<Socket>,
    /// The kernel has not refused GSO on this socket.
    offload: AtomicBool,
}

impl Sender {
    pub(super) fn new(socket: Arc<Socket>, offload: bool) -> Self {
        let offload = AtomicBool::new(offload && socket.state.max_gso_segments() > 1);
        Self { socket, offload }
    }

    /// Sends `data`, or as much of it as possible. Rx retransmits what is lost.
    pub(super) fn send(&self, transmit: &afs_rx::Transmit, data: &[u8]) {
        let Some(segment) = transmit.segment_size.filter(|size| *size > 0 && *size < data.len()) else {
            return self.report(transmit.to, self.send_one(transmit.to, data, None));
        };
        if self.offload.load(Ordering::Relaxed) {
            match self.send_one(transmit.to, data, Some(segment)) {
                Err(error) if is_refusal(&error) => self.disable_offload(&error),
                sent => return self.report(transmit.to, sent),
            }
        }
        for datagram in data.chunks(segment) {
            self.report(transmit.to, self.send_one(transmit.to, datagram, None));
        }
    }

    fn send_one(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let datagram = Datagram { destination, ecn: None, contents, segment_size, src_ip: None };
        let sent = self.socket.state.try_send(self.socket.handle(), &datagram);
        match sent {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && self.socket.wait_writable(PATIENCE) =>
            {
                self.socket.state.try_send(self.socket.handle(), &datagram)
            }
            // An earlier datagram met a closed port; this one has not been sent yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.socket.state.try_send(self.socket.handle(), &datagram)
            }
            sent => sent,
        }
    }

    /// A size that one path does not carry says nothing about other paths; any other refusal holds for the socket.
    fn disable_offload(&self, error: &io::Error) {
        if error.raw_os_error() != Some(Errno::MSGSIZE.raw_os_error())
            && self.offload.swap(false, Ordering::Relaxed)
        {
            tracing::info!(%error, "the kernel does not segment batches of datagrams here; they are sent one by one");
        }
    }

    fn report(&self, to: SocketAddr, sent: io::Result<()>) {
        if let Err(error) = sent {
            tracing::debug!(%to, %error, "a datagram was not sent");
        }
    }
}

/// Whether the kernel, or a device below it, refuses to segment this batch.
fn is_refusal(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::IO, Errno::INVAL, Errno::MSGSIZE, Errno::OPNOTSUPP].iter().any(|e| code == Some(e.raw_os_error()))
}
