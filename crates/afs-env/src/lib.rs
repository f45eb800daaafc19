//! The environment of a component: time, timers, tasks, blocking work, randomness and byte streams, with the parts of
//! asynchronous programming that need no runtime.
//!
//! [`Env`] has two implementations: `afs-net`'s (the machine) and `afs-sim`'s (one seed). [`sync`] has the
//! synchronisation primitives of tasks, [`future`] combinators of futures.

mod env;
pub mod future;
mod instant;
mod parts;
mod stream;
pub mod sync;

pub use env::{BoxFuture, Elapsed, Env, EnvExt, EnvRef, Stall, UnixTime};
pub use instant::Instant;
pub use parts::{Job, Parts};
pub use stream::{ByteListener, ByteStream};

/// The traits and helpers of byte streams. None of them needs a runtime.
pub mod io {
    pub use tokio::io::{
        AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf, split,
    };
}
