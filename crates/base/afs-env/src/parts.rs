//! An [`Env`] composed of closures, for stores in memory, tests, examples and single-threaded tools.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::env::{BoxFuture, Env, EnvRef, UnixTime};
use crate::instant::Instant;
use crate::stream::{ByteListener, ByteStream};

/// Work that may block on a disk.
pub type Job = Box<dyn FnOnce() + Send>;

type Wall = Box<dyn Fn() -> UnixTime + Send + Sync>;
type Random = Box<dyn Fn(&mut [u8]) + Send + Sync>;
type Blocking = Box<dyn Fn(Job) + Send + Sync>;
type Tasks = Box<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

/// An isolated environment. By default blocking work runs at once on the caller's thread, the wall clock stands in
/// November 2023, random bytes are numbers that this process has not drawn before, *which can be guessed*, and tasks
/// are dropped unfinished.
///
/// Monotonic time stands still, so that a timer in the future never expires; there is no network.
pub struct Parts {
    wall: Wall,
    random: Random,
    blocking: Blocking,
    tasks: Tasks,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            wall: Box::new(|| UnixTime { secs: 1_700_000_000, nanos: 0 }),
            random: Box::new(count_up),
            blocking: Box::new(|job| job()),
            tasks: Box::new(drop),
        }
    }
}

impl Parts {
    /// The defaults, shared.
    #[must_use]
    pub fn inline() -> EnvRef {
        Self::default().shared()
    }

    /// Takes the wall clock from `wall`.
    #[must_use]
    pub fn with_wall(mut self, wall: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        self.wall = Box::new(wall);
        self
    }

    /// Takes random bytes from `random`.
    #[must_use]
    pub fn with_random(mut self, random: impl Fn(&mut [u8]) + Send + Sync + 'static) -> Self {
        self.random = Box::new(random);
        self
    }

    /// Gives blocking work to `blocking`, which runs each job exactly once, on any thread.
    #[must_use]
    pub fn with_blocking(mut self, blocking: impl Fn(Job) + Send + Sync + 'static) -> Self {
        self.blocking = Box::new(blocking);
        self
    }

    /// Gives spawned tasks to `tasks`.
    #[must_use]
    pub fn with_tasks(mut self, tasks: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static) -> Self {
        self.tasks = Box::new(tasks);
        self
    }

    /// A handle on it.
    #[must_use]
    pub fn shared(self) -> EnvRef {
        Arc::new(self)
    }
}

impl Env for Parts {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn wall(&self) -> UnixTime {
        (self.wall)()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        if deadline <= self.now() { Box::pin(async {}) } else { Box::pin(std::future::pending()) }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        (self.tasks)(task);
    }

    fn blocking(&self, work: Job) {
        (self.blocking)(work);
    }

    fn random(&self, out: &mut [u8]) {
        (self.random)(out);
    }

    fn listen(&self, _: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
        Err(io::ErrorKind::AddrNotAvailable.into())
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        Box::pin(async { Err(io::ErrorKind::NetworkUnreachable.into()) })
    }
}

/// Spreads a count over all bits.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

fn count_up(out: &mut [u8]) {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    for part in out.chunks_mut(8) {
        let drawn = DRAWN.fetch_add(1, Ordering::Relaxed) + 1;
        part.copy_from_slice(&drawn.wrapping_mul(ODD).to_le_bytes()[..part.len()]);
    }
}
