//! Receive buffers of one system call, and the slot through which the receiving threads pass them on.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quinn_udp::{BATCH_SIZE, RecvMeta};

use super::polling::Polling;
use super::processors;
use super::socket::Socket;

/// Largest batch that the kernel coalesces (64 KiB less headers).
const BATCH_BYTES_MAX: usize = 64 << 10;

/// Receive buffers of one system call. The thread that holds them receives.
#[derive(Debug)]
pub(super) struct Inbox {
    buffers: Vec<Box<[u8]>>,
    metas: [RecvMeta; BATCH_SIZE],
    /// State of the busy polling for the next datagrams.
    pub(super) polling: Polling,
}

/// Slot for a socket's only inbox, while no thread holds it.
#[derive(Debug)]
pub(super) struct InboxSlot {
    inbox: Mutex<Option<Inbox>>,
    given: Condvar,
}

impl InboxSlot {
    pub(super) fn new() -> Self {
        Self { inbox: Mutex::new(Some(Inbox::new())), given: Condvar::new() }
    }

    /// Waits for the inbox, and takes it.
    pub(super) fn take(&self) -> Inbox {
        let mut inbox = self.inbox.lock();
        loop {
            match inbox.take() {
                Some(inbox) => return inbox,
                None => self.given.wait(&mut inbox),
            }
        }
    }

    /// Puts the inbox back for another thread.
    pub(super) fn give(&self, inbox: Inbox) {
        *self.inbox.lock() = Some(inbox);
        self.given.notify_one();
    }
}

impl Inbox {
    fn new() -> Self {
        let buffers = (0..BATCH_SIZE).map(|_| vec![0; BATCH_BYTES_MAX].into_boxed_slice()).collect();
        Self { buffers, metas: [RecvMeta::default(); BATCH_SIZE], polling: Polling::new(processors().get()) }
    }

    pub(super) fn fill(&mut self, socket: &Socket) -> io::Result<usize> {
        let mut slices = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        socket.state.recv(socket.handle(), &mut slices, &mut self.metas)
    }

    /// The datagrams of one message: the kernel may have coalesced several of equal size from one peer.
    pub(super) fn datagrams(&self, index: usize) -> impl Iterator<Item = (SocketAddr, Bytes)> {
        let meta = self.metas.get(index).copied().unwrap_or_default();
        let received = self.buffers.get(index).and_then(|buffer| buffer.get(..meta.len)).unwrap_or_default();
        // A copy for each datagram: one that waits in Rx holds no more memory than itself, and is opened in place.
        received.chunks(meta.stride.max(1)).map(move |datagram| (meta.addr, Bytes::copy_from_slice(datagram)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_datagram_of_a_train_is_memory_of_its_own() {
        let mut inbox = Inbox::new();
        inbox.buffers[0][..2500].fill(7);
        (inbox.metas[0].len, inbox.metas[0].stride) = (2500, 1000);
        let sizes = inbox.datagrams(0).map(|(_, datagram)| {
            let (len, memory) = (datagram.len(), datagram.try_into_mut());
            (len, memory.map_or(0, |memory| memory.capacity()))
        });
        assert_eq!(sizes.collect::<Vec<_>>(), [(1000, 1000), (1000, 1000), (500, 500)]);
    }
}
