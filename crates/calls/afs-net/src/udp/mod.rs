//! UDP driver: an `Rx` on a socket, with its receiving threads.

mod inbox;
mod polling;
mod receive;
mod send;
mod socket;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

use afs_rpc::{EnvExt, Limits, NotifyDriver, Rx, WeakRx};
use afs_rx::{Config, Endpoint};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::scheduling::{self, Later};
use crate::system::System;
use inbox::InboxSlot;
use send::Sender;
use socket::Socket;

/// Options of an endpoint.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Address to bind. Port 0 lets the kernel choose. Default 0.0.0.0, port 0.
    pub address: SocketAddr,
    /// Configuration of Rx.
    pub config: Config,
    /// Limits of the `Rx`.
    pub limits: Limits,
    /// Bytes of kernel buffer requested in each direction; the kernel may grant less to unprivileged processes.
    /// Default 8 MiB.
    pub buffer: usize,
    /// Number of receiving threads, which take turns: while one seals packets, another receives. Default one for each
    /// processor, 4 at most.
    pub receivers: NonZeroUsize,
    /// Whether the kernel may segment batches of datagrams (GSO). Turned off when the kernel refuses it, and in
    /// tests. Default on.
    pub offload: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            config: Config::default(),
            limits: Limits::default(),
            buffer: 8 << 20,
            receivers: processors().min(RECEIVERS_MAX),
            offload: true,
        }
    }
}

/// More threads would wait for the lock of the endpoint.
const RECEIVERS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(3);

fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A socket with its receiving threads. Dropping it closes the [`Rx`], notifies waiting peers, and joins the threads.
#[derive(Debug)]
pub struct Udp {
    rx: Rx,
    driver: Arc<Driver>,
    threads: Vec<JoinHandle<()>>,
}

impl Udp {
    /// An `Rx` on `address`.
    ///
    /// # Errors
    /// If the address is in use or not of this host, or the kernel refuses a socket or a thread.
    pub fn bind(system: &Arc<System>, address: SocketAddr, config: Config) -> io::Result<Self> {
        Self::bind_with(system, UdpOptions { address, config, ..UdpOptions::default() })
    }

    /// An `Rx` with all options.
    ///
    /// # Errors
    /// As [`Udp::bind`].
    pub fn bind_with(system: &Arc<System>, options: UdpOptions) -> io::Result<Self> {
        let socket = Arc::new(Socket::bind(options.address, options.buffer)?);
        let wake_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let driver = Arc::new_cyclic(|own| Driver {
            sender: Sender::new(socket.clone(), options.offload),
            socket,
            inbox_slot: InboxSlot::new(),
            wake_fd,
            stop: AtomicBool::new(false),
            rx: OnceLock::new(),
            own: own.clone(),
        });
        let endpoint = Endpoint::new(options.config, system.random_bytes());
        let rx = Rx::with_limits(system.env(), endpoint, driver.clone(), options.limits);
        driver.rx.get_or_init(|| rx.downgrade());
        let mut udp = Self { rx, driver, threads: Vec::new() };
        for number in 0..options.receivers.get() {
            let (rx, driver) = (udp.rx.clone(), udp.driver.clone());
            udp.threads.push(receive::start(system.clone(), rx, driver, number)?);
        }
        Ok(udp)
    }

    /// The transport on this socket.
    #[must_use]
    pub fn rx(&self) -> &Rx {
        &self.rx
    }

    /// The address it is bound to, with the port that the kernel chose.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket.local_addr()
    }

    /// Closes the [`Rx`] and joins the threads, as `drop` does.
    pub fn shutdown(self) {}
}

impl Drop for Udp {
    fn drop(&mut self) {
        self.rx.close();
        self.driver.flush(&self.rx);
        self.driver.stop.store(true, Ordering::Release);
        self.driver.wake();
        let own = std::thread::current().id();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != own) {
            // A panic in the thread has been reported already.
            drop(thread.join());
        }
    }
}

/// State shared by the receiving threads and all threads that send.
#[derive(Debug)]
struct Driver {
    socket: Arc<Socket>,
    sender: Sender,
    inbox_slot: InboxSlot,
    /// Event descriptor that wakes the receiving thread.
    wake_fd: OwnedFd,
    stop: AtomicBool,
    rx: OnceLock<WeakRx>,
    own: Weak<Driver>,
}

thread_local! {
    /// The driver whose receiving thread this is, if any: its sends wait for the end of the batch.
    static RECEIVING_FOR: Cell<*const Driver> = const { Cell::new(std::ptr::null()) };
}

impl Driver {
    /// Sends what is ready.
    fn flush(&self, rx: &Rx) {
        rx.drain_transmits(|transmit, data| self.sender.send(transmit, data));
    }

    /// Sends what is ready, from a receiving thread. Calls `before_long_work` before long work.
    fn flush_in_turn(&self, rx: &Rx, before_long_work: impl FnOnce()) {
        if rx.drain_transmits_in_turn(|transmit, data| self.sender.send(transmit, data), before_long_work) {
            self.wake();
        }
    }

    /// Sends what is ready, from any other thread. Wakes the receiving thread for the rest.
    fn flush_from_other_thread(&self, rx: &Rx) {
        if rx.drain_some_transmits(|transmit, data| self.sender.send(transmit, data)) {
            self.wake();
        }
    }

    fn wake(&self) {
        // Fails only when the counter is full: the descriptor is readable then anyway.
        let _full = rustix::io::write(&self.wake_fd, &1u64.to_ne_bytes());
    }
}

impl NotifyDriver for Driver {
    fn notify(&self) {
        if RECEIVING_FOR.get() == std::ptr::from_ref(self) {
            return;
        }
        // Tasks that run one after the other have their packets sent together.
        let Some(own) = self.own.upgrade() else { return };
        if let Some(now) = scheduling::leave(own) {
            now.run();
        }
    }
}

impl Later for Driver {
    fn run(&self) {
        if let Some(rx) = self.rx.get().and_then(WeakRx::upgrade) {
            self.flush_from_other_thread(&rx);
        }
    }
}
