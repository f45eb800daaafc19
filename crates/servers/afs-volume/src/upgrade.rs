//! Format version of a store, and the upgrade from older ones.

use std::ops::Bound;

use afs_kv::{Kv, Row, Txn};

use crate::error::VolumeError;
use crate::group::{Group, NEXT_GROUP_KEY, epochs};
use crate::header::{VolumeHeader, decode_header, was_doomed};
use crate::ids::Epoch;
use crate::key::{self, HEADERS, META, WORK};
use crate::location::Location;
use crate::open_error::OpenError;

/// Checks the format. A store of the first format, whose groups had the ids of their volumes and no clones,
/// is upgraded to the present format; a new store gets it.
///
/// In the second format references to chunks do not name a drive, and up to the fifth headers and vnode records lack
/// fields. Their rows are read as they are and rewritten when they change, so the upgrade is one row, however large the
/// store; versions that do not know the new rows refuse the store from then on.
pub(crate) async fn check_format(kv: &Kv) -> Result<(), OpenError> {
    let stored = kv.snapshot().get(META, FORMAT_KEY)?;
    let Some(stored) = stored else {
        return Ok(kv.update(|txn| put_format(txn, 1)).await.map_err(VolumeError::from)?);
    };
    match stored.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) {
        Some(FORMAT) => Ok(()),
        Some(2..FORMAT) => Ok(kv.update(put_number).await.map_err(VolumeError::from)?),
        Some(1) => upgrade(kv).await,
        found => Err(OpenError::Format { found: found.unwrap_or(0), newest: FORMAT }),
    }
}

fn put_number(txn: &mut Txn<'_>) -> Result<(), VolumeError> {
    txn.put(META, FORMAT_KEY, FORMAT.to_be_bytes().to_vec());
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
const FORMAT: u32 = 6;
const VOLUMES_PER_STEP: usize = 1000;
