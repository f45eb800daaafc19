//! What a volume knows of itself.

use afs_wire::ids::{UnixSeconds, ViceId, VnodeId, VolumeId, VolumeKind, VolumeName};
use bytes::Bytes;

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::ids::{ContentId, Epoch, GroupId};

/// A volume's header: identity, dates, quota and counters (`docs/protocol/volumes.md` "1. Ids, types, names").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeHeader {
    /// The volume's number.
    pub id: VolumeId,
    /// Read-write, read-only or backup.
    pub kind: VolumeKind,
    /// Its name, with the suffix of its kind.
    pub name: VolumeName,
    /// The read-write volume of its group.
    pub parent: VolumeId,
    /// The group's read-only volume, 0 where there is none.
    pub read_only: VolumeId,
    /// The group's backup volume, 0 where there is none.
    pub backup: VolumeId,
    /// When this instance of the volume was made; clients take a change as "everything may be different".
    pub creation_date: UnixSeconds,
    /// When it was copied here.
    pub copy_date: UnixSeconds,
    /// When a backup was last made of it, 0 for never.
    pub backup_date: UnixSeconds,
    /// Last change by a client.
    pub update_date: UnixSeconds,
    /// Whom its root directory belongs to.
    pub owner: ViceId,
    /// The most it may use, in KiB; 0 is no limit.
    pub max_quota: u32,
    /// Stored and returned, never consulted.
    pub min_quota: u32,
    /// In service: an operator's switch.
    pub online: bool,
    /// Shown to users while it is offline.
    pub offline_message: String,
    /// What it uses, in KiB: 1 for each empty vnode.
    pub blocks_used: u64,
    /// Vnodes of all kinds.
    pub file_count: u64,
    pub(crate) group: GroupId,
    pub(crate) epoch: Epoch,
    /// The newest epoch that a clone holds.
    pub(crate) newest_clone: Option<Epoch>,
    /// Being taken down: invisible, its rows going away.
    pub(crate) doomed: bool,
    pub(crate) next_unique: u32,
    pub(crate) next_content: u64,
    pub(crate) files: VnodeNumbers,
    pub(crate) directories: VnodeNumbers,
}

/// Where the next vnode number of a class comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VnodeNumbers {
    /// The number that was never used.
    pub(crate) next: u32,
    /// The first of the chain of freed numbers, 0 where there is none.
    pub(crate) freed: u32,
}

impl VolumeHeader {
    /// Whether clients may change it.
    pub fn is_writable(&self) -> bool {
        self.kind == VolumeKind::ReadWrite
    }

    /// A header of a new, empty read-write volume.
    pub(crate) fn new(
        id: VolumeId,
        name: VolumeName,
        owner: ViceId,
        max_quota: u32,
        now: UnixSeconds,
    ) -> Self {
        Self {
            id,
            kind: VolumeKind::ReadWrite,
            name,
            parent: id,
            read_only: VolumeId(0),
            backup: VolumeId(0),
            creation_date: now,
            copy_date: now,
            backup_date: UnixSeconds(0),
            update_date: now,
            owner,
            max_quota,
            min_quota: 0,
            online: true,
            offline_message: String::new(),
            blocks_used: 0,
            file_count: 0,
            group: GroupId(id.0),
            epoch: Epoch::FIRST,
            newest_clone: None,
            doomed: false,
            next_unique: 2,
            next_content: 1,
            files: VnodeNumbers { next: 2, freed: 0 },
            directories: VnodeNumbers { next: 3, freed: 0 },
        }
    }

    pub(crate) fn take_content(&mut self) -> ContentId {
        let content = ContentId(self.next_content);
        self.next_content += 1;
        content
    }

    /// The next uniquifier; after the last of 2^32 they go on from 2
    /// (`docs/protocol/fileserver.md` "6. Vnodes, modes, versions").
    pub(crate) fn take_unique(&mut self) -> u32 {
        let unique = self.next_unique;
        self.next_unique = unique.checked_add(1).unwrap_or(2);
        unique
    }

