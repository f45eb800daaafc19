//! The real [`Env`](afs_rpc::Env) and the UDP driver of an [`Rx`](afs_rpc::Rx): the only crate with sockets, a clock
//! and threads.
//!
//! [`System`] is the environment of all crates above: time from the kernel's clocks (suspend counts), tasks and
//! timers on a pool of threads, randomness from the kernel, byte streams over TCP. [`Udp::bind`] creates an `Rx` on a
//! socket, with threads of its own that receive many datagrams at a time, answer at once what needs only memory, and
//! send the replies in as few system calls as the kernel allows (`recvmmsg`, generic receive and segmentation
//! offload).

mod blocking;
mod boot_clock;
mod scheduling;
mod system;
mod task;
mod tcp;
pub mod threads;
mod udp;

pub use system::System;
pub use udp::{Udp, UdpOptions};
