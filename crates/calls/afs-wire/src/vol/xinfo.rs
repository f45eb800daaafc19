//! Properties of a volume in listings of tools, with usage statistics.

use super::{InfoStatus, NameChars};
use crate::ids::{KindNumber, UnixSeconds, VolumeId};

xdr_struct! {
    /// A volume with statistics: `volintXInfo`, 320 bytes. Sizes are in KiB.
    ///
    /// Reads and writes count, in this order: from the same network, of those authenticated, from other networks,
    /// of those authenticated. Authorship arrays count by the time since the last write: under a minute, ten
    /// minutes, an hour, a day, a week, older.
    #[derive(Copy, Default)]
    pub struct VolumeXInfo {
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
        /// Reads.
        pub reads: [i32; 4],
        /// Writes.
        pub writes: [i32; 4],
        /// Writes of files by their last author.
        pub file_same_author: [i32; 6],
        /// Writes of files by others.
        pub file_other_author: [i32; 6],
        /// Changes of directories by their last author.
        pub dir_same_author: [i32; 6],
        /// Changes of directories by others.
        pub dir_other_author: [i32; 6],
    }
}

impl VolumeXInfo {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 320;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Encode;

    #[test]
    fn size() {
        assert_eq!(VolumeXInfo::default().to_bytes().len(), VolumeXInfo::WIRE_LEN);
    }
}
