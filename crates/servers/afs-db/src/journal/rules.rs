//! Operations of the journal over any rows: each function is one transaction.

use afs_wire::ids::UnixSeconds;

use super::rows::{META, OPERATION, VOLUME};
use super::{Draft, Holder, Kept, OPERATIONS_MAX, OperationError};
use crate::{Rows, RowsMut};

const LAST: &[u8] = b"last";

/// Begins an operation.
///
/// # Errors
/// [`OperationError::Busy`], [`OperationError::Full`], [`OperationError::TooLong`], or the store's.
pub fn begin<R: RowsMut + ?Sized>(
    rows: &mut R,
    draft: Draft,
    now: UnixSeconds,
) -> Result<Kept, OperationError> {
    draft.check()?;
    let volume = draft.volume.0.to_be_bytes();
    if rows.get(VOLUME, &volume)?.is_some() {
        return Err(OperationError::Busy);
    }
    if list(rows, 0, OPERATIONS_MAX)?.len() >= OPERATIONS_MAX {
        return Err(OperationError::Full);
    }
    let id = rows.get(META, LAST)?.map_or(0, |last| number(&last)) + 1;
    rows.put(META, LAST, &id.to_be_bytes())?;
    rows.put(VOLUME, &volume, &id.to_be_bytes())?;
    let kept = Kept { id, holding: 1, draft, since: now, heard: now };
    rows.put(OPERATION, &id.to_be_bytes(), &kept.to_row())?;
    Ok(kept)
}

/// Writes the next step.
///
/// # Errors
/// [`OperationError::Lost`], [`OperationError::Gone`], [`OperationError::TooLong`], or the store's.
pub fn step<R: RowsMut + ?Sized>(
    rows: &mut R,
    id: u64,
    holding: u64,
    step: String,
    detail: Vec<u8>,
    now: UnixSeconds,
) -> Result<(), OperationError> {
    let mut kept = held(rows, id, holding)?;
    (kept.draft.step, kept.draft.detail, kept.heard) = (step, detail, now);
    kept.draft.check()?;
    Ok(rows.put(OPERATION, &id.to_be_bytes(), &kept.to_row())?)
}

/// Extends a lease.
///
/// # Errors
/// [`OperationError::Lost`], [`OperationError::Gone`], or the store's.
pub fn heartbeat<R: RowsMut + ?Sized>(
    rows: &mut R,
    id: u64,
    holding: u64,
    now: UnixSeconds,
) -> Result<(), OperationError> {
    let mut kept = held(rows, id, holding)?;
    kept.heard = now;
    Ok(rows.put(OPERATION, &id.to_be_bytes(), &kept.to_row())?)
}

/// Removes an operation.
///
/// # Errors
/// [`OperationError::Lost`], [`OperationError::Gone`], or the store's.
pub fn end<R: RowsMut + ?Sized>(rows: &mut R, id: u64, holding: u64) -> Result<(), OperationError> {
    let kept = held(rows, id, holding)?;
    rows.delete(VOLUME, &kept.draft.volume.0.to_be_bytes())?;
    Ok(rows.delete(OPERATION, &id.to_be_bytes())?)
}

/// Operations by id.
///
/// # Errors
/// The store's.
pub fn list<R: Rows + ?Sized>(rows: &R, after: u64, limit: usize) -> Result<Vec<Kept>, OperationError> {
    let from = after.saturating_add(1).to_be_bytes();
    let found = rows.range(OPERATION, &from, &u64::MAX.to_be_bytes(), limit)?;
    found.iter().map(|(_, row)| Kept::from_row(row)).collect()
}

/// Gives an operation whose lease has expired to another holder.
///
/// # Errors
/// [`OperationError::Busy`], [`OperationError::Gone`], or the store's.
pub fn take_over<R: RowsMut + ?Sized>(
    rows: &mut R,
    id: u64,
    holder: Holder,
    now: UnixSeconds,
) -> Result<Kept, OperationError> {
    let mut kept = find(rows, id)?;
    if !kept.is_lapsed(now) {
        return Err(OperationError::Busy);
    }
    (kept.holding, kept.draft.holder, kept.heard) = (kept.holding + 1, holder, now);
    kept.draft.check()?;
    rows.put(OPERATION, &id.to_be_bytes(), &kept.to_row())?;
    Ok(kept)
}

fn held<R: Rows + ?Sized>(rows: &R, id: u64, holding: u64) -> Result<Kept, OperationError> {
    let kept = find(rows, id)?;
    if kept.holding == holding { Ok(kept) } else { Err(OperationError::Lost) }
}

fn find<R: Rows + ?Sized>(rows: &R, id: u64) -> Result<Kept, OperationError> {
    let row = rows.get(OPERATION, &id.to_be_bytes())?.ok_or(OperationError::Gone)?;
    Kept::from_row(&row)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryRows;
    use crate::journal::{DETAIL_MAX, LEASE_SECONDS};
    use afs_wire::ids::VolumeId;

    fn draft(volume: u32) -> Draft {
        Draft { word: "move".into(), volume: VolumeId(volume), step: "lock".into(), ..Draft::default() }
    }

    const AT: UnixSeconds = UnixSeconds(1000);

    #[test]
    fn one_volume_has_one_operation_and_numbers_do_not_return() {
        let mut rows = MemoryRows::default();
        let first = begin(&mut rows, draft(7), AT).unwrap();
        assert_eq!(begin(&mut rows, draft(7), AT), Err(OperationError::Busy));
        assert_eq!(begin(&mut rows, draft(8), AT).unwrap().id, 2);
        step(&mut rows, 1, first.holding, "clone".into(), vec![1], AT).unwrap();
        assert_eq!(list(&rows, 0, 10).unwrap()[0].draft.step, "clone");
        end(&mut rows, 1, first.holding).unwrap();
        assert_eq!(end(&mut rows, 1, first.holding), Err(OperationError::Gone));
        assert_eq!(begin(&mut rows, draft(7), AT).unwrap().id, 3);
    }

    #[test]
    fn a_slow_owner_loses_the_operation_and_can_write_no_more() {
        let mut rows = MemoryRows::default();
        let slow = begin(&mut rows, draft(7), AT).unwrap();
        let later = UnixSeconds(AT.0 + LEASE_SECONDS);
        assert_eq!(take_over(&mut rows, 1, Holder::default(), later), Err(OperationError::Busy));
        heartbeat(&mut rows, 1, slow.holding, later).unwrap();
        let later = UnixSeconds(later.0 + LEASE_SECONDS + 1);
        assert!(list(&rows, 0, 1).unwrap()[0].is_lapsed(later));
        let taken = take_over(&mut rows, 1, Holder { pid: 9, ..Holder::default() }, later).unwrap();
        assert_eq!((taken.holding, taken.draft.holder.pid), (2, 9));
        let written = step(&mut rows, 1, slow.holding, "switch".into(), vec![], later);
        assert_eq!(written, Err(OperationError::Lost));
        step(&mut rows, 1, taken.holding, "undo".into(), vec![], later).unwrap();
    }

    #[test]
    fn bounds_hold() {
        let mut rows = MemoryRows::default();
        let long = Draft { detail: vec![0; DETAIL_MAX + 1], ..draft(1) };
        assert_eq!(begin(&mut rows, long, AT), Err(OperationError::TooLong));
        for volume in 0..OPERATIONS_MAX {
            begin(&mut rows, draft(volume as u32 + 1), AT).unwrap();
        }
        assert_eq!(begin(&mut rows, draft(u32::MAX), AT), Err(OperationError::Full));
    }
}
