//! Row of the snapshot schedule.

use afs_wire::operations::SnapshotSchedule;
use afs_wire::xdr::{Decode, Encode};

use super::OperationError;
use super::rows::META;
use crate::{Refusal, Rows, RowsMut};

/// Key of the row.
const KEY: &[u8] = b"snapshot-schedule";

/// The schedule, if one was set.
pub(super) fn get(rows: &dyn Rows) -> Result<Option<SnapshotSchedule>, OperationError> {
    let damaged = |_| OperationError::from(crate::LocationError::from(Refusal::Damaged));
    let row = rows.get(META, KEY)?;
    row.map(|row| SnapshotSchedule::from_bytes(&row).map_err(damaged)).transpose()
}

/// Sets the schedule.
pub(super) fn set(rows: &mut dyn RowsMut, schedule: &SnapshotSchedule) -> Result<(), OperationError> {
    Ok(rows.put(META, KEY, &schedule.to_bytes())?)
}
