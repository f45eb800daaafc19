//! Reach of a right to a file's data: whether it extends to the other files of the directory, and whether mode
//! bits limit it. A capability of the data path permits no more than this.

use afs_wire::error::Errno;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Mode, Rights};

use super::{AccessRequest, Object, Operation, READABLE, WRITABLE, check, rights};
use crate::subject::Subject;

/// How far a right to a file's data reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    /// Whether it is a right on all files of the directory, by its access list; otherwise it is one on this
    /// file, by its owner.
    pub(crate) directory: bool,
    /// Whether it holds whatever the mode bits of the file are.
    pub(crate) any_mode: bool,
}

impl Reach {
    /// What both permit.
    pub(crate) fn and(self, other: Reach) -> Reach {
        Reach { directory: self.directory && other.directory, any_mode: self.any_mode && other.any_mode }
    }
}

/// The reach of the right to read a file's data.
///
/// # Errors
/// As [`check`] of [`Operation::FetchData`].
pub(crate) fn of_reading(subject: &Subject, object: &Object<'_>) -> Result<Reach, Errno> {
    check(subject, object, Operation::FetchData)?;
    Ok(reach(subject, object, Rights::READ, is_readable(object.mode)))
}

/// The reach of the right to write a file's data.
///
/// # Errors
/// As [`check`] of [`Operation::StoreData`], without a change of the status.
pub(crate) fn of_writing(subject: &Subject, object: &Object<'_>) -> Result<Reach, Errno> {
    check(subject, object, Operation::StoreData(&SetStatus::default()))?;
    Ok(reach(subject, object, Rights::WRITE, is_writable(object.mode)))
}

/// The reach of rights to the data of all files of a directory, which its access list gives.
///
/// # Errors
/// EACCES: the list does not give all of them.
pub(crate) fn of_files(subject: &Subject, directory: &Object<'_>, wanted: Rights) -> Result<Reach, Errno> {
    let request = AccessRequest { subject, object: directory, rights: rights(subject, directory) };
    match request.has(wanted) {
        true => Ok(Reach { directory: true, any_mode: request.is_administrator() }),
        false => Err(Errno::EACCES),
    }
}

/// Of a right that the caller has: by the access list, within the mode bits except for administrators; or else
/// as the owner, whose own files the mode bits do not close.
fn reach(subject: &Subject, object: &Object<'_>, right: Rights, mode_permits: bool) -> Reach {
    let request = AccessRequest { subject, object, rights: rights(subject, object) };
    let any_mode = request.is_administrator();
    match request.has(right) && (mode_permits || any_mode) {
        true => Reach { directory: true, any_mode },
        false => Reach { directory: false, any_mode: true },
    }
}

/// Whether the mode bits let users other than the owner read.
pub(crate) fn is_readable(mode: Mode) -> bool {
    mode.0 & READABLE != 0
}

/// Whether the mode bits let users write.
pub(crate) fn is_writable(mode: Mode) -> bool {
    mode.0 & WRITABLE != 0
}

#[cfg(test)]
mod tests {
    use afs_wire::acl::Acl;
    use afs_wire::fs::FileKind;
    use afs_wire::ids::ViceId;

    use super::*;

    const ALICE: ViceId = ViceId(5);
    const BOB: ViceId = ViceId(6);
    const LIST: Reach = Reach { directory: true, any_mode: false };
    const OWNER: Reach = Reach { directory: false, any_mode: true };
    const ALL: Reach = Reach { directory: true, any_mode: true };

    /// Reading and writing of a file of Alice's with this mode, in a directory with this list.
    fn reaches(subject: &Subject, rights: &str, mode: u32) -> (Result<Reach, Errno>, Result<Reach, Errno>) {
        let rights = rights.parse().unwrap_or(Rights::NONE);
        let acl = Acl { positive: vec![(ViceId::ANYUSER, rights)], negative: Vec::new() };
        let kind = FileKind::File;
        let object = Object { kind, owner: ALICE, mode: Mode(mode), acl: &acl, volume_owner: ViceId(1) };
        (of_reading(subject, &object), of_writing(subject, &object))
    }

    #[test]
    fn a_right_by_the_list_reaches_all_files_whose_mode_permits() {
        let bob = Subject::new(BOB, [ViceId::ANYUSER]);
        assert_eq!(reaches(&bob, "rlidwka", 0o644), (Ok(LIST), Ok(LIST)));
        assert_eq!(reaches(&bob, "rl", 0o644), (Ok(LIST), Err(Errno::EACCES)));
        assert_eq!(reaches(&bob, "rlidwka", 0o044), (Err(Errno::EACCES), Err(Errno::EACCES)));
    }

    #[test]
    fn the_right_of_an_owner_reaches_the_owners_file_alone() {
        let alice = Subject::new(ALICE, [ViceId::ANYUSER]);
        assert_eq!(reaches(&alice, "rlidwka", 0o644), (Ok(LIST), Ok(LIST)));
        assert_eq!(reaches(&alice, "rlidwka", 0), (Ok(OWNER), Ok(OWNER)));
        assert_eq!(reaches(&alice, "i", 0o644), (Ok(OWNER), Ok(OWNER)), "a drop box");
        assert_eq!(reaches(&alice, "l", 0o644), (Err(Errno::EACCES), Err(Errno::EACCES)));
    }

    #[test]
    fn two_rights_together_reach_no_further_than_either() {
        let neither = Reach { directory: false, any_mode: false };
        assert_eq!((LIST.and(OWNER), OWNER.and(LIST)), (neither, neither));
        assert_eq!((LIST.and(ALL), ALL.and(LIST)), (LIST, LIST));
        assert_eq!((OWNER.and(ALL), ALL.and(OWNER)), (OWNER, OWNER));
    }

    /// What is given for a directory is what is given for a file in it that is not the caller's own.
    #[test]
    fn the_rights_to_all_files_of_a_directory_are_those_of_its_list() {
        let (alice, bob) = (Subject::new(ALICE, [ViceId::ANYUSER]), Subject::new(BOB, [ViceId::ANYUSER]));
        for list in ["rlidwka", "rl", "w", "i", "l", ""] {
            let rights = list.parse().unwrap_or(Rights::NONE);
            let acl = Acl { positive: vec![(ViceId::ANYUSER, rights)], negative: Vec::new() };
            // An owner of the directory has no more than others; an owner of the volume neither.
            let (kind, mode) = (FileKind::Directory, Mode(0));
            let object = Object { kind, owner: ALICE, mode, acl: &acl, volume_owner: ALICE };
            for subject in [&alice, &bob, &Subject::administrator()] {
                let (read, write) = reaches(if subject == &alice { &bob } else { subject }, list, 0o644);
                assert_eq!(of_files(subject, &object, Rights::READ), read, "{list}");
                assert_eq!(of_files(subject, &object, Rights::WRITE), write, "{list}");
                let both = of_files(subject, &object, Rights::READ | Rights::WRITE);
                assert_eq!(both.is_ok(), read.is_ok() && write.is_ok(), "{list}");
            }
        }
    }

    #[test]
    fn mode_bits_do_not_bind_administrators_and_lists_do() {
        let admin = Subject::administrator();
        assert_eq!(reaches(&admin, "rlidwka", 0), (Ok(ALL), Ok(ALL)));
        assert_eq!(reaches(&admin, "l", 0o644), (Err(Errno::EACCES), Err(Errno::EACCES)));
    }
}
