//! Permissions granted by rights: pure functions of a status and rights.

use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::Rights;

use crate::api::Access;

/// The right needed to see the attributes of such an object; those of a directory are visible to all
/// (docs/protocol/fileserver.md "5.4 Checks per operation").
pub(crate) fn needed_to_see(kind: FileKind) -> Option<Rights> {
    match kind {
        FileKind::Directory => None,
        FileKind::File => Some(Rights::READ),
        FileKind::Symlink | FileKind::Invalid => Some(Rights::LOOKUP),
    }
}

/// True if rights on an object permit seeing its attributes. A user who may only insert sees the files inserted by that
/// user.
pub(crate) fn sees(kind: FileKind, rights: Rights) -> bool {
    let deposited = kind == FileKind::File && rights.contains(Rights::ADMINISTER | Rights::INSERT);
    deposited || needed_to_see(kind).is_none_or(|needed| rights.contains(needed))
}

/// True if rights on an object permit an access (docs/protocol/fileserver.md "14. Cache-manager side rules"). On a file
/// they include the administer right exactly if the user owns it.
pub(crate) fn may(status: &Status, rights: Rights, wanted: Access) -> bool {
    if status.kind != FileKind::File {
        let change = Rights(Rights::INSERT.0 | Rights::DELETE.0 | Rights::WRITE.0);
        let lists =
            !(wanted.read || wanted.execute) || rights.intersects(Rights(Rights::LOOKUP.0 | Rights::READ.0));
        return lists && (!wanted.write || rights.intersects(change));
    }
    let owns = rights.contains(Rights::ADMINISTER);
    let depositor = owns && rights.contains(Rights::INSERT);
    let mode = |bits: u32| owns || status.mode.0 & bits != 0;
    let reads = (rights.contains(Rights::READ) || depositor) && mode(0o500);
    let writes = depositor || (rights.contains(Rights::WRITE) && mode(0o200));
    (!wanted.read || reads)
        && (!wanted.write || writes)
        && (!wanted.execute || (rights.contains(Rights::READ) && status.mode.0 & 0o100 != 0))
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::Mode;

    use super::*;

    #[test]
    fn rights_and_the_owners_mode_bits_decide_together() {
        let file = |rights: Rights, mode| {
            (Status { kind: FileKind::File, mode: Mode(mode), ..Status::default() }, rights)
        };
        let can = |(status, rights): &(Status, Rights)| {
            [(true, false, false), (false, true, false), (false, false, true)]
                .map(|(read, write, execute)| may(status, *rights, Access { read, write, execute }))
        };
        let reader = Rights(Rights::READ.0 | Rights::LOOKUP.0);
        assert_eq!(can(&file(reader, 0o644)), [true, false, false]);
        assert_eq!(can(&file(reader, 0o755)), [true, false, true]);
        assert_eq!(can(&file(reader, 0o044)), [false, false, false]);
        let writer = Rights(reader.0 | Rights::WRITE.0);
        assert_eq!(can(&file(writer, 0o644)), [true, true, false]);
        assert_eq!(can(&file(writer, 0o444)), [true, false, false]);
        let depositor = Rights(Rights::INSERT.0 | Rights::ADMINISTER.0);
        assert_eq!(can(&file(depositor, 0o444)), [true, true, false]);
        let directory = |rights| (Status { kind: FileKind::Directory, ..Status::default() }, rights);
        assert_eq!(can(&directory(Rights::LOOKUP)), [true, false, true]);
        assert_eq!(can(&directory(Rights::INSERT)), [false, true, false]);
    }
}
