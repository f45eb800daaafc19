//! State of a partition, as its server tells it.

use afs_wire::error::{AbortCode, Errno};
use afs_wire::vol::{PartitionInfo64, PartitionText};

use super::FreeSpace;
use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// State of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// It serves.
    Online(FreeSpace),
    /// Its disk or its index has failed since its server's start. Some of its volumes may still be read.
    Failing,
    /// Its server could not open it, or found another one in its place. Nothing is known of its volumes.
    Offline,
}

impl PartitionState {
    /// The space on it, where it serves.
    #[must_use]
    pub fn room(self) -> Option<FreeSpace> {
        if let Self::Online(room) = self { Some(room) } else { None }
    }

    /// Its word for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Online(_) => "online",
            Self::Failing => "failing",
            Self::Offline => "offline",
        }
    }
}

/// A partition that is not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllPartition {
    /// Where it is.
    pub place: ServerPartition,
    /// How it is: not [`PartitionState::Online`].
    pub state: PartitionState,
}

impl Admin {
    /// The state of a partition.
    ///
    /// # Errors
    /// Its server does not reply, or has no such partition.
    pub async fn partition_state(&self, place: ServerPartition) -> AdminResult<PartitionState> {
        let name = place.partition.check().map(|p| p.to_string()).unwrap_or_default();
        let request = PartitionInfo64 { name: PartitionText::truncated(name.as_bytes()) };
        match self.at(place.server, &request).await {
            Ok(reply) => {
                let (free_kib, total_kib) = (reply.partition.free, reply.partition.total);
                Ok(PartitionState::Online(FreeSpace { free_kib, total_kib }))
            }
            Err(error) if error.abort_code() == Some(AbortCode::VOFFLINE) => Ok(PartitionState::Offline),
            Err(error) if error.abort_code() == Some(AbortCode(Errno::EIO.number())) => {
                Ok(PartitionState::Failing)
            }
            Err(error) => {
                Err(AdminError::call(format!("Could not look at {place}"), Some(place.server), error))
            }
        }
    }

    /// The space on a partition.
    ///
    /// # Errors
    /// As [`Admin::partition_state`]; the partition is off line or fails.
    pub async fn free_space(&self, place: ServerPartition) -> AdminResult<FreeSpace> {
        match self.partition_state(place).await? {
            PartitionState::Online(space) => Ok(space),
            ill => Err(AdminError::refused(
                format!("Could not get the room on {place}"),
                format!("the partition is {}", ill.word()),
            )
            .with_hint(where_it_is_told(place))),
        }
    }
}

/// What to type next about a partition that is not well.
#[must_use]
pub fn where_it_is_told(place: ServerPartition) -> String {
    format!("`andrew status` on {} says why", place.server)
}
