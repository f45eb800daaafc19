//! Parameters of a new volume or clone.

use afs_wire::acl::Acl;
use afs_wire::ids::{ViceId, VolumeId, VolumeKind, VolumeName};

/// Parameters of a new, empty volume.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Its id, allocated by the location database.
    pub id: VolumeId,
    /// Its name.
    pub name: VolumeName,
    /// Read-write; or read-only, for a site that a release fills.
    pub kind: VolumeKind,
    /// The read-write volume of its group; 0 is itself.
    pub parent: VolumeId,
    /// The owner of it and of its root directory.
    pub owner: ViceId,
    /// Quota in KiB; 0 is no limit.
    pub max_quota: u32,
    /// The access list of its root directory. Without one no root directory is created: a restore brings it.
    pub root: Option<Acl>,
}

/// Parameters of a new clone.
#[derive(Clone, Debug)]
pub struct CloneSpec {
    /// Its id, allocated by the location database.
    pub id: VolumeId,
    /// Its name, whatever its kind; names of clones need not be unique.
    pub name: VolumeName,
    /// Read-only or backup. A read-write clone is an independent volume with the state of its source, which
    /// is not read-write.
    pub kind: VolumeKind,
    /// Whether it is a named snapshot: its header says so, and the source's header does not record it as the
    /// backup volume.
    pub snapshot: bool,
}
