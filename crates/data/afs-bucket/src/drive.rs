//! The drive: packs of chunks in a bucket.

use std::ops::Range;
use std::sync::Arc;

use afs_drive::{BoxFuture, ChunkId, ChunkRef, Drive, DriveError, LiveChunks, SweepReport, Unclaimed, Usage};
use afs_env::sync::{self, Notify};
use afs_env::{EnvExt, EnvRef, Stall};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::admission::Admission;
use crate::bucket::Bucket;
use crate::cache::Cache;
use crate::flush::Waiting;
use crate::packs::{Bounds, Packs};
use crate::reading::Fetching;
use crate::requests::Requests;
use crate::tickets::OwnerId;

/// Bounds of a drive.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Length of a full pack, in bytes. Default 8 MiB, and room for the index: a GiB of chunks of 1 MiB takes 128 requests.
    /// A pack has at least one chunk, however long.
    pub pack_bytes: usize,
    /// Packs being put at a time; further writes wait. Default 4, so that packs take at most 48 MiB of memory.
    pub packs_pending: usize,
    /// Chunks kept in memory after a part of them was read, in bytes. Default 16 MiB: what four sequential readers of large
    /// files read ahead (four chunks of 1 MiB each), so that a chunk that is read in parts is fetched once. It is no cache of
    /// what is read often, which clients have.
    pub cache_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { pack_bytes: (8 << 20) + (64 << 10), packs_pending: 4, cache_bytes: 16 << 20 }
    }
}

/// A drive in a bucket. Clones are handles of the same drive.
#[derive(Clone)]
pub struct BucketDrive(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) requests: Requests,
    pub(crate) env: EnvRef,
    pub(crate) packs: Mutex<Packs>,
    pub(crate) cache: Mutex<Cache>,
    pub(crate) fetching: Mutex<Fetching>,
    pub(crate) waiting: Mutex<Waiting>,
    /// Whose it is, and whether it has to be there.
    pub(crate) admission: Admission,
    /// The critical section of getting the run a number.
    pub(crate) claiming: sync::Mutex<()>,
    /// Notified when a put ends.
    pub(crate) room: Notify,
}

impl BucketDrive {
    /// Makes a drive under a prefix that has none, or opens it if it is this owner's.
    ///
    /// # Errors
    /// As [`BucketDrive::open`].
    pub async fn create(
        bucket: Arc<dyn Bucket>,
        owner: OwnerId,
        env: EnvRef,
        config: Config,
    ) -> Result<Self, DriveError> {
        let drive = Self::attached(NO_NAME, bucket, Admission::Make(owner), env, config);
        drive.0.admission.admit(&drive.0).await?;
        Ok(drive)
    }

    /// Opens the drive of an owner. One request; the run gets its number with the first write, or the sweep.
    ///
    /// # Errors
    /// [`DriveError::Io`] if the store does not serve, has no drive under this prefix, or one of another owner.
    pub async fn open(
        bucket: Arc<dyn Bucket>,
        owner: OwnerId,
        env: EnvRef,
        config: Config,
    ) -> Result<Self, DriveError> {
        let drive = Self::attached(NO_NAME, bucket, Admission::Check(owner), env, config);
        drive.0.admission.admit(&drive.0).await?;
        Ok(drive)
    }

    /// A drive to which no request was made yet. Whose it is is looked at before anything is written or deleted, so that the store
    /// may be away now. `name` is for messages and the log.
    #[must_use]
    pub fn attached(
        name: &str,
        bucket: Arc<dyn Bucket>,
        admission: Admission,
        env: EnvRef,
        config: Config,
    ) -> Self {
        Self(Arc::new(Inner::new(name.into(), bucket, admission, env, config)))
    }

    /// Begins work now, on this thread until it has to wait.
    fn begin<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F) -> BoxFuture<Result<T, DriveError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DriveError>> + Send + 'static,
    {
        let result = self.0.env.start_with_result(Stall::None, work(self.0.clone()));
        Box::pin(async move { result.await.unwrap_or(Err(DriveError::Closed)) })
    }
}

impl Inner {
    fn new(
        name: Arc<str>,
        bucket: Arc<dyn Bucket>,
        admission: Admission,
        env: EnvRef,
        config: Config,
    ) -> Self {
        // The places in a pack are numbers of 32 bits.
        let (pack, pending) = (config.pack_bytes.min(1 << 30), config.packs_pending.max(1));
        let bounds = Bounds { pack, pending, doomed: DOOMED_MAX };
        Self {
            requests: Requests::new(bucket, env.clone(), name),
            env,
            packs: Mutex::new(Packs::new(bounds)),
            cache: Mutex::new(Cache::new(config.cache_bytes)),
            fetching: Mutex::default(),
            waiting: Mutex::default(),
            admission,
            claiming: sync::Mutex::default(),
            room: Notify::new(),
        }
    }
}

impl Drive for BucketDrive {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        let drive = self.clone();
        let written = self.begin(|inner| async move {
            let chunk = inner.write(data).await?;
            Ok(Unclaimed::new(chunk, drive))
        });
        Box::pin(async move { written.await?.claim() })
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        self.begin(|inner| async move { inner.read(chunk, range).await })
    }

    /// Chunks are in memory until their pack is put, so that none is forgotten: all are flushed, whichever are named. A failed
    /// flush is made again by the next call.
    fn sync(&self, _written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        self.0.sync()
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        self.begin(|inner| async move { inner.discard(&chunks).await })
    }

    fn continue_after(&self, last: ChunkId) {
        self.0.packs.lock().continue_after(last);
    }

    /// A bucket has no bound: the numbers are large constants.
    fn usage(&self) -> Result<Usage, DriveError> {
        Ok(Usage { free: UNBOUNDED, total: UNBOUNDED })
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.begin(|inner| async move { inner.sweep(live).await })
    }
}

/// The name of a drive that has none at this host.
const NO_NAME: &str = "in a bucket";
/// Packs to be deleted, each about 15 bytes: as many as are counted.
const DOOMED_MAX: usize = 1 << 20;
/// 1 PiB.
const UNBOUNDED: u64 = 1 << 50;

#[cfg(test)]
#[path = "drive_tests/mod.rs"]
mod tests;
