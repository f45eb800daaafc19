//! An `Rx` on a UDP socket.

mod receive;
mod send;
mod socket;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use afs_rpc::{EnvExt, Kick, Limits, Rx, WeakRx};
use afs_rx::{Config, Endpoint};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::system::System;
use send::Sender;
use socket::Socket;

/// How an endpoint meets the network.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Where to listen. Port 0 lets the kernel choose. Default 0.0.0.0, port 0.
    pub address: SocketAddr,
    /// Rx itself.
    pub config: Config,
    /// What is held for others, at most.
    pub limits: Limits,
    /// Bytes of kernel buffer asked for in each direction; the kernel may give less to unprivileged processes.
    /// Default 8 MiB.
    pub buffer: usize,
    /// Whether the kernel may cut trains of datagrams itself. Found out when it refuses; turned off for tests. Default on.
    pub offload: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            config: Config::default(),
            limits: Limits::default(),
            buffer: 8 << 20,
            offload: true,
        }
    }
}

/// A socket with its receiving thread. Dropping it closes the [`Rx`], tells waiting peers, and joins the thread.
#[derive(Debug)]
pub struct Udp {
    rx: Rx,
    driver: Arc<Driver>,
    thread: Option<JoinHandle<()>>,
}

impl Udp {
    /// An `Rx` on `address`.
    ///
    /// # Errors
    /// If the address is taken or not of this host, or the kernel refuses a socket or a thread.
    pub fn bind(system: &Arc<System>, address: SocketAddr, config: Config) -> io::Result<Self> {
        Self::bind_with(system, UdpOptions { address, config, ..UdpOptions::default() })
    }

    /// An `Rx` with everything chosen.
    ///
    /// # Errors
    /// As [`Udp::bind`].
    pub fn bind_with(system: &Arc<System>, options: UdpOptions) -> io::Result<Self> {
        let socket = Arc::new(Socket::bind(options.address, options.buffer)?);
        let driver = Arc::new(Driver {
            sender: Sender::new(socket.clone(), options.offload),
            socket,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
            rx: OnceLock::new(),
        });
        let endpoint = Endpoint::new(options.config, system.random_bytes());
        let rx = Rx::with_limits(system.env(), endpoint, driver.clone(), options.limits);
        driver.rx.get_or_init(|| rx.downgrade());
        let thread = receive::start(system.clone(), rx.clone(), driver.clone())?;
        Ok(Self { rx, driver, thread: Some(thread) })
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

    /// Closes the [`Rx`] and joins the thread. What `drop` does, by name.
    pub fn shutdown(self) {}
}

impl Drop for Udp {
    fn drop(&mut self) {
        self.rx.close();
        self.driver.flush(&self.rx);
        self.driver.stop.store(true, Ordering::Release);
        self.driver.ring();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches nothing of its own; a panic in it has been reported where it happened.
            drop(thread.join());
        }
    }
}

/// What the receiving thread and everybody who sends share.
#[derive(Debug)]
struct Driver {
    socket: Arc<Socket>,
    sender: Sender,
    /// Wakes the receiving thread.
    bell: OwnedFd,
    stop: AtomicBool,
    rx: OnceLock<WeakRx>,
}

thread_local! {
    /// The driver whose receiving thread this is: its sends wait for the end of the batch.
    static RECEIVING_FOR: Cell<*const Driver> = const { Cell::new(std::ptr::null()) };
}

impl Driver {
    /// Sends what may leave: the receiving thread's way.
    fn flush(&self, rx: &Rx) {
        rx.drain_transmits(|transmit, data| self.sender.send(transmit, data));
    }

    /// Sends what may leave: the way of all other threads. Wakes the receiving thread for what remains.
    fn flush_as_guest(&self, rx: &Rx) {
        if rx.drain_some_transmits(|transmit, data| self.sender.send(transmit, data)) {
            self.ring();
        }
    }

    fn ring(&self) {
        // Fails only when the counter is full: the bell has rung already.
        let _full = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

impl Kick for Driver {
    fn kick(&self) {
        if RECEIVING_FOR.get() == std::ptr::from_ref(self) {
            return;
        }
        if let Some(rx) = self.rx.get().and_then(WeakRx::upgrade) {
            self.flush_as_guest(&rx);
        }
    }
}
