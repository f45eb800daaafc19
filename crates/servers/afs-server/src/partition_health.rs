//! Health of the partitions of a server: which are off line, and which fail while they serve.

use std::collections::BTreeMap;

use afs_volume::VolumeError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, VolumeId};
use parking_lot::RwLock;

use crate::partitions::Partitions;

/// State of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// It serves.
    Online,
    /// It serves what can be read, and its disk or its index has failed since the server's start. Says how, the first time.
    Failing(String),
    /// It was not opened at the server's start. Says why.
    Offline(String),
}

impl PartitionState {
    /// The code for a call that asks for the partition; `None` where it serves.
    pub(crate) fn code(&self) -> Option<AbortCode> {
        match self {
            Self::Online => None,
            Self::Failing(_) => Some(AbortCode(Errno::EIO.number())),
            Self::Offline(_) => Some(AbortCode::VOFFLINE),
        }
    }
}

/// What is known of the partitions that are not well.
#[derive(Default)]
pub(crate) struct Health {
    pub(crate) offline: BTreeMap<PartitionId, String>,
    pub(crate) failing: RwLock<BTreeMap<PartitionId, String>>,
}

impl Partitions {
    /// The state of every partition, also of those that are off line.
    pub fn states(&self) -> BTreeMap<PartitionId, PartitionState> {
        self.ids().map(|id| (id, self.state(id))).collect()
    }

    /// The state of a partition. One that the server does not have is on line, as far as that goes.
    pub(crate) fn state(&self, partition: PartitionId) -> PartitionState {
        let health = self.health();
        let failing = || health.failing.read().get(&partition).cloned().map(PartitionState::Failing);
        let offline = health.offline.get(&partition).cloned().map(PartitionState::Offline);
        offline.or_else(failing).unwrap_or(PartitionState::Online)
    }

    /// The code for a volume that is on no partition that serves: it may be on one that is off line.
    pub(crate) fn code_of_absent(&self) -> AbortCode {
        if self.health().offline.is_empty() { AbortCode::VNOVOL } else { AbortCode::VOFFLINE }
    }

    /// Notes a failure of the partition of a volume, which the log tells once.
    pub(crate) fn note(&self, volume: VolumeId, error: &VolumeError) {
        if !error.is_of_partition() {
            return;
        }
        let Some(partition) = self.partition_of(volume) else { return };
        self.fails(partition, error);
    }

    /// The same of a partition.
    pub(crate) fn fails(&self, partition: PartitionId, error: &VolumeError) {
        let mut failing = self.health().failing.write();
        failing.entry(partition).or_insert_with(|| {
            tracing::error!(%partition, %error, "a partition fails; look at its disk, and at the messages of the kernel");
            error.to_string()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_volumes_of_a_partition_that_is_off_line_for_removed() {
        let (a, b) = (PartitionId(0), PartitionId(1));
        let well = Partitions::new([]);
        assert_eq!((well.code_of_absent(), well.ids().count()), (AbortCode::VNOVOL, 0));
        let ill = well.with_offline([(b, "it is not mounted".to_owned())]);
        assert_eq!(ill.code_of_absent(), AbortCode::VOFFLINE);
        assert_eq!(ill.ids().collect::<Vec<_>>(), [b]);
        assert_eq!(ill.iter().count(), 0);
        assert_eq!(ill.state(b), PartitionState::Offline("it is not mounted".to_owned()));
        assert_eq!(ill.state(b).code(), Some(AbortCode::VOFFLINE));
        assert_eq!(ill.state(a).code(), None);
        let states = ill.states();
        assert_eq!(states.keys().copied().collect::<Vec<_>>(), [b]);
    }
}
