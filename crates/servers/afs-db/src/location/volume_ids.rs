//! Allocation of volume ids.

use afs_wire::ids::VolumeId;

use crate::rows::{META, VOLUME, number};
use crate::{LocationError, Refusal, Rows, RowsMut};

/// The first id of a fresh cell (docs/protocol vldb.md "4. Semantics", GetNewVolumeId).
pub const FIRST_VOLUME_ID: VolumeId = VolumeId(0x2000_0000);

const MAX_ID: &[u8] = b"max-volume-id";

/// The counter: the next unused id.
pub(crate) fn current(rows: &(impl Rows + ?Sized)) -> Result<VolumeId, LocationError> {
    rows.get(META, MAX_ID)?.map_or(Ok(FIRST_VOLUME_ID), |value| number(&value).map(VolumeId))
}

/// Moves the counter forward, never back, and sets that of a fresh cell.
pub(crate) fn raise(rows: &mut (impl RowsMut + ?Sized), to: VolumeId) -> Result<(), LocationError> {
    let now = rows.get(META, MAX_ID)?.map(|value| number(&value)).transpose()?;
    if now.is_none_or(|now| now < to.0) { rows.put(META, MAX_ID, &to.0.to_be_bytes()) } else { Ok(()) }
}

/// Allocates `count` consecutive ids that no entry has; 0 only reads the counter.
pub(crate) fn allocate(rows: &mut (impl RowsMut + ?Sized), count: u32) -> Result<VolumeId, LocationError> {
    if count > 0x7fff_ffff {
        return Err(Refusal::BadIdBump.into());
    }
    let mut first = current(rows)?;
    if count == 0 {
        return Ok(first);
    }
    loop {
        let end = first.0.checked_add(count).ok_or(Refusal::BadIdBump)?;
        let taken = rows.range(VOLUME, &first.0.to_be_bytes(), &end.to_be_bytes(), 1)?;
        match taken.first() {
            Some((key, _)) => first = VolumeId(number(key)? + 1),
            None => {
                rows.put(META, MAX_ID, &end.to_be_bytes())?;
                return Ok(first);
            }
        }
    }
}
