//! Field-wise changes of an entry: `VldbUpdateEntry`.

use super::entry::encode_column;
use super::{EntryFlags, NameChars, SiteFlags};
use crate::ids::{PartitionNumber, VolumeId};
use crate::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

/// Most sites changed at once.
pub const UPDATE_SITES_MAX: usize = 8;

/// Bits of [`SiteUpdate::mask`].
pub mod site_update {
    /// Remove the site.
    pub const DELETE: u32 = 0x100;
    /// Add the site.
    pub const ADD: u32 = 0x200;
    /// Give the site another server.
    pub const SERVER: u32 = 0x400;
    /// Give the site another partition.
    pub const PARTITION: u32 = 0x800;
    /// Give the site other flags.
    pub const FLAGS: u32 = 0x1000;
}

/// A change of one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteUpdate {
    /// Which changes; see [`site_update`].
    pub mask: u32,
    /// The current site.
    pub target_server: Ipv4Addr,
    /// The current site.
    pub target_partition: PartitionNumber,
    /// The new site.
    pub new_server: Ipv4Addr,
    /// The new site.
    pub new_partition: PartitionNumber,
    /// The new flags.
    pub new_flags: SiteFlags,
}

/// Changes of an entry. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryUpdate {
    /// New name.
    pub name: Option<NameChars>,
    /// New number of the read-write volume.
    pub read_write_id: Option<VolumeId>,
    /// New flags.
    pub flags: Option<EntryFlags>,
    /// New number of the read-only volume.
    pub read_only_id: Option<VolumeId>,
    /// New number of the backup volume.
    pub backup_id: Option<VolumeId>,
    /// New number of the temporary clone.
    pub clone_id: Option<VolumeId>,
    /// Put the name into the index again; a repair.
    pub rehash_name: bool,
    /// Changes of sites.
    pub sites: BoundedVec<SiteUpdate, UPDATE_SITES_MAX>,
}

const NAME: u32 = 0x1;
const FLAGS: u32 = 0x4;
const READ_ONLY_ID: u32 = 0x8;
const BACKUP_ID: u32 = 0x10;
const SITES: u32 = 0x20;
const CLONE_ID: u32 = 0x80;
const REHASH_NAME: u32 = 0x100;
const READ_WRITE_ID: u32 = 0x200;

impl EntryUpdate {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 4 + 260 + 6 * 4 + 6 * 4 * UPDATE_SITES_MAX;

    fn mask(&self) -> u32 {
        let bits = [
            (self.name.is_some(), NAME),
            (self.flags.is_some(), FLAGS),
            (self.read_only_id.is_some(), READ_ONLY_ID),
            (self.backup_id.is_some(), BACKUP_ID),
            (!self.sites.is_empty(), SITES),
            (self.clone_id.is_some(), CLONE_ID),
            (self.rehash_name, REHASH_NAME),
            (self.read_write_id.is_some(), READ_WRITE_ID),
        ];
        bits.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum()
    }
}

impl Encode for EntryUpdate {
    fn encode(&self, out: &mut Vec<u8>) {
        const N: usize = UPDATE_SITES_MAX;
        self.mask().encode(out);
        self.name.unwrap_or_default().encode(out);
        self.read_write_id.unwrap_or_default().encode(out);
        self.flags.unwrap_or_default().encode(out);
        self.read_only_id.unwrap_or_default().encode(out);
        self.backup_id.unwrap_or_default().encode(out);
        self.clone_id.unwrap_or_default().encode(out);
        (self.sites.len() as u32).encode(out);
        encode_column::<N, _>(self.sites.iter().map(|site| site.mask), out);
        encode_column::<N, _>(self.sites.iter().map(|site| site.target_server.into()), out);
        encode_column::<N, _>(self.sites.iter().map(|site| site.target_partition.0 as u32), out);
        encode_column::<N, _>(self.sites.iter().map(|site| site.new_server.into()), out);
        encode_column::<N, _>(self.sites.iter().map(|site| site.new_partition.0 as u32), out);
        encode_column::<N, _>(self.sites.iter().map(|site| site.new_flags.0), out);
    }
}

impl Decode for EntryUpdate {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mask = r.u32()?;
        let set = |bit: u32| mask & bit != 0;
        let name = NameChars::decode(r)?;
        let [read_write_id, flags, read_only_id, backup_id, clone_id] = <[u32; 5]>::decode(r)?;
        let count = r.count(UPDATE_SITES_MAX)?;
        let columns = <[[u32; UPDATE_SITES_MAX]; 6]>::decode(r)?;
        let row = |index: usize| columns.map(|column| column.get(index).copied().unwrap_or_default());
        let sites = (0..if set(SITES) { count } else { 0 }).map(|index| SiteUpdate::from_row(row(index)));
        Ok(Self {
            name: set(NAME).then_some(name),
            read_write_id: set(READ_WRITE_ID).then_some(VolumeId(read_write_id)),
            flags: set(FLAGS).then_some(EntryFlags(flags)),
            read_only_id: set(READ_ONLY_ID).then_some(VolumeId(read_only_id)),
            backup_id: set(BACKUP_ID).then_some(VolumeId(backup_id)),
            clone_id: set(CLONE_ID).then_some(VolumeId(clone_id)),
            rehash_name: set(REHASH_NAME),
            sites: BoundedVec::first_of(sites),
        })
    }
}

impl SiteUpdate {
    fn from_row(row: [u32; 6]) -> Self {
        let [mask, target_server, target_partition, new_server, new_partition, new_flags] = row;
        Self {
            mask,
            target_server: target_server.into(),
            target_partition: PartitionNumber(target_partition as i32),
            new_server: new_server.into(),
            new_partition: PartitionNumber(new_partition as i32),
            new_flags: SiteFlags(new_flags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_mask_names_counts() {
        let site = SiteUpdate {
            mask: site_update::ADD,
            target_server: Ipv4Addr::UNSPECIFIED,
            target_partition: PartitionNumber(0),
            new_server: [10, 0, 0, 2].into(),
            new_partition: PartitionNumber(3),
            new_flags: SiteFlags::RO_VOLUME,
        };
        let update = EntryUpdate {
            backup_id: Some(VolumeId(0)),
            sites: BoundedVec::first_of([site]),
            ..EntryUpdate::default()
        };
        let wire = update.to_bytes();
        assert_eq!(wire.len(), EntryUpdate::WIRE_LEN);
        assert_eq!(wire[..4], [0, 0, 0, 0x30]);
        assert_eq!(EntryUpdate::from_bytes(&wire), Ok(update));
    }
}
