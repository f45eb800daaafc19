//! I/O on cache files as futures: on a blocking thread, or at once where blocking is harmless.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afs_rpc::sync::oneshot;
use afs_rpc::{EnvRef, Stall};

use crate::cache::CacheStore;
use crate::error::{ErrorKind, Result, VenusError};

/// Runs the I/O of a cache.
pub(crate) struct CacheWorker {
    env: EnvRef,
    cache: Arc<dyn CacheStore>,
}

impl CacheWorker {
    pub fn new(env: EnvRef, cache: Arc<dyn CacheStore>) -> Self {
        CacheWorker { env, cache }
    }

    /// Starts a job. It runs at once if the cache does not block or this thread may be blocked for `stall`, and always
    /// runs to completion.
    pub fn run<T: Send + 'static>(
        &self,
        stall: Stall,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> CacheIo<T> {
        let here = !self.cache.blocks() || (stall != Stall::None && self.env.stall() >= stall);
        if here {
            return CacheIo::done(job().map_err(failed));
        }
        let (done_sender, done_receiver) = oneshot::channel();
        // A caller that dropped the future does not need the result.
        self.env.blocking(Box::new(move || drop(done_sender.send(job()))));
        CacheIo(State::Elsewhere(done_receiver))
    }
}

/// I/O that has been started; ready when it is complete.
///
/// # Errors
/// The cache cannot store or return the data, or Venus is shutting down.
pub(crate) struct CacheIo<T>(State<T>);

enum State<T> {
    Here(Option<Result<T>>),
    Elsewhere(oneshot::Receiver<io::Result<T>>),
}

impl<T> CacheIo<T> {
    /// I/O that is complete at once.
    pub fn done(done: Result<T>) -> Self {
        CacheIo(State::Here(Some(done)))
    }
}

/// No field is pinned.
impl<T> Unpin for CacheIo<T> {}

impl<T> Future for CacheIo<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let at_end = || VenusError::new(ErrorKind::ShutDown, "cache");
        match &mut self.0 {
            State::Here(done) => Poll::Ready(done.take().unwrap_or_else(|| Err(at_end()))),
            State::Elsewhere(done_receiver) => Pin::new(done_receiver).poll(cx).map(|done_receiver| {
                done_receiver.map_or_else(|_| Err(at_end()), |done| done.map_err(failed))
            }),
        }
    }
}

fn failed(error: io::Error) -> VenusError {
    let kind = kind_of_failure(&error);
    if kind != ErrorKind::TooBig {
        tracing::warn!(%error, "the cache failed");
    }
    VenusError::new(kind, "cache")
}

/// Error kind of an I/O error of the cache. A length that the file system does not support is an error of the request.
pub(crate) fn kind_of_failure(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::CacheFull,
        io::ErrorKind::FileTooLarge => ErrorKind::TooBig,
        _ if lacks_descriptors(error) => ErrorKind::NoDescriptor,
        _ => ErrorKind::Cache,
    }
}

/// Whether the process, or the machine, has as many files open as it may (EMFILE, ENFILE).
pub(super) fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_the_disk_cannot_have_is_no_failure_of_the_cache() {
        let file = tempfile::tempfile().unwrap();
        // ext4 and others: at most 16 TiB. A file system without that limit has nothing to refuse.
        if let Err(error) = file.set_len(999_999_999_999_999) {
            assert_eq!(kind_of_failure(&error), ErrorKind::TooBig);
        }
        let errno = |n| kind_of_failure(&std::io::Error::from_raw_os_error(n)).errno();
        assert_eq!((errno(27), errno(28), errno(5)), (27, 28, 5));
        assert_eq!((errno(23), errno(24)), (23, 23), "the mount's limit, not that of the program");
    }
}
