//! Looking for damage in the background, and mending it with what replicas have.

mod replicas;
mod round;

pub use replicas::Replicas;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvRef;
use afs_volume::{BadData, ScrubRound};
use afs_wire::ids::PartitionId;
use parking_lot::{Mutex, MutexGuard};

use crate::partitions::Partitions;
use round::Rounds;

/// How often and how fast a server looks at all it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubSettings {
    /// From the end of a round to the beginning of the next. Default: seven days.
    pub every: Duration,
    /// Bytes read a second, of each partition; at least 1. Default: 16 MiB.
    pub rate: u64,
    /// How long after its start a server begins, so that it serves first. Default: ten minutes.
    pub delay: Duration,
}

impl Default for ScrubSettings {
    fn default() -> Self {
        let (day, minute) = (Duration::from_secs(86_400), Duration::from_secs(60));
        ScrubSettings { every: 7 * day, rate: 16 << 20, delay: 10 * minute }
    }
}

/// What is known of the scrub of a partition.
#[derive(Clone, Debug, Default)]
pub struct ScrubReport {
    /// The round under way; it has not begun where `began` is 0.
    pub now: ScrubRound,
    /// The last complete round.
    pub last: ScrubRound,
    /// What was found damaged since the server's start and could not be repaired, at most [`DAMAGES_MAX`]; a round that finds nothing
    /// empties it.
    pub damaged: Vec<BadData>,
}

/// Most damages that are told one by one.
pub const DAMAGES_MAX: usize = 100;

/// Reads all that the stores have, again and again. Clones are one scrubber.
#[derive(Clone)]
pub struct Scrubber {
    settings: ScrubSettings,
    reports: Arc<Mutex<BTreeMap<PartitionId, ScrubReport>>>,
}

impl Scrubber {
    /// Begins to look at every partition, for as long as `env`'s world lasts. Without `replicas` it only tells.
    pub fn start(
        env: &EnvRef,
        partitions: &Partitions,
        replicas: Option<Replicas>,
        settings: ScrubSettings,
    ) -> Self {
        let scrubber = Scrubber { settings, reports: Arc::default() };
        let replicas = replicas.map(Arc::new);
        for (partition, store) in partitions.iter() {
            let rounds = Rounds {
                env: env.clone(),
                partition,
                store: store.clone(),
                replicas: replicas.clone(),
                scrubber: scrubber.clone(),
            };
            env.spawn(Box::pin(rounds.run()));
        }
        scrubber
    }

    /// What was seen so far, by partition.
    pub fn reports(&self) -> BTreeMap<PartitionId, ScrubReport> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PartitionId, ScrubReport>> {
        self.reports.lock()
    }
}
