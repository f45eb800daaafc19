//! Snapshots that servers make by themselves: the cell's schedule, and the server's part of it.

mod day;
mod keep;
mod snapshotter;

pub use snapshotter::{Snapshotter, Work};

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::operations::{GetSnapshotSchedule, SetSnapshotSchedule, SnapshotSchedule};

use crate::Admin;
use crate::error::{AdminError, AdminResult};
use day::Day;

/// The schedule of a cell in which none was ever set: of the last seven days, and of the last four weeks.
pub const USUAL: SnapshotSchedule = SnapshotSchedule { daily: 7, weekly: 4 };

/// Whether a snapshot's name is one that servers give: `YYYY-MM-DD`. Such snapshots are removed by the schedule.
#[must_use]
pub fn is_scheduled(name: &str) -> bool {
    Day::parse(name).is_some()
}

impl Admin {
    /// The schedule of the cell; [`USUAL`] when none was ever set, `None` where the cell's database servers are another
    /// maker's and know of none.
    ///
    /// # Errors
    /// No database server answers, or not to this user.
    pub async fn snapshot_schedule(&self) -> AdminResult<Option<SnapshotSchedule>> {
        match self.locate(&GetSnapshotSchedule {}).await {
            Ok(reply) => Ok(Some(reply.schedule)),
            Err(CallError::Abort(code)) if code.0 == Errno::ENOENT.number() => Ok(Some(USUAL)),
            Err(CallError::Abort(AbortCode::RX_INVALID_OPERATION | AbortCode::RXGEN_OPCODE)) => Ok(None),
            Err(error) => Err(AdminError::call("Could not get the schedule of snapshots", None, error)),
        }
    }

    /// Sets it. Zero of both kinds is no schedule: what was made is kept.
    ///
    /// # Errors
    /// As [`Admin::snapshot_schedule`]; more than [`afs_wire::operations::SCHEDULED_MAX`] of a kind.
    pub async fn set_snapshot_schedule(&self, schedule: SnapshotSchedule) -> AdminResult {
        let set = self.locate(&SetSnapshotSchedule { schedule }).await;
        set.map(drop).map_err(|e| AdminError::call("Could not set the schedule of snapshots", None, e))
    }
}
