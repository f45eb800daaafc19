//! Scheduled snapshots: the cell's schedule, and the file servers' part in it.

mod day;
mod keep;
mod snapshotter;

pub use snapshotter::{SnapshotRun, Snapshotter};

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::operations::{GetSnapshotSchedule, SetSnapshotSchedule, SnapshotSchedule};

use crate::Admin;
use crate::error::{AdminError, AdminResult};
use day::Day;

/// The default schedule: the last seven days, and the last four weeks.
pub const USUAL: SnapshotSchedule = SnapshotSchedule { daily: 7, weekly: 4 };

/// Whether a snapshot's name is a scheduled one: `YYYY-MM-DD`. Such snapshots are deleted by the schedule.
#[must_use]
pub fn is_scheduled(name: &str) -> bool {
    Day::parse(name).is_some()
}

impl Admin {
    /// The schedule of the cell; [`USUAL`] if none was set, `None` if the cell's database servers are another
    /// maker's and have none.
    ///
    /// # Errors
    /// No database server replies, or the user has no right.
    pub async fn snapshot_schedule(&self) -> AdminResult<Option<SnapshotSchedule>> {
        match self.locate(&GetSnapshotSchedule {}).await {
            Ok(reply) => Ok(Some(reply.schedule)),
            Err(CallError::Abort(code)) if code.0 == Errno::ENOENT.number() => Ok(Some(USUAL)),
            Err(CallError::Abort(AbortCode::RX_INVALID_OPERATION | AbortCode::RXGEN_OPCODE)) => Ok(None),
            Err(error) => Err(AdminError::call("Could not get the schedule of snapshots", None, error)),
        }
    }

    /// Sets the schedule. With zero of both kinds none are made, and existing ones are kept.
    ///
    /// # Errors
    /// As [`Admin::snapshot_schedule`]; more than [`afs_wire::operations::SCHEDULED_MAX`] of a kind.
    pub async fn set_snapshot_schedule(&self, schedule: SnapshotSchedule) -> AdminResult {
        let set = self.locate(&SetSnapshotSchedule { schedule }).await;
        set.map(drop).map_err(|e| AdminError::call("Could not set the schedule of snapshots", None, e))
    }
}
