//! Receiving threads of a socket, of which one receives at a time.
//!
//! The thread that holds the inbox receives a batch and handles it. If sending the results takes long, it first
//! passes the inbox to the next thread: so datagrams reach Rx in the order of their arrival, and none waits for
//! another packet's ciphers.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use afs_rpc::{Env, Rx};
use rustix::event::{PollFd, PollFlags, poll};

use super::inbox::Inbox;
use super::polling::Polling;
use super::socket::timespec;
use super::{Driver, RECEIVING_FOR};
use crate::scheduling::{self, Role};
use crate::system::System;
use crate::threads;

/// Starts one of the receiving threads.
pub(super) fn start(
    system: Arc<System>,
    rx: Rx,
    driver: Arc<Driver>,
    number: usize,
) -> io::Result<JoinHandle<()>> {
    let name = format!("afs-rx-{}-{number}", driver.socket.local_addr().port());
    threads::start(&name, move || {
        let _pool = system.enter();
        RECEIVING_FOR.set(Arc::as_ptr(&driver));
        let receiver = Receiver { system: &system, rx: &rx, driver: &driver };
        abort_on_panic(driver.socket.local_addr(), || receiver.run());
        RECEIVING_FOR.set(std::ptr::null());
    })
}

/// Aborts the process when the receiving thread panics: without that thread it would look alive and serve no request,
/// and whatever supervises it restarts it.
fn abort_on_panic(local: SocketAddr, receive: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(receive)).is_err() {
        tracing::error!("the thread that receives at {local} has panicked; the process ends");
        std::process::abort();
    }
}

struct Receiver<'a> {
    system: &'a System,
    rx: &'a Rx,
    driver: &'a Driver,
}

impl Receiver<'_> {
    fn run(&self) {
        let mut inbox = self.driver.inbox_slot.take();
        while !self.driver.stop.load(Ordering::Acquire) {
            let received = self.receive(&mut inbox);
            let now = self.system.now();
            if self.rx.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.rx.handle_timeout(now);
            }
            inbox = match self.flush(inbox) {
                Some(mut inbox) => {
                    if !received {
                        self.sleep(&mut inbox.polling);
                    }
                    inbox
                }
                None => self.driver.inbox_slot.take(),
            };
        }
        self.driver.inbox_slot.give(inbox);
    }

    /// Sends what is ready. `None` when that took long, and another thread holds the inbox.
    fn flush(&self, inbox: Inbox) -> Option<Inbox> {
        let mut inbox = Some(inbox);
        let pass_on = || inbox.take().into_iter().for_each(|inbox| self.driver.inbox_slot.give(inbox));
        self.driver.flush_in_turn(self.rx, pass_on);
        inbox
    }

    /// Receives one batch; `false` if there was nothing.
    fn receive(&self, inbox: &mut Inbox) -> bool {
        match inbox.fill(&self.driver.socket) {
            Ok(0) => false,
            Ok(messages) => {
                inbox.polling.received(messages);
                let now = self.system.now();
                let handle = || {
                    for index in 0..messages {
                        self.rx.handle_datagrams(now, inbox.datagrams(index));
                    }
                };
                match messages {
                    // Nothing else waits: the task that the message wakes continues on this thread.
                    1 => scheduling::with_woken(Role::Receiving, handle),
                    _ => handle(),
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) => {
                // An ICMP error of an earlier datagram; the socket itself is usable.
                tracing::debug!(%error, "receiving");
                self.report_unreachable();
                true
            }
        }
    }

    /// Reports to Rx the peers that the network declared unreachable.
    fn report_unreachable(&self) {
        while let Some(peer) = self.driver.socket.next_unreachable() {
            self.rx.handle_unreachable(self.system.now(), peer);
        }
    }

    /// Sleeps until a datagram arrives, the wake-up descriptor is signalled, or the deadline passes.
    fn sleep(&self, polling: &mut Polling) {
        let deadline = self.rx.begin_sleep();
        let mut fds = [self.driver.socket.poll_fd(), PollFd::new(&self.driver.wake_fd, PollFlags::IN)];
        if !self.arrives_soon(&mut fds, polling) {
            let patience = deadline.map(|at| timespec(at.saturating_since(self.system.now())));
            if let Err(error) = poll(&mut fds, patience.as_ref())
                && error != rustix::io::Errno::INTR
            {
                // The kernel is out of memory for a moment. Reading the socket again loses nothing.
                tracing::debug!(%error, "waiting for datagrams");
                std::thread::yield_now();
            }
        }
        let [socket, wake_fd] = &fds;
        let (has_error, woken) = (socket.revents().contains(PollFlags::ERR), !wake_fd.revents().is_empty());
        self.rx.end_sleep();
        if has_error {
            self.report_unreachable();
        }
        if woken {
            // Nothing to read means that another thread has reset it already.
            let _silent = rustix::io::read(&self.driver.wake_fd, &mut [0u8; 8]);
        }
    }

    /// Polls for a moment, where that has helped of late. `true` if a datagram or a wake-up arrived.
    fn arrives_soon(&self, fds: &mut [PollFd<'_>], polling: &mut Polling) -> bool {
        let Some(time) = polling.next() else { return false };
        let begun = self.system.now();
        loop {
            let arrived = matches!(poll(fds, Some(&timespec(Duration::ZERO))), Ok(1..));
            let waited = self.system.now().saturating_since(begun);
            if arrived || waited >= time {
                polling.note(arrived.then_some(waited));
                return arrived;
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "AFS_NET_TEST_PANICS";

    #[test]
    fn a_panic_of_the_receiving_thread_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            abort_on_panic(([127, 0, 0, 1], 7000).into(), || panic!("on purpose"));
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
