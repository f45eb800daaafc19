//! Data version of a restored vnode; a dump has only the lower half.

use afs_wire::dump::VnodeFields;
use afs_wire::ids::{DataVersion, FileTime, Uniquifier};

use crate::record::VnodeRecord;

/// The data version of a restored vnode: its lower half is the dump's, so that the next dump contains the
/// same.
///
/// A version that this volume has shown with other data must not come again (`docs/protocol/volumes.md` "9.
/// Traps", 10): if the dump's is not newer, the upper half is incremented.
pub(super) fn of(
    here: Option<&VnodeRecord>,
    unique: Uniquifier,
    length: u64,
    fields: &VnodeFields,
) -> DataVersion {
    let dumped = u64::from(fields.data_version);
    let Some(here) = here.filter(|here| here.unique == unique) else { return DataVersion(dumped) };
    let same_half = here.data_version.0 & !LOWER | dumped;
    let same_data = (here.length, here.author) == (length, fields.author)
        && is_same_time(here.client_mod_time, fields.client_mod_time);
    if same_half > here.data_version.0 || same_half == here.data_version.0 && same_data {
        DataVersion(same_half)
    } else {
        DataVersion(same_half.wrapping_add(LOWER + 1))
    }
}

/// Whether two times may be one. Dumps of AFS-3 have seconds, those of ours nanoseconds too: after a restore of a snapshot two versions of the same
/// number may have been written within a second.
fn is_same_time(here: FileTime, dumped: FileTime) -> bool {
    let is_known = here.nanos() != 0 && dumped.nanos() != 0;
    here.seconds() == dumped.seconds() && (!is_known || here.nanos() == dumped.nanos())
}

const LOWER: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ContentId;
    use afs_wire::fs::FileKind;
    use afs_wire::ids::{Mode, UnixSeconds, ViceId, VnodeId};

    fn here(version: u64, modified: u32) -> VnodeRecord {
        VnodeRecord {
            vnode: VnodeId(2),
            unique: Uniquifier(5),
            kind: FileKind::File,
            data_version: DataVersion(version),
            length: 10,
            author: ViceId(1),
            owner: ViceId(1),
            group: 0,
            mode: Mode(0o644),
            link_count: 1,
            parent: VnodeId(1),
            parent_unique: Uniquifier(1),
            client_mod_time: FileTime::new(UnixSeconds(modified), 500),
            server_mod_time: UnixSeconds(modified).into(),
            change_time: UnixSeconds(modified).into(),
            acl: None,
            content: ContentId(1),
            stored: 0,
            cuts: crate::cuts::Cuts::default(),
        }
    }

    fn dumped(version: u32, modified: u32) -> VnodeFields {
        VnodeFields {
            data_version: version,
            client_mod_time: UnixSeconds(modified).into(),
            author: ViceId(1),
            ..VnodeFields::default()
        }
    }

    #[test]
    fn a_version_never_comes_again_with_other_data() {
        let version = |here: &VnodeRecord, fields| of(Some(here), Uniquifier(5), 10, &fields).0;
        let high = 3 << 32;
        assert_eq!(version(&here(7, 100), dumped(7, 100)), 7, "the same");
        assert_eq!(version(&here(high + 7, 100), dumped(7, 100)), high + 7, "the same, after more versions");
        assert_eq!(version(&here(7, 100), dumped(9, 200)), 9, "newer");
        assert_eq!(version(&here(7, 100), dumped(5, 50)), (1 << 32) + 5, "older");
        assert_eq!(version(&here(high + 7, 100), dumped(5, 50)), (4 << 32) + 5, "older once more");
        assert_eq!(version(&here(7, 100), dumped(7, 200)), (1 << 32) + 7, "another history");
        let of_ours =
            |nanos| VnodeFields { client_mod_time: FileTime::new(UnixSeconds(100), nanos), ..dumped(7, 0) };
        assert_eq!(version(&here(7, 100), of_ours(500)), 7, "the same to the nanosecond");
        assert_eq!(version(&here(7, 100), of_ours(600)), (1 << 32) + 7, "another one of the same second");
    }

    #[test]
    fn another_object_begins_anew() {
        assert_eq!(of(Some(&here(7, 100)), Uniquifier(6), 10, &dumped(2, 1)), DataVersion(2));
        assert_eq!(of(None, Uniquifier(5), 10, &dumped(2, 1)), DataVersion(2));
    }
}
