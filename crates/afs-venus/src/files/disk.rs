//! Work on the cache's files, done where blocking does no harm.

use afs_rpc::Stall;

use crate::cache::CacheWorker;
use crate::error::Result;
use crate::files::Files;

/// Bytes that [`Files::disk_briefly`] moves at most.
pub(crate) const BRIEF_BYTES_MAX: u64 = 64 << 10;

impl Files {
    /// Who does such work.
    pub fn worker(&self) -> &CacheWorker {
        &self.worker
    }

    /// Work on the cache's files, where blocking does no harm.
    pub async fn disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.worker.run(Stall::Any, work).await
    }

    /// Work on the cache's files that is not worth another thread: a few system calls that move up to [`BRIEF_BYTES_MAX`].
    pub async fn disk_briefly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.worker.run(Stall::Brief, work).await
    }

    /// Work that moves so many bytes.
    pub async fn disk_moving<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let stall = if bytes <= BRIEF_BYTES_MAX { Stall::Brief } else { Stall::Any };
        self.worker.run(stall, work).await
    }

    /// Makes an empty cache file for a file that is about to be created. An error is left to the open, which then makes its own.
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
