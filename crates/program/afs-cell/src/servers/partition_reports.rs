//! Reports of the partitions of a host, for the control socket and `andrew status`.

use afs_server::{PartitionState, Partitions};
use afs_wire::ids::PartitionId;
use serde::{Deserialize, Serialize};

/// State of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionReport {
    /// The partition.
    pub partition: String,
    /// `online`, `failing` or `offline`.
    pub state: String,
    /// Why it is not on line.
    pub why: Option<String>,
}

/// The state of a partition that serves.
pub(super) const ONLINE: &str = "online";

/// All partitions of a host.
pub(super) fn reports(partitions: &Partitions) -> Vec<PartitionReport> {
    partitions.states().into_iter().map(report).collect()
}

fn report((partition, state): (PartitionId, PartitionState)) -> PartitionReport {
    let (word, why) = match state {
        PartitionState::Online => (ONLINE, None),
        PartitionState::Failing(why) => ("failing", Some(why)),
        PartitionState::Offline(why) => ("offline", Some(why)),
    };
    PartitionReport { partition: partition.to_string(), state: word.to_owned(), why }
}
