//! The real environment: implementation of `Env` with a pool of threads and the kernel's clocks.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afs_rpc::{BoxFuture, ByteListener, ByteStream, Env, EnvRef, Instant, Stall, UnixTime};
use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};
use tokio::runtime::{EnterGuard, Handle, Runtime};

use crate::blocking::Blocking;
use crate::boot_clock::{BootClock, CHECK_MAX, wait_until};
use crate::scheduling;
use crate::task::Tasks;
use crate::{tcp, threads};

/// The real [`Env`]: the kernel's clocks and randomness, tasks on a pool of threads. [`Env::now`] is `CLOCK_BOOTTIME`:
/// time in suspend counts.
///
/// Dropping it stops the pool without waiting for tasks; blocking work in progress runs to its end.
#[derive(Debug)]
pub struct System {
    /// `None` after shutdown.
    pool: Mutex<Option<Runtime>>,
    handle: Handle,
    /// Tasks begun by [`Env::start`], which may be continued outside of the pool.
    tasks: Arc<Tasks>,
    blocking: Blocking,
    clock: BootClock,
}

impl System {
    /// Starts the pool, with one worker for each processor.
    ///
    /// # Errors
    /// If the kernel refuses threads or descriptors.
    pub fn new() -> io::Result<Arc<Self>> {
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self::with_workers(workers)
    }

    /// Starts the pool with `workers` threads for tasks, at least one.
    ///
    /// # Errors
    /// As [`System::new`].
    pub fn with_workers(workers: usize) -> io::Result<Arc<Self>> {
        let pool = threads::runtime("afs-pool", workers.max(1))?;
        let handle = pool.handle().clone();
        let (tasks, blocking) = (Tasks::new(handle.clone()), Blocking::start(handle.clone())?);
        Ok(Arc::new(Self { pool: Mutex::new(Some(pool)), handle, tasks, blocking, clock: BootClock::new() }))
    }

    /// This environment as an `EnvRef`.
    #[must_use]
    pub fn env(self: &Arc<Self>) -> EnvRef {
        self.clone()
    }

    /// Runs `future` on the calling thread while the pool works in parallel. Not for use within a task.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Ends the pool: waiting tasks are dropped, blocking work is waited for, at most `patience`. Tasks spawned
    /// afterwards never run. To be called last, after every [`Udp`](crate::Udp) is dropped, and not from a task.
    pub fn shutdown(&self, patience: Duration) {
        if let Some(pool) = self.take_pool() {
            self.tasks.close();
            self.blocking.close();
            pool.shutdown_timeout(patience);
            self.blocking.wait(patience);
        }
    }

    fn take_pool(&self) -> Option<Runtime> {
        self.pool.lock().take()
    }

    /// Lets the calling thread use the pool implicitly.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if let Some(pool) = self.take_pool() {
            self.tasks.close();
            self.blocking.close();
            pool.shutdown_background();
        }
    }
}

impl Env for System {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wall(&self) -> UnixTime {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixTime { secs: since.as_secs(), nanos: since.subsec_nanos() }
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let clock = self.clock;
        Box::pin(wait_until(self.handle.clone(), move || clock.now(), deadline, CHECK_MAX))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        // The task is detached; its result is not used.
        drop(self.handle.spawn(task));
    }

    fn start(&self, task: BoxFuture<'static, ()>, stall: Stall) {
        self.tasks.start(task, stall);
    }

    fn stall(&self) -> Stall {
        scheduling::stall()
    }

    fn release_woken(&self) {
        scheduling::run_woken();
    }

    fn blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.blocking.run(work);
    }

    fn random(&self, out: &mut [u8]) {
        let mut filled = 0;
        while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match getrandom(rest, GetRandomFlags::empty()) {
                Ok(n) => filled += n,
                Err(rustix::io::Errno::INTR) => {}
                // Predictable keys and ids would be worse than no process.
                Err(error) => panic!("the kernel gives no randomness: {error}"),
            }
        }
    }

    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
        tcp::listen(&self.handle, at)
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        Box::pin(tcp::connect(self.handle.clone(), to, None))
    }

    fn connect_in_segments(
        &self,
        to: SocketAddr,
        segment: u32,
    ) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        Box::pin(tcp::connect(self.handle.clone(), to, Some(segment)))
    }
}
