//! Identifiers, rights, times and validated names.

mod fid;
mod file_time;
mod names;
mod partition;
mod rights;
mod uuid;
mod volume_kind;

pub use fid::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};
pub use file_time::FileTime;
pub use names::{CellName, NameError, VolumeName};
pub use partition::{BadPartition, PartitionId, PartitionNumber};
pub use rights::{BadRights, Rights};
pub use uuid::{BadUuid, Uuid};
pub use volume_kind::{KindNumber, VolumeKind};

id! {
    /// A user (positive) or group (negative) of the protection database. Source: `docs/protocol/ptserver.md` "2. Ids".
    pub struct ViceId(i32);
}

impl ViceId {
    /// Anonymous callers, and names that the protection database does not know.
    pub const ANONYMOUS: Self = Self(32766);
    /// `system:anyuser`: every caller is a member.
    pub const ANYUSER: Self = Self(-101);
    /// `system:authuser`: every authenticated caller of this cell is a member.
    pub const AUTHUSER: Self = Self(-102);
    /// `system:ptsviewers`.
    pub const PTSVIEWERS: Self = Self(-203);
    /// `system:administrators`.
    pub const ADMINISTRATORS: Self = Self(-204);
    /// `system:backup`.
    pub const BACKUP: Self = Self(-205);

    /// The greatest number of a user of a machine that a file can have as its owner.
    pub const MACHINE_UID_MAX: u32 = 0x7eff_ffff;

    /// The owner number of a file whose owner is a user of a machine and none of the cell: -2^31 + `uid`. `None` beyond
    /// [`Self::MACHINE_UID_MAX`]. No caller has such an id, since those of users are positive, so that it gives rights to nobody.
    pub const fn of_machine(uid: u32) -> Option<Self> {
        if uid <= Self::MACHINE_UID_MAX { Some(Self((uid | 1 << 31) as i32)) } else { None }
    }

    /// The user of a machine for which this number stands; see [`Self::of_machine`].
    pub const fn machine_uid(self) -> Option<u32> {
        let uid = self.0 as u32 ^ 1 << 31;
        if self.0 < 0 && uid <= Self::MACHINE_UID_MAX { Some(uid) } else { None }
    }

    /// Groups have negative ids.
    pub const fn is_group(self) -> bool {
        self.0 < 0
    }

    /// The name of an id that exists in every cell.
    pub const fn well_known_name(self) -> Option<&'static str> {
        match self {
            Self::ANONYMOUS => Some("anonymous"),
            Self::ANYUSER => Some("system:anyuser"),
            Self::AUTHUSER => Some("system:authuser"),
            Self::PTSVIEWERS => Some("system:ptsviewers"),
            Self::ADMINISTRATORS => Some("system:administrators"),
            Self::BACKUP => Some("system:backup"),
            _ => None,
        }
    }

    /// The id with a name that exists in every cell.
    pub fn from_well_known_name(name: &str) -> Option<Self> {
        [Self::ANONYMOUS, Self::ANYUSER, Self::AUTHUSER, Self::PTSVIEWERS, Self::ADMINISTRATORS, Self::BACKUP]
            .into_iter()
            .find(|id| id.well_known_name() == Some(name))
    }
}

id! {
    /// Seconds since 1970-01-01 UTC, unsigned so that it lasts until 2106.
    pub struct UnixSeconds(u32);
}

id! {
    /// Permission bits of a file, without type bits. Source: `docs/protocol/fileserver.md` "6. Vnodes, modes, versions".
    pub struct Mode(u32);
}

impl Mode {
    /// The nine ordinary permission bits, all a non-administrator may set.
    pub const PERMISSIONS: u32 = 0o777;
    /// Permission bits with set-user-id, set-group-id and sticky.
    pub const ALL: u32 = 0o7777;

    /// A link whose mode has no x bit is a mount point (`docs/protocol/directory.md` "5. Symbolic links and mount
    /// points").
    pub const fn marks_mount_point(self) -> bool {
        self.0 & 0o111 == 0
    }
}
