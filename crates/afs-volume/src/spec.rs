//! What a new volume is to be.

use afs_wire::acl::Acl;
use afs_wire::ids::{ViceId, VolumeId, VolumeKind, VolumeName};

/// What a new, empty volume is to be.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Its number, which the location database gave out.
    pub id: VolumeId,
    /// Its name.
    pub name: VolumeName,
    /// Read-write; or read-only, for a site that a release fills.
    pub kind: VolumeKind,
    /// The read-write volume it belongs to; 0 is itself.
    pub parent: VolumeId,
    /// Whom it and its root directory belong to.
    pub owner: ViceId,
    /// The most it may use, in KiB; 0 is no limit.
    pub max_quota: u32,
    /// The access list of its root directory. Without one no root directory is made: a restore brings it.
    pub root: Option<Acl>,
}

/// What a new clone is to be.
#[derive(Clone, Debug)]
pub struct CloneSpec {
    /// Its number, which the location database gave out.
    pub id: VolumeId,
    /// Its name, whatever its kind; names of clones need not differ.
    pub name: VolumeName,
    /// Read-only or backup. A read-write clone goes its own way from the state that its source, which is not read-write, has.
    pub kind: VolumeKind,
    /// A named snapshot: its header says so, and the source's header does not take it for the backup volume.
    pub snapshot: bool,
}
