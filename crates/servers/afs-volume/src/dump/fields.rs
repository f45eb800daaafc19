//! Conversion of headers and vnode records to the fields of a dump.

use afs_wire::dump::{DumpHeader, VnodeFields, VolumeFields};
use afs_wire::ids::{UnixSeconds, VnodeId, VolumeKind};

use crate::header::VolumeHeader;
use crate::record::VnodeRecord;

pub(super) fn of_dump(header: &VolumeHeader, since: UnixSeconds) -> DumpHeader {
    let name = header.name.as_str().as_bytes().to_vec();
    DumpHeader { volume: header.id, name, spans: vec![(since, until(header))] }
}

/// The time up to which a dump of this volume contains changes (`docs/protocol/dump.md` "2. Tags").
fn until(header: &VolumeHeader) -> UnixSeconds {
    match header.kind {
        // A clone may be ahead of the clock, and later changes are not before it.
        VolumeKind::ReadWrite => header.update_date.max(header.clone_date),
        VolumeKind::Backup if header.backup_date.0 != 0 => header.backup_date,
        VolumeKind::ReadOnly | VolumeKind::Backup => header.creation_date,
    }
}

pub(super) fn of_volume(header: &VolumeHeader) -> VolumeFields {
    VolumeFields {
        volume: header.id,
        name: header.name.as_str().as_bytes().to_vec(),
        in_service: header.online,
        blessed: true,
        next_unique: header.next_unique,
        kind: header.kind as u8,
        parent: header.parent,
        clone: header.read_only,
        max_quota: header.max_quota,
        min_quota: header.min_quota,
        disk_used: signed_max(header.blocks_used),
        file_count: signed_max(header.file_count),
        account: 0,
        owner: header.owner,
        creation_date: header.creation_date,
        access_date: header.access_date,
        update_date: header.update_date,
        expiration_date: header.expiration_date,
        backup_date: header.backup_date,
        offline_message: header.offline_message.as_bytes().to_vec(),
        week_use: header.week_use,
        day_use_date: header.day_use_date,
        day_use: header.day_use,
    }
}

/// OpenAFS keeps these counters in signed numbers.
fn signed_max(count: u64) -> u32 {
    count.min(i32::MAX as u64) as u32
}

pub(super) fn of_vnode(record: &VnodeRecord) -> VnodeFields {
    VnodeFields {
        kind: record.kind,
        link_count: u16::try_from(record.link_count).unwrap_or(u16::MAX),
        data_version: record.data_version.0 as u32,
        client_mod_time: record.client_mod_time,
        author: record.author,
        owner: record.owner,
        group: record.group,
        mode: record.mode,
        parent: if record.vnode == VnodeId::ROOT { VnodeId(0) } else { record.parent },
        server_mod_time: record.server_mod_time,
        change_time: Some(record.change_time),
        acl: record.acl.as_deref().cloned(),
    }
}
