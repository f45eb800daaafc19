//! Row of table `volume.doomed`: a content to be deleted.

use bytes::Bytes;

use crate::codec::{Fields, Put};
use crate::error::VolumeError;
use crate::ids::{Epoch, SlotIndex};
use crate::rows::index_damaged;

/// The epoch in which the content lost its vnode, and the first slot or page not deleted yet.
pub(crate) fn encode(epoch: Epoch, next: SlotIndex) -> Vec<u8> {
    let mut row = Vec::with_capacity(8);
    row.put_u32(epoch.0);
    row.put_u32(next.0);
    row
}

pub(crate) fn decode(row: &Bytes) -> Result<(Epoch, SlotIndex), VolumeError> {
    // Rows of the first format give the newest clone, of which there was none.
    if row.len() == 4 {
        return Ok((Epoch::FIRST, SlotIndex(0)));
    }
    let mut fields = Fields::new(row.clone());
    match (fields.u32(), fields.u32()) {
        (Ok(epoch), Ok(next)) => Ok((Epoch(epoch), SlotIndex(next))),
        _ => Err(index_damaged("a row of the table of doomed contents cannot be decoded")),
    }
}
