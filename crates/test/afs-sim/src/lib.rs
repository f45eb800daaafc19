//! Simulator of a cell from one seed: clock, scheduler, network and disks in one thread.
//!
//! [`Sim`] owns the simulated world. A node ([`World::node`]) is a host that can crash and restart; its
//! [`env`](World::env) is what the product's crates run in. Every choice is drawn from the seed: which of the ready
//! tasks runs next, how long a datagram travels or whether it is lost, how a stream is split, stalled or reset, when
//! blocking work runs, which unsynced bytes survive a crash. Time jumps from event to event, so hours pass in
//! milliseconds.
//!
//! The same seed and the same program give the same run: [`World::fingerprint`] tells whether two runs were equal,
//! and [`World::log_tail`] returns the latest events.
//!
//! No shipped crate depends on this one.

pub mod crash;
mod datagram;
pub mod disk;
mod env;
mod event_log;
mod nat;
mod net;
mod node;
mod one_host;
mod rng;
mod run;
mod rx;
mod suspension;
mod tap;
mod task;
mod tcp;
mod timeline;
mod world;

pub use datagram::{Port, PortHandler};
pub use net::{LinkConfig, NetStats};
pub use node::NodeId;
pub use one_host::OneHost;
pub use rng::SimRng;
pub use run::Hang;
pub use suspension::SleepClock;
pub use tap::{Arrivals, Seen, Tap};
pub use tcp::{StreamConfig, StreamFault, StreamMishap};
pub use world::{Sim, World, WorldConfig};
