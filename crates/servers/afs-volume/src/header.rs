//! Volume header: identity, dates, quota and counters.

use afs_wire::ids::{Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId, VolumeKind, VolumeName};
use afs_wire::vol::{CLOSED_MAX, ClosedPast, DataRoute, DriveCount, Lending, Modes, Placement};
use bytes::Bytes;

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::error::VolumeError;
use crate::ids::{ContentId, Epoch, GroupId};
use crate::rows::damaged;
use crate::spec::VolumeSpec;

/// A volume's header: identity, dates, quota and counters (`docs/protocol/volumes.md` "1. Ids, types, names").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeHeader {
    /// The volume's id.
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
    /// Creation time of this instance of the volume; a change tells clients that anything may differ.
    pub creation_date: UnixSeconds,
    /// Creation time of its last clone, 0 if there was none. The next one is later, and no change after it is earlier, whatever
    /// the clock says.
    pub clone_date: UnixSeconds,
    /// Time of the copy to this server.
    pub copy_date: UnixSeconds,
    /// Time of the last backup, 0 for never.
    pub backup_date: UnixSeconds,
    /// Time of the last change by a client.
    pub update_date: UnixSeconds,
    /// Expiration time; stored and returned, never consulted. 0 for never.
    pub expiration_date: UnixSeconds,
    /// Time of the last use by a client, as written back by the file server.
    pub access_date: UnixSeconds,
    /// Uses since [`VolumeHeader::day_use_date`].
    pub day_use: u32,
    /// Start of the day of [`VolumeHeader::day_use`].
    pub day_use_date: UnixSeconds,
    /// Uses on each of the seven days before, the latest first.
    pub week_use: [u32; 7],
    /// The owner of its root directory.
    pub owner: ViceId,
    /// Quota in KiB; 0 is no limit.
    pub max_quota: u32,
    /// Stored and returned, never consulted.
    pub min_quota: u32,
    /// Most vnodes; 0 is no limit.
    pub max_files: u32,
    /// Whether it is in service; set by the administrator.
    pub online: bool,
    /// Shown to users while it is offline.
    pub offline_message: String,
    /// Usage in KiB: 1 for each empty vnode.
    pub blocks_used: u64,
    /// Number of vnodes of all kinds.
    pub file_count: u64,
    /// Temporary: its creator has not published it, and it is to be deleted when the creator is gone.
    pub destroy: bool,
    /// Whether it is a named snapshot, beside the one backup volume that a group may have.
    pub snapshot: bool,
    /// By which ways the bytes of its files may travel.
    pub route: DataRoute,
    /// Whether its directories may be leased to clients.
    pub lending: Lending,
    /// Whether modes close its directories.
    pub modes: Modes,
    /// On which drives its new data go.
    pub placement: Placement,
    /// The directories whose past is closed: at most [`CLOSED_MAX`]. Of a read-write volume; a clone has what its source had.
    pub closed_pasts: Vec<ClosedPast>,
    /// Counts changes by clients.
    pub update_counter: u32,
    /// The volume from which this one was made, 0 if none.
    pub restored_from: VolumeId,
    pub(crate) group: GroupId,
    pub(crate) epoch: Epoch,
    /// The newest epoch that a clone references.
    pub(crate) newest_clone: Option<Epoch>,
    /// Whether numbers in the list of freed ones may be in use, because a restore assigned them.
    pub(crate) loose_numbers: bool,
    pub(crate) next_unique: u32,
    pub(crate) next_content: u64,
    pub(crate) files: VnodeNumbers,
    pub(crate) directories: VnodeNumbers,
}

/// Allocator of the vnode numbers of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VnodeNumbers {
    /// The first number never used.
    pub(crate) next: u32,
    /// Head of the list of freed numbers, 0 if empty.
    pub(crate) freed: u32,
}

impl VolumeHeader {
    /// Whether clients may change it.
    pub fn is_writable(&self) -> bool {
        self.kind == VolumeKind::ReadWrite
    }

