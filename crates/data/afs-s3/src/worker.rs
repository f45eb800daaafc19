//! The thread with the sockets: requests run there, and end when who waits for them goes.

use std::io;

use afs_net::threads;
use tokio::runtime::Runtime;

/// A runtime of one thread.
pub(crate) struct Worker {
    /// Present until dropped.
    runtime: Option<Runtime>,
}

impl Worker {
    /// # Errors
    /// The kernel provides no thread.
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self { runtime: Some(threads::resolving_runtime("afs-s3")?) })
    }

    /// Runs a request. Dropping what this returns ends it. Without a reply, says why.
    pub(crate) fn run<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        request: F,
    ) -> impl Future<Output = Result<T, String>> + Send + use<T, F> {
        let task = self.runtime.as_ref().map(|runtime| Ending(runtime.spawn(request)));
        async move {
            let Some(mut task) = task else { return Err("closed".into()) };
            (&mut task.0).await.map_err(|error| error.to_string())
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A task that ends when this is dropped.
struct Ending<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