    pub(crate) fn numbers(&mut self, vnode: VnodeId) -> &mut VnodeNumbers {
        if vnode.is_directory() { &mut self.directories } else { &mut self.files }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(192);
        out.put_u8(VERSION);
        out.put_u32(self.id.0);
        out.put_u8(self.kind as u8);
        out.put_u8(u8::from(self.online) | u8::from(self.doomed) << 1);
        out.put_counted(self.name.as_str().as_bytes());
        for id in [self.parent, self.read_only, self.backup] {
            out.put_u32(id.0);
        }
        for date in [self.creation_date, self.copy_date, self.backup_date, self.update_date] {
            out.put_u32(date.0);
        }
        out.put_u32(self.owner.0 as u32);
        out.put_u32(self.max_quota);
        out.put_u32(self.min_quota);
        out.put_counted(self.offline_message.as_bytes());
        out.put_u64(self.blocks_used);
        out.put_u64(self.file_count);
        out.put_u32(self.group.0);
        out.put_u32(self.epoch.0);
        out.put_u32(self.newest_clone.map_or(0, |epoch| epoch.0));
        out.put_u32(self.next_unique);
        out.put_u64(self.next_content);
        for numbers in [self.files, self.directories] {
            out.put_u32(numbers.next);
            out.put_u32(numbers.freed);
        }
        out
    }

    pub(crate) fn decode(record: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(record);
        if fields.u8()? != VERSION {
            return Err(BadRecord);
        }
        let id = VolumeId(fields.u32()?);
        let kind = *VolumeKind::ALL.get(usize::from(fields.u8()?)).ok_or(BadRecord)?;
        let flags = fields.u8()?;
        let name = VolumeName::from_bytes(&fields.counted()?).map_err(|_| BadRecord)?;
        let header = Self {
            id,
            kind,
            name,
            online: flags & 1 != 0,
            doomed: flags & 2 != 0,
            parent: VolumeId(fields.u32()?),
            read_only: VolumeId(fields.u32()?),
            backup: VolumeId(fields.u32()?),
            creation_date: UnixSeconds(fields.u32()?),
            copy_date: UnixSeconds(fields.u32()?),
            backup_date: UnixSeconds(fields.u32()?),
            update_date: UnixSeconds(fields.u32()?),
            owner: ViceId(fields.u32()? as i32),
            max_quota: fields.u32()?,
            min_quota: fields.u32()?,
            offline_message: String::from_utf8(fields.counted()?.to_vec()).map_err(|_| BadRecord)?,
            blocks_used: fields.u64()?,
            file_count: fields.u64()?,
            group: GroupId(fields.u32()?),
            epoch: Epoch(fields.u32()?),
            newest_clone: Some(Epoch(fields.u32()?)).filter(|epoch| epoch.0 != 0),
            next_unique: fields.u32()?,
            next_content: fields.u64()?,
            files: VnodeNumbers { next: fields.u32()?, freed: fields.u32()? },
            directories: VnodeNumbers { next: fields.u32()?, freed: fields.u32()? },
        };
        fields.finish()?;
        Ok(header)
    }
}

const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_no_cut_of_it_does() {
        let name = VolumeName::new("root.cell").unwrap();
        let mut header = VolumeHeader::new(VolumeId(536_870_915), name, ViceId(-204), 5000, UnixSeconds(77));
        header.newest_clone = Some(Epoch(3));
        header.offline_message = "back at noon".into();
        let stored = Bytes::from(header.encode());
        assert_eq!(VolumeHeader::decode(stored.clone()), Ok(header));
        for len in 0..stored.len() {
            assert_eq!(VolumeHeader::decode(stored.slice(..len)), Err(BadRecord));
        }
    }

    #[test]
    fn uniquifiers_go_on_from_two_after_the_last() {
        let name = VolumeName::new("v").unwrap();
        let mut header = VolumeHeader::new(VolumeId(1), name, ViceId(1), 0, UnixSeconds(0));
        header.next_unique = u32::MAX;
        assert_eq!([header.take_unique(), header.take_unique(), header.take_unique()], [u32::MAX, 2, 3]);
    }
}
