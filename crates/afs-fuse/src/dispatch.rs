//! Running the futures that answer requests.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

use afs_env::{BoxFuture, Env};

/// Polls `work` once here; if it has to wait, has `env` run it.
///
/// The first poll carries a waker that does nothing: whoever runs the task then polls it again at once
/// with a waker that counts, and sees whatever happened in between. A panic ends the one request (its
/// reply answers EIO when dropped), not the mount.
pub(crate) fn run(env: &dyn Env, work: impl Future<Output = ()> + Send + 'static) {
    let mut task: BoxFuture<'static, ()> = Box::pin(work);
    let mut context = Context::from_waker(Waker::noop());
    match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut context))) {
        Ok(Poll::Pending) => env.spawn(task),
        Ok(Poll::Ready(())) => {}
        Err(_) => tracing::error!("a file system request panicked; it is answered with EIO"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_env::Parts;
    use std::sync::{Arc, Mutex};

    #[test]
    fn only_what_waits_is_spawned() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let to = kept.clone();
        let env = Parts::default().with_tasks(move |task| to.lock().unwrap().push(task));
        run(&env, async {});
        assert!(kept.lock().unwrap().is_empty());
        run(&env, std::future::pending());
        run(&env, async { panic!("a request that panics") });
        assert_eq!(kept.lock().unwrap().len(), 1);
    }
}
