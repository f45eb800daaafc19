//! The ground floor: what every component gets from outside itself, and what asynchronous code needs that no runtime
//! has to give.
//!
//! [`Env`] brings time, timers, tasks, blocking work and randomness. It has two implementations: `afs-net`'s
//! (the machine) and `afs-sim`'s (one seed). [`sync`] and [`future`] join tasks to tasks and futures to futures.

mod env;
pub mod future;
mod instant;
mod runner;
pub mod sync;

pub use env::{BoxFuture, Elapsed, Env, EnvExt, EnvRef, UnixTime};
pub use instant::Instant;
pub use runner::{Inline, Job, Runner};