    /// The uniquifier of the next new vnode.
    pub fn next_unique(&self) -> u32 {
        self.next_unique
    }

    /// The id of the read-only or backup volume of its group, according to the header.
    pub fn clone_id(&self, kind: VolumeKind) -> VolumeId {
        match kind {
            VolumeKind::ReadWrite => self.parent,
            VolumeKind::ReadOnly => self.read_only,
            VolumeKind::Backup => self.backup,
        }
    }

    /// A header of a new, empty volume, alone in its group.
    pub(crate) fn new(spec: &VolumeSpec, group: GroupId, now: UnixSeconds) -> Self {
        let id = spec.id;
        Self {
            id,
            kind: spec.kind,
            name: spec.name.clone(),
            parent: if spec.parent.0 == 0 { id } else { spec.parent },
            read_only: VolumeId(0),
            backup: VolumeId(0),
            creation_date: now,
            clone_date: UnixSeconds(0),
            copy_date: now,
            backup_date: UnixSeconds(0),
            update_date: now,
            expiration_date: UnixSeconds(0),
            access_date: UnixSeconds(0),
            day_use: 0,
            day_use_date: UnixSeconds(0),
            week_use: [0; 7],
            owner: spec.owner,
            max_quota: spec.max_quota,
            min_quota: 0,
            max_files: 0,
            online: true,
            offline_message: String::new(),
            blocks_used: 0,
            file_count: 0,
            destroy: false,
            snapshot: false,
            route: DataRoute::default(),
            lending: Lending::default(),
            modes: Modes::default(),
            placement: Placement::default(),
            closed_pasts: Vec::new(),
            update_counter: 0,
            restored_from: VolumeId(0),
            group,
            epoch: Epoch::FIRST,
            newest_clone: None,
            loose_numbers: false,
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

    /// Allocates a uniquifier; after 2^32 of them they continue from 2 (`docs/protocol/fileserver.md` "6.
    /// Vnodes, modes, versions").
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
        out.put_u8(if self.closed_pasts.is_empty() { VERSION } else { WITH_CLOSED_PASTS });
        out.put_u32(self.id.0);
        out.put_u8(self.kind as u8);
        out.put_u8(self.flags());
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
        for date in [self.expiration_date, self.access_date, self.day_use_date] {
            out.put_u32(date.0);
        }
        out.put_u32(self.day_use);
        for uses in self.week_use {
            out.put_u32(uses);
        }
        out.put_u32(self.max_files);
        out.put_u32(self.update_counter);
        out.put_u32(self.restored_from.0);
        out.put_u8(self.placement.copies.map_or(0, DriveCount::get));
        out.put_u8(self.placement.width.get());
        out.put_u32(self.clone_date.0);
        for closed in self.closed_pasts.iter().take(CLOSED_MAX) {
            out.put_u32(closed.vnode.0);
            out.put_u32(closed.unique.0);
            out.put_u32(closed.until.0);
        }
        out
    }

    fn flags(&self) -> u8 {
        let closes = self.modes == Modes::Close;
        let flags = [self.online, closes, self.destroy, self.snapshot, self.loose_numbers];
        let settings = self.route.number() << ROUTE_SHIFT | self.lending.number() << LENDING_SHIFT;
        flags.iter().enumerate().fold(settings, |byte, (bit, set)| byte | u8::from(*set) << bit)
    }

    pub(crate) fn decode(record: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(record);
        let version = fields.u8()?;
        let mut header = Self::decode_first(&mut fields)?;
        match version {
            // Of a store without clones. The bit of the modes was another one.
            1 => header.modes = Modes::default(),
            WITHOUT_PLACEMENT..=WITH_CLOSED_PASTS => {
                header.decode_rest(&mut fields)?;
                if version != WITHOUT_PLACEMENT {
                    header.placement = decode_placement(&mut fields)?;
                }
                if version >= VERSION {
                    header.clone_date = UnixSeconds(fields.u32()?);
                }
                if version == WITH_CLOSED_PASTS {
                    header.closed_pasts = decode_closed_pasts(&mut fields)?;
                }
            }
            _ => return Err(BadRecord),
        }
        fields.finish()?;
        Ok(header)
    }

    /// Decodes the fields common to all versions.
    fn decode_first(fields: &mut Fields) -> Decoded<Self> {
        let id = VolumeId(fields.u32()?);
        let kind = *VolumeKind::ALL.get(usize::from(fields.u8()?)).ok_or(BadRecord)?;
        let flags = fields.u8()?;
        let name = VolumeName::from_bytes(&fields.counted()?).map_err(|_| BadRecord)?;
        Ok(Self {
            id,
            kind,
            name,
            online: flags & 1 != 0,
            destroy: flags & 4 != 0,
            snapshot: flags & 8 != 0,
            loose_numbers: flags & 16 != 0,
            // That of a later program is the default.
            route: DataRoute::of_number((flags >> ROUTE_SHIFT & 3).into()).unwrap_or_default(),
            lending: Lending::of_number((flags >> LENDING_SHIFT).into()).unwrap_or_default(),
            modes: Modes::of_number((flags >> 1 & 1).into()).unwrap_or_default(),
            parent: VolumeId(fields.u32()?),
            read_only: VolumeId(fields.u32()?),
            backup: VolumeId(fields.u32()?),
            creation_date: UnixSeconds(fields.u32()?),
            clone_date: UnixSeconds(0),
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
            expiration_date: UnixSeconds(0),
            access_date: UnixSeconds(0),
            day_use: 0,
            day_use_date: UnixSeconds(0),
            week_use: [0; 7],
            max_files: 0,
            placement: Placement::default(),
            closed_pasts: Vec::new(),
            update_counter: 0,
            restored_from: VolumeId(0),
        })
    }

    fn decode_rest(&mut self, fields: &mut Fields) -> Decoded<()> {
        for date in [&mut self.expiration_date, &mut self.access_date, &mut self.day_use_date] {
            *date = UnixSeconds(fields.u32()?);
        }
        self.day_use = fields.u32()?;
        for uses in &mut self.week_use {
            *uses = fields.u32()?;
        }
        self.max_files = fields.u32()?;
        self.update_counter = fields.u32()?;
        self.restored_from = VolumeId(fields.u32()?);
        Ok(())
    }
}

fn decode_placement(fields: &mut Fields) -> Decoded<Placement> {
    let count = |count: u8| DriveCount::new(count.into()).ok_or(BadRecord);
    let copies = match fields.u8()? {
        0 => None,
        copies => Some(count(copies)?),
    };
    Ok(Placement { copies, width: count(fields.u8()?)? })
}

/// All that is left: one at least.
fn decode_closed_pasts(fields: &mut Fields) -> Decoded<Vec<ClosedPast>> {
    let mut all = Vec::new();
    while all.is_empty() || !fields.is_empty() {
        let vnode = VnodeId(fields.u32()?);
        all.push(ClosedPast { vnode, unique: Uniquifier(fields.u32()?), until: UnixSeconds(fields.u32()?) });
        if all.len() > CLOSED_MAX {
            return Err(BadRecord);
        }
    }
    Ok(all)
}

/// Whether a header of the first format belongs to a volume that was being deleted.
pub(crate) fn was_doomed(record: &[u8]) -> bool {
    record.first() == Some(&1) && record.get(6).is_some_and(|flags| flags & 2 != 0)
}

const VERSION: u8 = 4;
/// As [`VERSION`], with the directories whose past is closed behind it. Programs that do not know these do not serve the volume.
const WITH_CLOSED_PASTS: u8 = 5;
/// Without a placement and without the time of the last clone; version 3 lacks the latter alone.
const WITHOUT_PLACEMENT: u8 = 2;
/// Where the route is among the flags.
const ROUTE_SHIFT: u32 = 5;
/// Where the setting of leases is among the flags.
const LENDING_SHIFT: u32 = 7;

/// A header as its row has it.
pub(crate) fn decode_header(stored: Bytes) -> Result<VolumeHeader, VolumeError> {
    VolumeHeader::decode(stored)
        .map_err(|_| damaged(afs_wire::ids::VnodeId(0), "a volume header cannot be decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(id: u32) -> VolumeHeader {
        let spec = VolumeSpec {
            id: VolumeId(id),
            name: VolumeName::new("root.cell").unwrap(),
            kind: VolumeKind::ReadWrite,
            parent: VolumeId(0),
            owner: ViceId(-204),
            max_quota: 5000,
            root: None,
        };
        VolumeHeader::new(&spec, GroupId(9), UnixSeconds(77))
    }

    #[test]
    fn a_header_reads_back_and_no_cut_of_it_does() {
        let mut header = header(536_870_915);
        header.newest_clone = Some(Epoch(3));
        header.clone_date = UnixSeconds(99);
        header.offline_message = "back at noon".into();
        (header.destroy, header.snapshot, header.week_use[6]) = (true, true, 12);
        header.modes = Modes::Close;
        header.route = DataRoute::Drives;
        let two = DriveCount::new(2).unwrap();
        for placement in
            [(None, DriveCount::ONE), (None, two), (Some(two), DriveCount::ONE), (Some(DriveCount::ONE), two)]
        {
            header.placement = Placement { copies: placement.0, width: placement.1 };
            let stored = Bytes::from(header.encode());
            assert_eq!(VolumeHeader::decode(stored.clone()), Ok(header.clone()));
            for len in 0..stored.len() {
                assert_eq!(VolumeHeader::decode(stored.slice(..len)), Err(BadRecord));
            }
        }
        let stored = header.encode();
        for bad in [[0, 0], [4, 1], [1, 4]] {
            let mut wrong = stored.clone();
            let at = wrong.len() - 6;
            wrong[at..at + 2].copy_from_slice(&bad);
            assert_eq!(VolumeHeader::decode(wrong.into()), Err(BadRecord));
        }
    }

    #[test]
    fn the_directories_whose_past_is_closed_read_back_and_too_many_do_not() {
        let closed =
            |n| ClosedPast { vnode: VnodeId(n), unique: Uniquifier(n + 1), until: UnixSeconds(n + 2) };
        let mut header = header(5);
        for count in [1, 2, CLOSED_MAX as u32] {
            header.closed_pasts = (0..count).map(closed).collect();
            let stored = Bytes::from(header.encode());
            assert_eq!(VolumeHeader::decode(stored.clone()), Ok(header.clone()));
            let cut = |bytes| VolumeHeader::decode(stored.slice(..stored.len() - bytes));
            assert!((1..12).all(|bytes| cut(bytes) == Err(BadRecord)), "{count}");
        }
        let more = [header.encode(), vec![0; 12]].concat();
        assert_eq!(VolumeHeader::decode(more.into()), Err(BadRecord));
    }

    #[test]
    fn headers_of_older_versions_are_read() {
        let header = header(5);
        for (version, lacks) in [(2, 6), (3, 4)] {
            let mut stored = header.encode();
            stored[0] = version;
            stored.truncate(stored.len() - lacks);
            assert_eq!(VolumeHeader::decode(stored.into()), Ok(header.clone()));
        }
    }

    #[test]
    fn a_header_of_the_first_format_is_read() {
        let header = header(5);
        let mut stored = header.encode();
        stored[0] = 1;
        stored.truncate(stored.len() - 62);
        assert!(!was_doomed(&stored));
        assert_eq!(VolumeHeader::decode(stored.clone().into()), Ok(header));
        stored[6] |= 2;
        assert!(was_doomed(&stored));
    }

    #[test]
    fn uniquifiers_go_on_from_two_after_the_last() {
        let mut header = header(1);
        header.next_unique = u32::MAX;
        assert_eq!([header.take_unique(), header.take_unique(), header.take_unique()], [u32::MAX, 2, 3]);
    }
}
