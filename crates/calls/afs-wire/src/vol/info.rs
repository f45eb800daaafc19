//! Properties of a volume in listings of tools.

use super::NameChars;
use crate::ids::{KindNumber, UnixSeconds, VolumeId};

id! {
    /// Which fields of a [`VolumeInfo`] or [`VolumeXInfo`](super::VolumeXInfo) are valid.
    pub struct InfoStatus(i32);
}

impl InfoStatus {
    /// All of it.
    pub const OK: Self = Self(2);
    /// Number and name (of the header file) only: the volume cannot be attached.
    pub const UNATTACHABLE: Self = Self(0);
    /// The number only: another transaction holds the volume.
    pub const BUSY: Self = Self(110);
}

/// [`VolumeInfo::destroy_me`] of a volume that is deleted unless it is published.
pub const DESTROY_ME: u8 = 0xd3;

xdr_struct! {
    /// A volume: `volintInfo`, 220 bytes. Sizes are in KiB.
    #[derive(Copy, Default)]
    pub struct VolumeInfo {
        /// Its name.
        pub name: NameChars,
        /// Its number.
        pub id: VolumeId,
        /// Its kind.
        pub kind: KindNumber,
        /// The group's backup volume.
        pub backup_id: VolumeId,
        /// The group's read-write volume.
        pub parent_id: VolumeId,
        /// The group's read-only volume.
        pub clone_id: VolumeId,
        /// Which fields are valid.
        pub status: InfoStatus,
        /// When it came to this server.
        pub copy_date: UnixSeconds,
        /// Clients can use it.
        pub in_use: bool,
        /// It is damaged.
        pub needs_salvage: bool,
        /// [`DESTROY_ME`] or 0.
        pub destroy_me: u8,
        /// When this instance was made.
        pub creation_date: UnixSeconds,
        /// Last read.
        pub access_date: UnixSeconds,
        /// Last change.
        pub update_date: UnixSeconds,
        /// When the backup volume was made.
        pub backup_date: UnixSeconds,
        /// Accesses within a day.
        pub day_use: i32,
        /// Files and directories.
        pub file_count: i32,
        /// Quota; 0 is none.
        pub quota_max: i32,
        /// Space in use.
        pub size: i32,
        /// Not used.
        pub flags: i32,
        /// Reserved space.
        pub quota_min: i32,
        /// Accesses within a week.
        pub week_use: i32,
        /// Counter of changes.
        pub update_counter: i32,
        /// Not used.
        pub spare: i32,
    }
}

impl VolumeInfo {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 220;
    /// A number of [`SetInfo`](super::SetInfo) that leaves the field unchanged.
    pub const UNCHANGED: i32 = -1;

    /// The argument of [`SetInfo`](super::SetInfo) that changes nothing: every number -1.
    pub fn unchanged() -> Self {
        const DATE: UnixSeconds = UnixSeconds(u32::MAX);
        const ID: VolumeId = VolumeId(u32::MAX);
        Self {
            id: ID,
            kind: KindNumber(-1),
            backup_id: ID,
            parent_id: ID,
            clone_id: ID,
            status: InfoStatus(-1),
            copy_date: DATE,
            creation_date: DATE,
            access_date: DATE,
            update_date: DATE,
            backup_date: DATE,
            day_use: -1,
            file_count: -1,
            quota_max: -1,
            size: -1,
            flags: -1,
            quota_min: -1,
            week_use: -1,
            update_counter: -1,
            spare: -1,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn size() {
        assert_eq!(VolumeInfo::default().to_bytes().len(), VolumeInfo::WIRE_LEN);
    }
}
