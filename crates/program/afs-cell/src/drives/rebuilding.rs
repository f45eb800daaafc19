//! Background task that makes the copies of chunks that are missing, at a bounded rate.

use afs_env::sync::Notify;
use afs_env::{EnvExt, EnvRef};
use afs_server::Partitions;
use afs_volume::{Rebuild, Rebuilt, VolumeStore};
use afs_wire::ids::PartitionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes written a second: 64 MiB.
const RATE: u64 = 64 << 20;
/// Bytes of one step.
const STEP: u64 = 4 << 20;
/// Cost of looking at a chunk, in bytes, besides its data.
const ROW_COST: u64 = 4096;
/// From the end of a pass to the next, unless the owner changes something, or a store lacks copies.
const PAUSE: Duration = Duration::from_secs(60);
/// From the end of a pass to the next at least.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The task, for all partitions that have copies.
pub(super) struct Rebuilder {
    wake: Arc<Notify>,
    /// Copies that the last complete pass could not make.
    missing: Arc<Mutex<BTreeMap<PartitionId, u64>>>,
}

impl Rebuilder {
    pub(super) fn start(env: &EnvRef, partitions: &Partitions) -> Self {
        let rebuilder = Self { wake: Arc::default(), missing: Arc::default() };
        partitions.iter().for_each(|(_, store)| store.wake_for_copies(rebuilder.wake.clone()));
        let (task, wake, missing) = (env.clone(), rebuilder.wake.clone(), rebuilder.missing.clone());
        let partitions = partitions.clone();
        env.spawn(Box::pin(async move {
            loop {
                for (partition, store) in partitions.iter() {
                    let left = pass(&task, store).await;
                    missing.lock().insert(partition, left);
                }
                // A store that lacks a copy may wake it each time.
                task.sleep(PAUSE_MIN).await;
                _ = task.timeout(PAUSE, wake.notified()).await;
            }
        }));
        rebuilder
    }

    /// Begins the next pass now.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Copies of chunks of a partition that the last pass could not make.
    pub(super) fn missing(&self, partition: PartitionId) -> u64 {
        self.missing.lock().get(&partition).copied().unwrap_or(0)
    }
}

/// Looks at every chunk of a partition once; returns the number of copies that are still missing.
async fn pass(env: &EnvRef, store: &VolumeStore) -> u64 {
    let (mut position, mut missing) = (Rebuild::default(), 0);
    loop {
        match store.rebuild_step(&mut position, STEP).await {
            Ok(done) => {
                missing += done.missing;
                if done.complete {
                    return missing;
                }
                env.sleep(at_rate(&done)).await;
            }
            Err(error) => {
                tracing::warn!(%error, "copies of chunks cannot be made now");
                return missing;
            }
        }
    }
}

fn at_rate(done: &Rebuilt) -> Duration {
    let micros = u128::from(done.bytes + done.rows * ROW_COST) * 1_000_000 / u128::from(RATE);
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
