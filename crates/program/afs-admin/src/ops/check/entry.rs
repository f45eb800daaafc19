//! Comparison of an entry with the volumes at its sites.

use afs_wire::ids::{VolumeId, VolumeKind, VolumeName};
use afs_wire::vl::{Entry, EntryFlags, Site, SiteFlags};
use afs_wire::vol::{InfoStatus, VolumeInfo};

use crate::ServerPartition;

/// The kind of the entry's volume with an id.
pub(super) fn kind_of(entry: &Entry, id: VolumeId) -> Option<VolumeKind> {
    VolumeKind::ALL.into_iter().find(|kind| id.0 != 0 && entry.id(*kind) == id)
}

/// The flag for the existence of a volume of a kind.
pub(super) fn exists(kind: VolumeKind) -> EntryFlags {
    match kind {
        VolumeKind::ReadWrite => EntryFlags::RW_EXISTS,
        VolumeKind::ReadOnly => EntryFlags::RO_EXISTS,
        VolumeKind::Backup => EntryFlags::BACK_EXISTS,
    }
}

/// Whether a site should have the volume of a kind. Backup volumes are beside the read-write one.
pub(super) fn is_site_of(site: &Site, kind: VolumeKind) -> bool {
    site.flags.contains(match kind {
        VolumeKind::ReadOnly => SiteFlags::RO_VOLUME,
        VolumeKind::ReadWrite | VolumeKind::Backup => SiteFlags::RW_VOLUME,
    })
}

/// The volumes that must be at a site. A read-only site that waits for a release need not have one.
pub(super) fn expected(entry: &Entry, site: &Site) -> impl Iterator<Item = VolumeId> + use<> {
    let (site, ids, flags) = (*site, entry.ids, entry.flags);
    let wanted = move |kind: &VolumeKind| {
        is_site_of(&site, *kind) && flags.contains(exists(*kind)) && !site.flags.contains(SiteFlags::DONT_USE)
    };
    VolumeKind::ALL.into_iter().zip(ids).filter(move |(kind, _)| wanted(kind)).map(|(_, id)| id)
}

/// Whether a volume at a site agrees with its entry.
pub(super) fn fits(entry: &Entry, place: ServerPartition, info: &VolumeInfo) -> bool {
    let Some(kind) = kind_of(entry, info.id) else { return false };
    let mut sites = entry.sites.iter().filter(|s| ServerPartition::from(*s) == place && is_site_of(s, kind));
    let Some(site) = sites.next() else { return false };
    let waits = site.flags.contains(SiteFlags::DONT_USE);
    if info.status == InfoStatus::BUSY {
        return true;
    }
    info.status == InfoStatus::OK
        && info.destroy_me == 0
        && (waits || entry.flags.contains(exists(kind)))
        && is_kind(entry, kind, info)
        && info.name.to_string() == name_of(entry, kind)
}

/// Whether a volume has the kind of its id. A snapshot is a read-write volume to the location database.
pub(super) fn is_kind(entry: &Entry, kind: VolumeKind, info: &VolumeInfo) -> bool {
    match (kind, info.kind.check()) {
        (VolumeKind::ReadWrite, Some(VolumeKind::Backup)) => is_snapshot(entry),
        (kind, found) => found == Some(kind),
    }
}

/// Whether an entry may be that of a snapshot: it has only the one volume.
fn is_snapshot(entry: &Entry) -> bool {
    let [_, read_only, backup] = entry.ids;
    read_only.0 == 0 && backup.0 == 0 && entry.sites.len() <= 1
}

/// The name in the header of a volume of the group.
pub(super) fn name_of(entry: &Entry, kind: VolumeKind) -> String {
    let mut name = format!("{}{}", entry.name, kind.suffix());
    name.truncate(VolumeName::HEADER_MAX);
    name
}

/// Whether an operation has locked the entry.
pub(super) fn is_locked(entry: &Entry) -> bool {
    entry.flags.intersects(EntryFlags::LOCK_OPERATIONS)
}
