//! Running the futures that answer requests.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The rest of an operation, to be run to its end beside everything else.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes a task to where waiting does no harm.
pub type Spawn = Arc<dyn Fn(Task) + Send + Sync>;

/// A task that is over after some time.
pub type Pause = Arc<dyn Fn(Duration) -> Task + Send + Sync>;

/// Where operations that have to wait go.
#[derive(Clone)]
pub struct Pool {
    /// Runs a task beside everything else.
    pub spawn: Spawn,
    /// Waits.
    pub pause: Pause,
}

/// Polls `work` once here; if it has to wait, hands it to `spawn`.
///
/// The first poll carries a waker that does nothing: whoever runs the task then polls it again at once
/// with a waker that counts, and sees whatever happened in between. A panic ends the one request (its
/// reply answers EIO when dropped), not the mount.
pub(crate) fn run(spawn: &Spawn, work: impl Future<Output = ()> + Send + 'static) {
    let mut task: Task = Box::pin(work);
    let mut context = Context::from_waker(Waker::noop());
    match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut context))) {
        Ok(Poll::Pending) => spawn(task),
        Ok(Poll::Ready(())) => {}
        Err(_) => tracing::error!("a file system request panicked; it is answered with EIO"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn only_what_waits_is_spawned() {
        let kept: Arc<Mutex<Vec<Task>>> = Arc::default();
        let to = kept.clone();
        let spawn: Spawn = Arc::new(move |task| to.lock().unwrap().push(task));
        run(&spawn, async {});
        assert!(kept.lock().unwrap().is_empty());
        run(&spawn, std::future::pending());
        run(&spawn, async { panic!("a request that panics") });
        assert_eq!(kept.lock().unwrap().len(), 1);
    }
}
