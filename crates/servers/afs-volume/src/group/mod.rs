//! Groups of volumes that share data, by epochs.
//!
//! The states of a group are its epochs. Each volume references one; the read-write volume writes in the
//! newest, and a clone references an older one, which is never written again. Whatever a referenced epoch
//! needs and no newer one has is on the deadlist of that epoch. An epoch without references is deleted in the
//! background: [`reclaim`].

mod change;
mod clone;
mod convert;
mod cuts;
mod delete;
mod doomed;
mod drain;
pub(crate) mod epochs;
mod members;
pub(crate) mod reclaim;
pub(crate) mod rows;
mod truncate;
mod wipe;

pub(crate) use members::Members;

use afs_kv::Txn;
use afs_wire::ids::VolumeId;
use bytes::Bytes;

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::error::VolumeError;
use crate::ids::{Epoch, GroupId};
use crate::key::{self, GROUPS, META};
use crate::location::Location;
use crate::rows::index_damaged;

/// The row of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The first unused epoch.
    pub(crate) next_epoch: Epoch,
    /// Its read-write volume.
    pub(crate) writer: Option<VolumeId>,
}

impl Group {
    pub(crate) fn load(txn: &Txn<'_>, id: GroupId) -> Result<Self, VolumeError> {
        let row = txn.get(GROUPS, &key::group(id))?;
        let decode = |row: Bytes| Self::decode(row).ok();
        row.and_then(decode)
            .ok_or_else(|| index_damaged("a group of volumes is missing or cannot be decoded"))
    }

    pub(crate) fn save(&self, txn: &mut Txn<'_>, id: GroupId) {
        let mut row = Vec::with_capacity(8);
        row.put_u32(self.next_epoch.0);
        row.put_u32(self.writer.map_or(0, |volume| volume.0));
        txn.put(GROUPS, &key::group(id), row);
    }

    pub(crate) fn decode(row: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(row);
        let next_epoch = Epoch(fields.u32()?);
        let writer = Some(VolumeId(fields.u32()?)).filter(|volume| volume.0 != 0);
        fields.finish()?;
        if next_epoch.0 == 0 { Err(BadRecord) } else { Ok(Self { next_epoch, writer }) }
    }

    /// Allocates the next epoch.
    pub(crate) fn take_epoch(&mut self) -> Result<Epoch, VolumeError> {
        let epoch = self.next_epoch;
        // Exhausted after 2^32 clones: at one a second, after 136 years.
        self.next_epoch = Epoch(epoch.0.checked_add(1).ok_or(VolumeError::TooLarge)?);
        Ok(epoch)
    }
}

/// Creates an empty group.
pub(crate) fn make(txn: &mut Txn<'_>, writer: Option<VolumeId>) -> Result<Location, VolumeError> {
    let next = txn.get(META, NEXT_GROUP_KEY)?;
    let next = next.and_then(|row| Some(u32::from_be_bytes(*row.first_chunk()?)));
    let next = next.ok_or_else(|| index_damaged("the number of the next group is missing"))?;
    let after = next.checked_add(1).ok_or(VolumeError::TooLarge)?;
    txn.put(META, NEXT_GROUP_KEY, after.to_be_bytes().to_vec());
    let group = GroupId(next);
    Group { next_epoch: Epoch(Epoch::FIRST.0 + 1), writer }.save(txn, group);
    Ok(Location { group, epoch: Epoch::FIRST })
}

pub(crate) const NEXT_GROUP_KEY: &[u8] = b"next-group";
