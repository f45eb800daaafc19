//! Volume group, as recorded in the location database.

use afs_wire::ids::{VolumeId, VolumeKind, VolumeName};
use afs_wire::vl::{Entry, EntryFlags, Site, SiteFlags};
use afs_wire::volname;

use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// A volume group, and the member that was asked for.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its entry.
    pub entry: Entry,
    /// The kind in the name or id that was asked for; read-write if there was none.
    pub kind: VolumeKind,
}

impl Group {
    /// Name of the read-write volume.
    #[must_use]
    pub fn name(&self) -> String {
        self.entry.name.to_string()
    }

    /// Id of the read-write volume.
    #[must_use]
    pub fn id(&self) -> VolumeId {
        self.entry.id(VolumeKind::ReadWrite)
    }

    /// Id of the volume that was asked for.
    #[must_use]
    pub fn wanted(&self) -> VolumeId {
        self.entry.id(self.kind)
    }

    /// Site of the read-write volume.
    #[must_use]
    pub fn home(&self) -> Option<ServerPartition> {
        home(&self.entry)
    }

    /// Sites that have read-only volumes, or get them with the next release.
    pub fn read_only_sites(&self) -> impl Iterator<Item = &Site> {
        self.entry.sites.iter().filter(|s| s.flags.contains(SiteFlags::RO_VOLUME))
    }

    /// Whether the entry says that a volume exists.
    #[must_use]
    pub fn has(&self, flag: EntryFlags) -> bool {
        self.entry.flags.contains(flag)
    }
}

/// The site of the read-write volume, according to an entry.
pub(crate) fn home(entry: &Entry) -> Option<ServerPartition> {
    entry.sites.iter().find(|s| s.flags.contains(SiteFlags::RW_VOLUME)).map(ServerPartition::from)
}

impl Admin {
    /// The group of a volume by name (with or without `.readonly` or `.backup`) or id.
    ///
    /// # Errors
    /// No such entry, or no location server replies.
    pub async fn group(&self, volume: &str) -> AdminResult<Group> {
        self.find_group(volume).await?.ok_or_else(|| {
            AdminError::refused(format!("Could not find volume {volume}"), "it is not in the VLDB")
                .with_hint("`andrew vos listvldb` shows what is")
        })
    }

    /// As [`Admin::group`]; `None` if there is no such entry.
    ///
    /// # Errors
    /// No location server replies, or the name is invalid.
    pub async fn find_group(&self, volume: &str) -> AdminResult<Option<Group>> {
        if let Ok(id) = volume.parse::<u32>() {
            let found = self.entry(VolumeId(id)).await?;
            return Ok(found.map(|entry| {
                let by_id = |kind: &VolumeKind| entry.id(*kind).0 == id;
                let kind = VolumeKind::ALL.into_iter().find(by_id).unwrap_or(VolumeKind::ReadWrite);
                Group { entry, kind }
            }));
        }
        let (_, kind) = volname::split(volume);
        let found = self.entry_named(volume).await?;
        Ok(found.map(|entry| Group { entry, kind: kind.unwrap_or(VolumeKind::ReadWrite) }))
    }

    /// A site of the volume that was asked for.
    pub(crate) fn some_place(&self, doing: &str, group: &Group) -> AdminResult<ServerPartition> {
        let place = match group.kind {
            VolumeKind::ReadOnly => group.read_only_sites().map(ServerPartition::from).next(),
            VolumeKind::ReadWrite | VolumeKind::Backup => group.home(),
        };
        place.ok_or_else(|| {
            AdminError::refused(doing, "the VLDB has no place of it")
                .with_hint(format!("`andrew vos examine {}` shows what it has", group.name()))
        })
    }

    /// The group of a read-write volume with its site.
    pub(crate) async fn read_write(
        &self,
        doing: &str,
        volume: &str,
    ) -> AdminResult<(Group, ServerPartition)> {
        let group = self.group(volume).await?;
        if group.kind != VolumeKind::ReadWrite {
            return Err(AdminError::refused(doing, format!("{volume} is not a read-write volume"))
                .with_hint(format!("give {}", group.name())));
        }
        let home = group.home().ok_or_else(|| {
            AdminError::refused(doing, format!("{volume} has no read-write site"))
                .with_hint(format!("`andrew vos convertROtoRW` makes one of a read-only copy of {volume}"))
        })?;
        Ok((group, home))
    }
}

/// Checks the name of a read-write volume.
///
/// # Errors
/// An invalid name.
pub(crate) fn check_name(doing: &str, name: &str) -> AdminResult {
    let good = VolumeName::new(name).ok().filter(|n| name.len() <= VolumeName::BASE_MAX && !n.is_number());
    if good.is_some() && volname::split(name).1.is_none() {
        return Ok(());
    }
    Err(AdminError::refused(doing, format!("'{name}' cannot be the name of a volume")).with_hint(
        "use 1 to 22 letters, digits, '.', '-' and '_', not only digits, and no .readonly or .backup at the end",
    ))
}
