//! I/O on cache files, on blocking threads or at once.

use afs_rpc::Stall;

use crate::cache::CacheWorker;
use crate::error::Result;
use crate::files::Files;

/// Most bytes that [`Files::disk_briefly`] moves.
pub(crate) const BRIEF_BYTES_MAX: u64 = 64 << 10;

impl Files {
    /// Runs I/O on cache files.
    pub fn worker(&self) -> &CacheWorker {
        &self.worker
    }

    /// I/O of any duration on cache files.
    pub async fn disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.worker.run(Stall::Any, work).await
    }

    /// I/O too short for another thread: a few system calls that move up to [`BRIEF_BYTES_MAX`].
    pub async fn disk_briefly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.worker.run(Stall::Brief, work).await
    }

    /// I/O that moves this many bytes.
    pub async fn disk_moving<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let stall = if bytes <= BRIEF_BYTES_MAX { Stall::Brief } else { Stall::Any };
        self.worker.run(stall, work).await
    }

    /// Creates an empty cache file for a file that is about to be created. An error is ignored: the open then creates
    /// its own.
    pub async fn prepare_spare(&self) {
        if self.spares.is_full() {
            return;
        }
        let cache = self.cache.clone();
        let make = move || {
            let file = cache.create()?;
            file.mark()?;
            Ok(file)
        };
        if let Ok(file) = self.disk_briefly(make).await {
            self.spares.push(file);
        }
    }
}
