//! Datagrams in: the thread that owns a socket.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use afs_rpc::{Env, Rx};
use bytes::Bytes;
use quinn_udp::{BATCH_SIZE, RecvMeta};
use rustix::event::{PollFd, PollFlags, poll};

use super::socket::timespec;
use super::{Driver, RECEIVING_FOR};
use crate::system::System;

/// Room for the largest train that the kernel joins (64 KiB less headers).
const TRAIN_BYTES_MAX: usize = 64 << 10;

/// Starts the receiving thread.
pub(super) fn start(system: Arc<System>, rx: Rx, driver: Arc<Driver>) -> io::Result<JoinHandle<()>> {
    let name = format!("afs-rx-{}", driver.socket.local_addr().port());
    std::thread::Builder::new().name(name).spawn(move || {
        let _pool = system.enter();
        RECEIVING_FOR.set(Arc::as_ptr(&driver));
        let receiver = Receiver { system: &system, rx: &rx, driver: &driver, inbox: Inbox::new() };
        or_end_the_process(driver.socket.local_addr(), || receiver.run());
        RECEIVING_FOR.set(std::ptr::null());
    })
}

/// A process whose receiving thread is gone would look alive and answer nobody: it ends, and whatever watches over it
/// starts it again.
fn or_end_the_process(local: SocketAddr, receive: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(receive)).is_err() {
        tracing::error!("the thread that receives at {local} has panicked; the process ends");
        std::process::abort();
    }
}

struct Receiver<'a> {
    system: &'a System,
    rx: &'a Rx,
    driver: &'a Driver,
    inbox: Inbox,
}

impl Receiver<'_> {
    fn run(mut self) {
        while !self.driver.stop.load(Ordering::Acquire) {
            let received = self.receive();
            let now = self.system.now();
            if self.rx.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.rx.handle_timeout(now);
            }
            self.driver.flush(self.rx);
            if !received {
                self.sleep();
            }
        }
    }

    /// Takes what is there, one batch; `false` if there was nothing.
    fn receive(&mut self) -> bool {
        match self.inbox.fill(self.driver) {
            Ok(0) => false,
            Ok(messages) => {
                let now = self.system.now();
                for index in 0..messages {
                    self.rx.handle_datagrams(now, self.inbox.datagrams(index));
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                // What the network said about an earlier datagram; the socket itself is as good as before.
                tracing::debug!(%error, "receiving");
                self.hear_complaints();
                true
            }
        }
    }

    /// Passes on what the network said about peers that cannot be reached.
    fn hear_complaints(&self) {
        while let Some(peer) = self.driver.socket.next_unreachable() {
            self.rx.handle_unreachable(self.system.now(), peer);
        }
    }

    /// Sleeps until a datagram comes, the bell rings, or the deadline passes.
    fn sleep(&self) {
        let deadline = self.rx.fall_asleep();
        let patience = deadline.map(|at| timespec(at.saturating_since(self.system.now())));
        let mut fds = [self.driver.socket.poll_fd(), PollFd::new(&self.driver.bell, PollFlags::IN)];
        if let Err(error) = poll(&mut fds, patience.as_ref())
            && error != rustix::io::Errno::INTR
        {
            // The kernel is out of memory for a moment. Nothing is lost by looking at the socket again.
            tracing::debug!(%error, "waiting for datagrams");
            std::thread::yield_now();
        }
        let [socket, bell] = &fds;
        let (complaint, rung) = (socket.revents().contains(PollFlags::ERR), !bell.revents().is_empty());
        self.rx.wake_up();
        if complaint {
            self.hear_complaints();
        }
        if rung {
            // Nothing to read means that it has been silenced already.
            let _silent = rustix::io::read(&self.driver.bell, &mut [0u8; 8]);
        }
    }
}

/// Buffers for one system call's worth of datagrams.
struct Inbox {
    buffers: Vec<Box<[u8]>>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Inbox {
    fn new() -> Self {
        let buffers = (0..BATCH_SIZE).map(|_| vec![0; TRAIN_BYTES_MAX].into_boxed_slice()).collect();
        Self { buffers, metas: [RecvMeta::default(); BATCH_SIZE] }
    }

    fn fill(&mut self, driver: &Driver) -> io::Result<usize> {
        let mut slices = self.buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer));
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        driver.socket.state.recv(driver.socket.handle(), &mut slices, &mut self.metas)
    }

    /// The datagrams of one message: the kernel may have joined several of equal size from one peer.
    fn datagrams(&self, index: usize) -> impl Iterator<Item = (SocketAddr, Bytes)> {
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

    const CHILD: &str = "AFS_NET_TEST_PANICS";

    #[test]
    fn a_panic_of_the_receiving_thread_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            or_end_the_process(([127, 0, 0, 1], 7000).into(), || panic!("on purpose"));
        }
        let own = std::env::current_exe().unwrap();
        let output = std::process::Command::new(own)
            .args([
                "--exact",
                "udp::receive::tests::a_panic_of_the_receiving_thread_ends_the_process",
                "--nocapture",
            ])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(6), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("on purpose"), "{said}");
    }
}
