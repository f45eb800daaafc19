//! The only place with sockets, a clock and threads: the real [`Env`](afs_rpc::Env), and the UDP driver of an
//! [`Rx`](afs_rpc::Rx).
//!
//! [`System`] is the world for everything above: time from the kernel's clocks (suspend counts), tasks and timers on a pool of threads,
//! randomness from the kernel, byte streams over TCP. [`Udp::bind`] gives an `Rx` on a socket, with a thread of its own that receives many
//! datagrams at a time, answers what needs only memory at once, and sends the answers in as few system calls as the
//! kernel allows (`recvmmsg`, generic receive and segmentation offload).

mod blocking;
mod boot_clock;
mod system;
mod task;
mod tcp;
mod turn;
mod udp;

pub use system::System;
pub use udp::{Udp, UdpOptions};
