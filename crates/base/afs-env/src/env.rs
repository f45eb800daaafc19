//! The trait [`Env`] of the environment, and its extension [`EnvExt`].

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::future::{Either, select};
use crate::instant::Instant;
use crate::stream::{ByteListener, ByteStream};
use crate::sync::oneshot;

/// A boxed future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A shared handle on an environment.
pub type EnvRef = Arc<dyn Env>;

/// Wall-clock time since 1970-01-01 00:00:00 UTC.
///
/// For records that users and other hosts read. Never for measuring a duration: the wall clock may jump.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct UnixTime {
    /// Whole seconds.
    pub secs: u64,
    /// Nanoseconds within the second, below 1 000 000 000.
    pub nanos: u32,
}

impl UnixTime {
    /// The seconds in the 32 bits that AFS-3 gives to a time; saturates in the year 2106.
    #[must_use]
    pub fn secs_u32(self) -> u32 {
        u32::try_from(self.secs).unwrap_or(u32::MAX)
    }
}

/// How long work may block a thread at a disk that was not made for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Stall {
    /// Not at all: other work waits for this thread alone.
    #[default]
    None,
    /// For one small access to local files, which the page cache usually serves.
    Brief,
    /// Without a limit.
    Any,
}

/// All that a component needs from outside itself. Real in `afs-net`, seeded and single-threaded in the simulator.
pub trait Env: Send + Sync + 'static {
    /// Monotonic time with an arbitrary start. It includes the time in suspend, so that it can be compared with
    /// expiry times that another host set.
    fn now(&self) -> Instant;

    /// The wall clock. May jump in either direction.
    fn wall(&self) -> UnixTime;

    /// Completes at or after `deadline`; at once if it has passed, and within 30 s after a resume if it passed in
    /// suspend. Dropping the future cancels the timer.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()>;

    /// Runs `task` to completion, concurrently with the caller. The task is dropped unfinished when the environment
    /// ends.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// As [`Env::spawn`], but the task begins on the calling thread: it is polled here before this returns, and
    /// continues elsewhere only if it has to wait. During that poll it may block the thread as long as `stall` says
    /// ([`Env::stall`]). A panic of the task ends the task alone.
    fn start(&self, mut task: BoxFuture<'static, ()>, stall: Stall) {
        let _ = stall;
        if !poll_first(task.as_mut()) {
            self.spawn(task);
        }
    }

    /// How long the calling thread may be blocked at a disk. [`Stall::None`] where that is unknown.
    fn stall(&self) -> Stall {
        Stall::None
    }

    /// Called by blocking work that has woken tasks and continues with more work: a few of them may run here, each to its next
    /// wait, and the others go elsewhere. Without it a task that was woken by blocking work may wait for the end of that work,
    /// to run on the same thread then. Not to be called while a lock is held.
    fn release_woken(&self) {}

    /// Runs `work`, which may block on a disk, on a thread for blocking work. The simulator runs it inline or later,
    /// from its seed.
    fn blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// Fills `out` with random bytes fit for keys.
    fn random(&self, out: &mut [u8]);

    /// Accepts byte streams at an address of this host; port 0 chooses a free one, the unspecified address stands for
    /// all.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`], and any error of the system.
    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn ByteListener>>;

    /// Opens a byte stream to a listener. Dropping the future cancels the attempt.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] where nothing listens, [`io::ErrorKind::TimedOut`] after about two
    /// minutes without a reply, and any error of the system.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>>;

    /// As [`Env::connect`], but neither side sends more than `segment` bytes in a packet, headers of IP and TCP not counted (RFC 9293, 3.7.1). The simulator
    /// has no segments.
    ///
    /// # Errors
    /// As [`Env::connect`].
    fn connect_in_segments(
        &self,
        to: SocketAddr,
        segment: u32,
    ) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        let _ = segment;
        self.connect(to)
    }
}

impl fmt::Debug for dyn Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// A future did not complete within its time limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the time given to it is over")]
pub struct Elapsed;

/// Operations composed from those of [`Env`]. In scope with the trait, on every `Env` and on `dyn Env`.
pub trait EnvExt: Env {
    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.now() + duration)
    }

    /// `work`, or [`Elapsed`] when it is not ready after `duration`; `work` is dropped then. A ready `work` takes
    /// precedence.
    fn timeout<F: Future + Send>(
        &self,
        duration: Duration,
        work: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + Send
    where
        F::Output: Send,
    {
        let timer = self.sleep(duration);
        async move {
            match select(work, timer).await {
                Either::Left(done) => Ok(done),
                Either::Right(()) => Err(Elapsed),
            }
        }
    }

    /// Runs `work` through [`Env::blocking`] and waits for its value.
    ///
    /// The work runs to its end even if the returned future is dropped. Returns `Err` only if the environment ended
    /// before the work did, or if it panicked.
    fn run_blocking<T, W>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, oneshot::error::RecvError>> + Send + 'static
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.blocking(Box::new(move || _ = tell.send(work())));
        told
    }

    /// As [`EnvExt::run_blocking`], but on the calling thread if that may be blocked for `stall`: no other thread is
    /// woken then.
    ///
    /// Not to be called while a lock is held.
    fn run_stalling<T, W>(
        &self,
        stall: Stall,
        work: W,
    ) -> impl Future<Output = Result<T, oneshot::error::RecvError>> + Send + 'static
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let here = stall != Stall::None && self.stall() >= stall;
        let run = if here { Either::Left(work()) } else { Either::Right(self.run_blocking(work)) };
        async move {
            match run {
                Either::Left(done) => Ok(done),
                Either::Right(elsewhere) => elsewhere.await,
            }
        }
    }

    /// Runs `task` concurrently with the caller; the returned future gives its value, and may be dropped without
    /// ending the task.
    fn spawn_with_result<T, F>(&self, task: F) -> oneshot::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.spawn(Box::pin(async move { _ = tell.send(task.await) }));
        told
    }

    /// As [`EnvExt::spawn_with_result`], scheduled as [`Env::start`] does it.
    fn start_with_result<T, F>(&self, stall: Stall, task: F) -> oneshot::Receiver<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        self.start(Box::pin(async move { _ = tell.send(task.await) }), stall);
        told
    }

    /// `N` random bytes.
    fn random_bytes<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        self.random(&mut out);
        out
    }

    /// A random 64-bit number.
    fn random_u64(&self) -> u64 {
        u64::from_le_bytes(self.random_bytes())
    }
}

impl<E: Env + ?Sized> EnvExt for E {}

/// Polls `task` once, with a waker that does nothing. `true` when it is over, by its end or by a panic.
///
/// A task that is pending afterwards must be polled again by its next owner; that poll registers a real waker, and
/// sees whatever happened in between.
fn poll_first(task: Pin<&mut (dyn Future<Output = ()> + Send)>) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    match catch_unwind(AssertUnwindSafe(|| task.poll(&mut cx))) {
        Ok(polled) => polled.is_ready(),
        Err(_) => {
            tracing::error!("a task panicked; it is over");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parts;
    use std::sync::Mutex;

    #[test]
    fn only_a_task_that_waits_is_spawned() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let to = kept.clone();
        let env = Parts::default().with_tasks(move |task| to.lock().unwrap().push(task));
        env.start(Box::pin(async {}), Stall::None);
        assert!(kept.lock().unwrap().is_empty());
        env.start(Box::pin(std::future::pending()), Stall::None);
        env.start(Box::pin(async { panic!("on purpose") }), Stall::None);
        assert_eq!(kept.lock().unwrap().len(), 1);
    }
}
