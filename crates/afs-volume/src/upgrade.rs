//! Format version of a store, and the upgrade from older ones.

use std::ops::Bound;

use afs_kv::{Kv, Row, Txn};

use crate::error::VolumeError;
use crate::group::{Group, NEXT_GROUP_KEY, epochs};
use crate::header::{VolumeHeader, was_doomed};
use crate::ids::Epoch;
use crate::key::{self, HEADERS, META, WORK};
use crate::location::Location;
use crate::store::{OpenError, decode_header};

/// Checks the format. A store of the first format, whose groups had the ids of their volumes and no clones,
/// is upgraded to the present format; a new store gets it.
///
/// In the second format references to chunks do not name a drive. Its rows are read as they are and rewritten
/// when they change, so the upgrade is one row, however large the store; versions that do not know the new
/// rows refuse the store from then on.
pub(crate) async fn check_format(kv: &Kv) -> Result<(), OpenError> {
    let stored = kv.snapshot().get(META, FORMAT_KEY)?;
    let Some(stored) = stored else {
        return Ok(kv.update(|txn| put_format(txn, 1)).await.map_err(VolumeError::from)?);
    };
    match stored.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) {
        Some(FORMAT | WITH_COPIES | WITH_PLACEMENT) => Ok(()),
        Some(2) => Ok(kv.update(put_number).await.map_err(VolumeError::from)?),
        Some(1) => upgrade(kv).await,
        found => Err(OpenError::Format { found: found.unwrap_or(0), newest: WITH_PLACEMENT }),
    }
}

fn put_number(txn: &mut Txn<'_>) -> Result<(), VolumeError> {
    txn.put(META, FORMAT_KEY, FORMAT.to_be_bytes().to_vec());
    Ok(())
}

/// Gives the store at least the format that has copies of chunks.
pub(crate) fn note_copies(txn: &mut Txn<'_>) -> Result<(), VolumeError> {
    raise(txn, WITH_COPIES)
}

/// Gives the store at least the format that has volumes with placements.
pub(crate) fn note_placement(txn: &mut Txn<'_>) -> Result<(), VolumeError> {
    raise(txn, WITH_PLACEMENT)
}

fn raise(txn: &mut Txn<'_>, format: u32) -> Result<(), VolumeError> {
    let stored = txn.get(META, FORMAT_KEY)?;
    let stored = stored.and_then(|stored| stored.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)));
    if stored.is_none_or(|stored| stored < format) {
        txn.put(META, FORMAT_KEY, format.to_be_bytes().to_vec());
    }
    Ok(())
}

fn put_format(txn: &mut Txn<'_>, next_group: u32) -> Result<(), VolumeError> {
    put_number(txn)?;
    txn.put(META, NEXT_GROUP_KEY, next_group.to_be_bytes().to_vec());
    Ok(())
}

/// A crash during the upgrade leaves the first format, and all of it is done again.
async fn upgrade(kv: &Kv) -> Result<(), OpenError> {
    let (mut after, mut next_group) = (Vec::new(), 1);
    loop {
        let from = after.clone();
        let snapshot = kv.snapshot();
        let some = snapshot.range(HEADERS, (Bound::Excluded(&from[..]), Bound::Unbounded), false);
        let rows = some.take(VOLUMES_PER_STEP).collect::<Result<Vec<_>, _>>()?;
        drop(snapshot);
        let Some((last, _)) = rows.last() else { break };
        after = last.to_vec();
        let highest = kv.update(move |txn| upgrade_headers(txn, rows)).await.map_err(VolumeError::from)?;
        next_group = next_group.max(highest.saturating_add(1));
    }
    Ok(kv.update(move |txn| put_format(txn, next_group)).await.map_err(VolumeError::from)?)
}

/// Returns the highest id of their groups.
fn upgrade_headers(txn: &mut Txn<'_>, rows: Vec<Row>) -> Result<u32, VolumeError> {
    let mut highest = 0;
    for (key, row) in rows {
        let doomed = was_doomed(&row);
        let header = decode_header(row)?;
        highest = highest.max(header.group.0);
        upgrade_header(txn, &key, &header, doomed);
    }
    Ok(highest)
}

fn upgrade_header(txn: &mut Txn<'_>, key: &[u8], header: &VolumeHeader, doomed: bool) {
    let writer = Some(header.id).filter(|_| !doomed);
    Group { next_epoch: Epoch(header.epoch.0 + 1), writer }.save(txn, header.group);
    epochs::put(txn, Location::of(header), epochs::Held::By(u32::from(!doomed)));
    if doomed {
        txn.put(WORK, &key::group(header.group), Vec::new());
        txn.delete(HEADERS, key);
    } else {
        txn.put(HEADERS, key, header.encode());
    }
}

const FORMAT_KEY: &[u8] = b"format";
const FORMAT: u32 = 3;
/// A store in which a chunk has had copies. Programs that do not know the table would not free them.
const WITH_COPIES: u32 = 4;
/// A store in which a volume has had a placement. Programs that do not know it would acknowledge stores that are on one drive alone.
const WITH_PLACEMENT: u32 = 5;
const VOLUMES_PER_STEP: usize = 1000;
