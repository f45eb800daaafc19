//! Checks of names in directories. Source: `docs/protocol/fileserver.md` "7. Operation semantics and errors".

use afs_wire::dir;

use crate::error::VolumeError;

/// Checks a name to be added. One that ends in `@sys` is a name like any other; AFS-3 servers refuse it, because clients look for what
/// it stands for first.
pub(super) fn check_new(name: &[u8]) -> Result<(), VolumeError> {
    if name.len() > dir::NAME_MAX {
        return Err(VolumeError::NameTooLong);
    }
    let bad = name.is_empty() || name.iter().any(|byte| matches!(byte, 0 | b'/'));
    if bad { Err(VolumeError::Invalid) } else { Ok(()) }
}

/// Checks a name to be removed.
pub(super) fn check_old(name: &[u8]) -> Result<(), VolumeError> {
    if name.is_empty() || is_dot(name) { Err(VolumeError::Invalid) } else { Ok(()) }
}

/// Whether the name is one of the two that every directory has.
pub(super) fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}
