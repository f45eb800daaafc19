//! Conversion of volume headers to the structures of the volume service.

use afs_volume::VolumeHeader;
use afs_wire::ids::{PartitionId, VolumeId, VolumeKind};
use afs_wire::vol::{DESTROY_ME, HeaderStatus, InfoStatus, NameChars, VolumeInfo, VolumeXInfo};

use super::VolumeServer;
use crate::volume_states::{Site, UseNow, is_published};

/// Seconds of a day; the count of a day that began longer ago is not today's.
const DAY: u32 = 86_400;

/// A size or count as the signed 32-bit number of the protocol.
pub(super) fn clamp(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

impl VolumeServer {
    /// A volume as listed. Of one that a transaction holds only the id is shown.
    pub(super) fn info(&self, partition: PartitionId, header: &VolumeHeader) -> VolumeInfo {
        let site = Site { volume: header.id, partition };
        if self.transactions.holds(site) {
            return VolumeInfo { id: header.id, status: InfoStatus::BUSY, ..VolumeInfo::default() };
        }
        let used = self.used(header);
        VolumeInfo {
            name: NameChars::truncated(header.name.as_str().as_bytes()),
            id: header.id,
            kind: header.kind.into(),
            backup_id: header.backup,
            parent_id: header.parent,
            clone_id: read_only(header),
            status: InfoStatus::OK,
            copy_date: header.copy_date,
            in_use: header.online && is_published(header) && self.states.check(site, false).is_ok(),
            destroy_me: if is_published(header) { 0 } else { DESTROY_ME },
            creation_date: header.creation_date,
            access_date: used.access_date,
            update_date: header.update_date,
            backup_date: header.backup_date,
            day_use: clamp(used.day.into()),
            file_count: clamp(header.file_count),
            quota_max: clamp(header.max_quota.into()),
            size: clamp(header.blocks_used),
            quota_min: clamp(header.min_quota.into()),
            week_use: clamp(used.week_sum().into()),
            update_counter: header.update_counter as i32,
            ..VolumeInfo::default()
        }
    }

    pub(super) fn xinfo(&self, partition: PartitionId, header: &VolumeHeader) -> VolumeXInfo {
        let info = self.info(partition, header);
        VolumeXInfo {
            name: info.name,
            id: info.id,
            kind: info.kind,
            backup_id: info.backup_id,
            parent_id: info.parent_id,
            clone_id: info.clone_id,
            status: info.status,
            copy_date: info.copy_date,
            in_use: info.in_use,
            creation_date: info.creation_date,
            access_date: info.access_date,
            update_date: info.update_date,
            backup_date: info.backup_date,
            day_use: info.day_use,
            file_count: info.file_count,
            quota_max: info.quota_max,
            size: info.size,
            reads: [0; 4],
            writes: [0; 4],
            file_same_author: [0; 6],
            file_other_author: [0; 6],
            dir_same_author: [0; 6],
            dir_other_author: [0; 6],
        }
    }

    /// The use counts; the last access of a volume never accessed is its creation.
    fn used(&self, header: &VolumeHeader) -> UseNow {
        let mut used = self.states.uses().of(header, self.now());
        used.access_date = used.access_date.max(header.update_date);
        if self.now().0.saturating_sub(used.day_began.0) > DAY {
            used.day = 0;
        }
        used
    }

    pub(super) fn status(&self, header: &VolumeHeader) -> HeaderStatus {
        HeaderStatus {
            id: header.id,
            next_unique: header.next_unique(),
            kind: header.kind.into(),
            parent_id: header.parent,
            clone_id: read_only(header),
            backup_id: header.backup,
            restored_from: header.restored_from,
            quota_max: clamp(header.max_quota.into()),
            quota_min: clamp(header.min_quota.into()),
            owner: header.owner,
            creation_date: header.creation_date,
            access_date: self.used(header).access_date,
            update_date: header.update_date,
            expiration_date: header.expiration_date,
            backup_date: header.backup_date,
            copy_date: header.copy_date,
        }
    }
}

/// The id of a volume's read-only copy. A read-only volume gives itself, as OpenAFS's does.
fn read_only(header: &VolumeHeader) -> VolumeId {
    if header.kind == VolumeKind::ReadOnly { header.id } else { header.read_only }
}

/// A volume of which only the id is shown.
pub(super) fn number_only(id: VolumeId) -> VolumeInfo {
    VolumeInfo { id, status: InfoStatus::OK, ..VolumeInfo::default() }
}
