//! Background scrub: finds damaged data and repairs it from replicas.

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

/// Interval and rate of the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubSettings {
    /// From the end of a round to the start of the next. Default: seven days.
    pub every: Duration,
    /// Bytes read per second, of each partition; at least 1. Default: 16 MiB.
    pub rate: u64,
    /// Delay after the server's start. Default: ten minutes.
    pub delay: Duration,
}

impl Default for ScrubSettings {
    fn default() -> Self {
        let (day, minute) = (Duration::from_secs(86_400), Duration::from_secs(60));
        ScrubSettings { every: 7 * day, rate: 16 << 20, delay: 10 * minute }
    }
}

/// Progress and findings on one partition.
#[derive(Clone, Debug, Default)]
pub struct ScrubReport {
    /// The current round; not started if `began` is 0.
    pub now: ScrubRound,
    /// The last complete round.
    pub last: ScrubRound,
    /// Damage found since the server's start that could not be repaired, at most [`DAMAGES_MAX`]; a round
    /// that finds none empties it.
    pub damaged: Vec<BadData>,
}

/// Most damages that are listed individually.
pub const DAMAGES_MAX: usize = 100;

impl ScrubReport {
    /// Lists a damage, unless it is listed or there are too many.
    fn note(&mut self, bad: BadData) {
        if self.damaged.len() < DAMAGES_MAX && !self.damaged.contains(&bad) {
            self.damaged.push(bad);
        }
    }
}

/// Repeated scrub of all stores of a server. Clones share one scrubber.
#[derive(Clone)]
pub struct Scrubber {
    settings: ScrubSettings,
    reports: Arc<Mutex<BTreeMap<PartitionId, ScrubReport>>>,
}

impl Scrubber {
    /// Starts to scrub every partition, for as long as `env` exists. Without `replicas` damage is only
    /// reported.
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
                partitions: partitions.clone(),
                store: store.clone(),
                replicas: replicas.clone(),
                scrubber: scrubber.clone(),
            };
            env.spawn(Box::pin(rounds.run()));
        }
        scrubber
    }

    /// Progress and findings so far, by partition.
    pub fn reports(&self) -> BTreeMap<PartitionId, ScrubReport> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PartitionId, ScrubReport>> {
        self.reports.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_volume::BadPart;
    use afs_wire::ids::{DataVersion, Uniquifier, VnodeId, VolumeId};

    #[test]
    fn damages_are_listed_once_and_up_to_their_bound() {
        let mut report = ScrubReport::default();
        for n in 0..3 * DAMAGES_MAX as u32 {
            report.note(BadData {
                volume: VolumeId(7),
                vnode: VnodeId(n / 2),
                unique: Uniquifier(1),
                data_version: DataVersion(1),
                part: BadPart::Record,
            });
        }
        assert_eq!(report.damaged.len(), DAMAGES_MAX);
    }
}
