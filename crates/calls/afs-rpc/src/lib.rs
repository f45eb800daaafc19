//! Calls over Rx as futures, and the environment they run in.
//!
//! [`Env`] is what a component gets from outside: time, timers, tasks, blocking work, randomness. [`Rx`] is the
//! asynchronous interface of one `afs_rx::Endpoint`: a [`Connection`] makes typed calls, a [`Service`] serves them,
//! and a driver (real sockets in `afs-net`, a simulated network elsewhere) moves datagrams and time. Nothing here
//! opens a socket, reads a clock or starts a thread, and no lock is held during a wait.
//!
//! Three parties use an `Rx`:
//!
//! - the **driver** feeds [`Rx::handle_datagrams`] and [`Rx::handle_timeout`], and after those, or when notified
//!   through [`NotifyDriver`], calls [`Rx::drain_transmits`] and [`Rx::poll_timeout`] for its next deadline;
//! - **callers** hold a [`Connection`] and await [`Connection::call`] or work on a [`ClientCall`];
//! - **services** get a [`ServerCall`] each. The thread that received it polls the handler once: a reply that needs
//!   only memory is made right there, and only a handler that waits becomes a task of its own.

mod caller;
mod client;
mod credential;
mod error;
mod limits;
mod person;
mod rx;
mod server;
mod suspended;
mod table;
mod terms;

pub use afs_env::{
    BoxFuture, ByteListener, ByteStream, Elapsed, Env, EnvExt, EnvRef, Instant, Parts, RepeatBounds,
    RepeatKind, Repeats, Stall, UnixTime, admission, boxed, future, sync,
};
pub use afs_rx::ServerSecurity;
pub use caller::{Caller, ConnKey, Identity};
pub use client::{CallOptions, ClientCall, Connection, Security, SecuritySource};
pub use credential::{Class, Credential, Level, Principal, Protection};
pub use error::CallError;
pub use limits::Limits;
pub use person::Person;
pub use rx::{NotLoopback, NotifyDriver, Rx, WeakRx};
pub use server::{ServerCall, Service};
pub use suspended::{NotSuspended, Suspended};
pub use table::Table;
pub use terms::{Terms, TokenGeneration};
