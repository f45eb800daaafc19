//! Environment whose monotonic clock a test advances; everything runs inline.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use afs_env::{BoxFuture, ByteListener, ByteStream, Env, EnvRef, Instant, Job, Parts, UnixTime};

/// The hands of the clock. Clones are the same.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
    }

    pub fn env(&self) -> EnvRef {
        Arc::new(Ticking { clock: self.clone(), parts: Parts::inline() })
    }

    fn now(&self) -> Instant {
        Instant(self.0.load(Ordering::Relaxed))
    }
}

struct Ticking {
    clock: Clock,
    parts: EnvRef,
}

impl Env for Ticking {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wall(&self) -> UnixTime {
        self.parts.wall()
    }

    /// Nobody is woken: a test polls again after it has advanced the clock.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let clock = self.clock.clone();
        let is_over = move || if clock.now() >= deadline { Poll::Ready(()) } else { Poll::Pending };
        Box::pin(std::future::poll_fn(move |_| is_over()))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.parts.spawn(task);
    }

    fn blocking(&self, work: Job) {
        self.parts.blocking(work);
    }

    fn random(&self, out: &mut [u8]) {
        self.parts.random(out);
    }

    fn listen(&self, at: SocketAddr) -> io::Result<Box<dyn ByteListener>> {
        self.parts.listen(at)
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<Box<dyn ByteStream>>> {
        self.parts.connect(to)
    }
}
