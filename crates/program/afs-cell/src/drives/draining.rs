//! Background tasks that move all data of a drive to other drives, at a bounded rate.

use super::{DrainLine, DrainState};
use afs_drive::DriveId;
use afs_env::{EnvExt, EnvRef};
use afs_server::Partitions;
use afs_volume::{Relocated, Relocation, VolumeError, VolumeStore};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes copied a second, unless the owner says otherwise: 64 MiB.
pub(super) const RATE: u64 = 64 << 20;
/// Bytes of one step.
const STEP: u64 = 4 << 20;
/// Cost of reading a row, in bytes, besides the data.
const ROW_COST: u64 = 256;
/// Pause after a step that failed, such as by a drive that is away.
const AFTER_ERROR: Duration = Duration::from_secs(10);
/// Pause between two passes, the first and the longest: what the first leaves waits for readers and for discards.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// An order to drain a drive, as the registry keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainOrder {
    /// The drive that takes the data; without, the one that takes the new data of each partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// Bytes a second.
    pub rate: u64,
}

/// The drains of this process, by drive.
pub(super) struct Drains {
    env: EnvRef,
    partitions: Partitions,
    running: Mutex<BTreeMap<DriveId, Arc<Drain>>>,
}

/// One drain.
struct Drain {
    from: DriveId,
    order: DrainOrder,
    cancelled: AtomicBool,
    progress: Mutex<Progress>,
}

#[derive(Clone, Default)]
struct Progress {
    moved: Relocated,
    left_chunks: u64,
    left_bytes: u64,
    /// Damaged chunks and rows that the present pass has met.
    bad: u64,
    drained: bool,
    problem: Option<String>,
}

impl Drains {
    pub(super) fn new(env: &EnvRef, partitions: &Partitions) -> Self {
        Self { env: env.clone(), partitions: partitions.clone(), running: Mutex::default() }
    }

    /// Starts to drain a drive, in place of an earlier drain with another order. One that is in progress continues.
    pub(super) fn start(&self, from: DriveId, order: DrainOrder) {
        let mut running = self.running.lock();
        if let Some(drain) = running.get(&from) {
            if drain.order == order && !drain.progress.lock().drained {
                return;
            }
            drain.cancelled.store(true, Ordering::Relaxed);
        }
        let drain = Drain { from, order, cancelled: AtomicBool::new(false), progress: Mutex::default() };
        let drain = Arc::new(drain);
        running.insert(from, drain.clone());
        drop(running);
        self.env.spawn(Box::pin(drain.run(self.env.clone(), self.partitions.clone())));
    }

    /// Ends a drain after its present step. What was moved stays where it is now.
    pub(super) fn cancel(&self, from: DriveId) {
        if let Some(drain) = self.running.lock().remove(&from) {
            drain.cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// How far a drain is; `None` if there is none.
    pub(super) fn line(&self, from: DriveId) -> Option<DrainLine> {
        self.running.lock().get(&from).map(|drain| drain.line())
    }
}

impl Drain {
    fn line(&self) -> DrainLine {
        let Progress { moved, left_chunks, left_bytes, bad, drained, problem } = self.progress.lock().clone();
        let state = if drained { DrainState::Drained } else { DrainState::Draining };
        let (moved_chunks, moved_bytes) = (moved.chunks, moved.bytes);
        DrainLine { state, moved_chunks, moved_bytes, left_chunks, left_bytes, bad, problem }
    }

    async fn run(self: Arc<Self>, env: EnvRef, partitions: Partitions) {
        let mut pause = PAUSE;
        while !self.is_cancelled() {
            if self.count(&env, &partitions).await == Some(0) {
                tracing::info!(drive = %self.from, "the drive is drained");
                self.progress.lock().drained = true;
                return;
            }
            self.progress.lock().bad = 0;
            let before = self.progress.lock().moved.chunks;
            for (_, store) in partitions.iter() {
                self.pass(&env, store).await;
            }
            let has_moved = self.progress.lock().moved.chunks > before;
            pause = if has_moved { PAUSE } else { PAUSE_MAX.min(2 * pause) };
            env.sleep(pause).await;
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Counts what is left; `None` if that cannot be told.
    async fn count(&self, env: &EnvRef, partitions: &Partitions) -> Option<u64> {
        let (mut chunks, mut bytes) = (0, 0);
        for (_, store) in partitions.iter() {
            let (store, from) = (store.clone(), self.from);
            let counted = env.run_blocking(move || store.contents_of_drive(from)).await.ok()?;
            let contents = counted.inspect_err(|error| self.fails(error)).ok()?;
            chunks += contents.chunks;
            bytes += contents.bytes;
        }
        let mut progress = self.progress.lock();
        (progress.left_chunks, progress.left_bytes) = (chunks, bytes);
        Some(chunks)
    }

    /// Walks once over the data of a partition.
    async fn pass(&self, env: &EnvRef, store: &VolumeStore) {
        let to = || self.order.to.map_or_else(|| store.drive_in_use(), DriveId);
        let mut relocation = Relocation::of_drive(self.from, to());
        while !self.is_cancelled() {
            match store.relocate_step(&mut relocation, STEP).await {
                Ok(done) => {
                    self.add(&done);
                    env.sleep(self.at_rate(&done)).await;
                    if done.complete {
                        return;
                    }
                }
                Err(error) => {
                    self.fails(&error);
                    env.sleep(AFTER_ERROR).await;
                }
            }
        }
    }

    fn at_rate(&self, done: &Relocated) -> Duration {
        let cost = u128::from(done.bytes + done.rows * ROW_COST);
        let micros = cost * 1_000_000 / u128::from(self.order.rate.max(1));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    fn add(&self, done: &Relocated) {
        let mut progress = self.progress.lock();
        progress.moved.chunks += done.chunks;
        progress.moved.bytes += done.bytes;
        progress.left_chunks = progress.left_chunks.saturating_sub(done.chunks);
        progress.left_bytes = progress.left_bytes.saturating_sub(done.bytes);
        progress.bad += done.bad;
        progress.problem = None;
    }

    fn fails(&self, error: &VolumeError) {
        let problem = Some(error.to_string());
        let mut progress = self.progress.lock();
        if progress.problem != problem {
            tracing::warn!(drive = %self.from, %error, "draining a drive has to wait");
            progress.problem = problem;
        }
    }
}
