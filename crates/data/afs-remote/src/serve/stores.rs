//! The chunk stores of a drive: each opened when it is first used, with ids of this run.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use afs_datapath::capability::{KeyEpoch, Revocations, Secret, StoreNumber};
use afs_datapath::session::Failure;
use afs_drive::{ChunkId, ChunkRef, Drive, DriveError, SegmentDrive, SegmentStore, Usage};
use afs_env::sync::Semaphore;
use afs_env::{EnvExt, EnvRef};
use parking_lot::Mutex;

use super::staging::Staging;
use crate::options::SEGMENT_BYTES;

/// Number of a run of a drive: each start has a greater one, which is durable before anything is served.
///
/// It is part of the ids of the chunks that the run writes, so that no two runs give the same id, not even where a crash
/// made the drive forget that the first one had given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run(pub u64);

/// The last run of a drive.
pub const RUN_MAX: u64 = (1 << 31) - 1;
/// A drive has stores with smaller numbers than this: as many as a file server has partitions.
pub const STORES_MAX: u32 = 256;
/// Segments of one run.
const RUN_SHIFT: u32 = 32;
/// KiB of chunks that are being written and read, in all.
const BUDGET: usize = 64 << 10;

impl Run {
    /// Chunks of this run have greater ids.
    fn last_id_before(self) -> ChunkId {
        ChunkId::from_parts((self.0 << RUN_SHIFT) - 1, u64::MAX)
    }
}

/// Opens the segments of a store. Called once for each store that is used, on a thread for blocking work.
type Opener<S> = Arc<dyn Fn(StoreNumber) -> io::Result<S> + Send + Sync>;

/// Keeps the key that a file server gives, durably, in place of the one before. Called on a thread for blocking work, once at a
/// time; `false` if it could not be kept.
pub type Adopt = Arc<dyn Fn(KeyEpoch, &Secret) -> bool + Send + Sync>;

/// The chunk stores of a drive. Clones are the same.
pub struct ChunkStores<S: SegmentStore>(pub(super) Arc<Inner<S>>);

impl<S: SegmentStore> Clone for ChunkStores<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

pub(super) struct Inner<S: SegmentStore> {
    pub env: EnvRef,
    pub run: Run,
    opener: Opener<S>,
    pub adopt: Adopt,
    /// One store is opened at a time.
    turn: afs_env::sync::Mutex<()>,
    stores: Mutex<BTreeMap<StoreNumber, SegmentDrive<S>>>,
    /// What is to be discarded in stores that were closed, when they are open again.
    unfreed: Mutex<BTreeMap<StoreNumber, Vec<ChunkRef>>>,
    pub budget: Arc<Semaphore>,
    pub staging: Arc<Staging>,
    pub counts: Counts,
}

#[derive(Default)]
pub(super) struct Counts {
    pub written: AtomicU64,
    pub read: AtomicU64,
    pub damaged: AtomicU64,
}

impl<S: SegmentStore> ChunkStores<S> {
    /// Stores that are not open yet, of a drive that is given no other key. `run` was used by no earlier start; it is 1 to
    /// [`RUN_MAX`].
    #[must_use]
    pub fn new(
        env: EnvRef,
        run: Run,
        opener: impl Fn(StoreNumber) -> io::Result<S> + Send + Sync + 'static,
    ) -> Self {
        Self::with_keys(env, run, Arc::new(|_, _| false), opener)
    }

    /// As [`ChunkStores::new`], of a drive that keeps by `adopt` the keys that it is given.
    #[must_use]
    pub fn with_keys(
        env: EnvRef,
        run: Run,
        adopt: Adopt,
        opener: impl Fn(StoreNumber) -> io::Result<S> + Send + Sync + 'static,
    ) -> Self {
        let run = Run(run.0.clamp(1, RUN_MAX));
        Self(Arc::new(Inner {
            env,
            run,
            opener: Arc::new(opener),
            adopt,
            turn: afs_env::sync::Mutex::new(()),
            stores: Mutex::default(),
            unfreed: Mutex::default(),
            budget: Arc::new(Semaphore::new(BUDGET)),
            staging: Staging::new(),
            counts: Counts::default(),
        }))
    }

    /// Number of chunks that clients have staged and nobody has claimed.
    #[must_use]
    pub fn staged(&self) -> usize {
        self.0.staging.len()
    }

    /// The table of revocations with which they are to be served: what was sealed in an earlier run, which the drive does not
    /// remember, is void in this one.
    #[must_use]
    pub fn revocations(&self) -> Revocations {
        Revocations::of_run(self.0.run.0)
    }
}

impl<S: SegmentStore> Inner<S> {
    /// A store, opened if it is not open, or if a flush of it has failed: then what was not durable is forgotten.
    ///
    /// # Errors
    /// [`Failure::NoObject`] for a number that no store has, [`Failure::Unavailable`] if it cannot be opened now.
    pub async fn store(&self, number: StoreNumber) -> Result<SegmentDrive<S>, Failure> {
        if number.0 >= STORES_MAX {
            return Err(Failure::NoObject);
        }
        let _turn = self.turn.lock().await;
        if let Some(open) = self.open_store(number) {
            return Ok(open);
        }
        let (opener, env, run) = (self.opener.clone(), self.env.clone(), self.run);
        let opened = self.env.run_blocking(move || {
            let drive = SegmentDrive::open(opener(number)?, env, SEGMENT_BYTES)?;
            drive.continue_after(run.last_id_before());
            Ok::<_, io::Error>(drive)
        });
        match opened.await.map_err(io::Error::other).flatten() {
            Ok(drive) => {
                let unfreed = self.unfreed.lock().remove(&number);
                unfreed.into_iter().for_each(|chunks| drop(drive.discard(chunks)));
                self.stores.lock().insert(number, drive.clone());
                Ok(drive)
            }
            Err(error) => {
                tracing::error!(store = number.0, %error, "a store of chunks cannot be opened");
                Err(Failure::Unavailable)
            }
        }
    }

    /// The failure for a client.
    pub fn failure(&self, number: StoreNumber, error: &DriveError) -> Failure {
        match error {
            DriveError::NoSpace => return Failure::NoSpace,
            DriveError::Busy => return Failure::Busy,
            DriveError::Damaged { .. } => return Failure::Damaged,
            DriveError::Length { .. } => return Failure::Invalid,
            _ => {}
        }
        tracing::error!(store = number.0, %error, "a store of chunks failed");
        Failure::Io
    }

    /// A store that is open. One whose flush has failed is closed, whether or not the request that has flushed has told of it: the next
    /// request is not to fail for that.
    fn open_store(&self, number: StoreNumber) -> Option<SegmentDrive<S>> {
        let mut stores = self.stores.lock();
        let open = stores.get(&number)?;
        if !open.needs_reopen() {
            return Some(open.clone());
        }
        self.unfreed.lock().entry(number).or_default().extend(open.unfreed());
        stores.remove(&number);
        None
    }

    /// Space on the medium; nothing if it cannot tell.
    pub fn usage(&self, drive: &SegmentDrive<S>) -> Usage {
        drive.usage().unwrap_or_default()
    }
}
