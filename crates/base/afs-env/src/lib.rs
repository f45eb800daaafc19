//! The environment of a component: time, timers, tasks, blocking work, randomness and byte streams, with the parts of
//! asynchronous programming that need no runtime.
//!
//! [`Env`] has two implementations: `afs-net`'s (the machine) and `afs-sim`'s (one seed). [`sync`] has the
//! synchronisation primitives of tasks, [`future`] combinators of futures.

pub mod admission;
mod env;
pub mod future;
mod instant;
mod parts;
mod refused;
mod repeats;
mod stream;
pub mod sync;

/// Makes an async function return a [`BoxFuture`]: its body is compiled in its own crate, once, in place of in each crate that awaits it.
///
/// For public functions of a crate whose futures are large. Costs one allocation a call.
pub use async_recursion::async_recursion as boxed;
pub use env::{BoxFuture, Elapsed, Env, EnvExt, EnvRef, Stall, UnixTime};
pub use instant::Instant;
pub use parts::{Job, Parts};
pub use refused::refused;
pub use repeats::{RepeatBounds, RepeatKind, Repeats};
pub use stream::{ByteListener, ByteStream};

/// The traits and helpers of byte streams. None of them needs a runtime.
pub mod io {
    pub use tokio::io::{
        AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf, split,
    };
}
