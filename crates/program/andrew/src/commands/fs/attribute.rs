//! Properties of objects in a mount, and the messages for their errors.

use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::properties;
use rustix::io::Errno;
use std::path::Path;

/// Reads a property of `path`, following symbolic links.
pub(super) fn get(path: &Path, name: impl AsRef<[u8]>) -> CommandResult<Vec<u8>> {
    try_get(path, name).map_err(|e| explain(path, e))
}

/// As [`get`], with the error of the system.
pub(super) fn try_get(path: &Path, name: impl AsRef<[u8]>) -> Result<Vec<u8>, Errno> {
    properties::get(path, name)
}

/// Reads a property as text, without a NUL or newline at its end.
pub(super) fn get_text(path: &Path, name: impl AsRef<[u8]>) -> CommandResult<String> {
    let value = get(path, name)?;
    let text = String::from_utf8_lossy(&value);
    Ok(text.trim_end_matches(['\0', '\n']).to_owned())
}

/// Sets a property of `path`.
pub(super) fn set(path: &Path, name: impl AsRef<[u8]>, value: &[u8]) -> CommandResult {
    try_set(path, name, value).map_err(|e| explain(path, e))
}

/// As [`set`], with the error of the system.
pub(super) fn try_set(path: &Path, name: impl AsRef<[u8]>, value: &[u8]) -> Result<(), Errno> {
    properties::set(path, name, value)
}

/// Message for an error on a path, in the words of OpenAFS's `fs`.
pub(super) fn explain(path: &Path, error: Errno) -> CommandError {
    let shown = path.display();
    match error {
        Errno::ACCESS | Errno::PERM => {
            CommandError::failed(format!("fs: You don't have the required access rights on '{shown}'"))
        }
        Errno::NOENT => {
            CommandError::usage(format!("fs: File '{shown}' doesn't exist; give a path that does"))
        }
        Errno::NOTSUP | Errno::NODATA => CommandError::usage(format!(
            "fs: '{shown}' is not in AFS; give a path in a mount (`andrew status` shows those there are)"
        )),
        Errno::INVAL => CommandError::usage(format!("fs: Invalid argument for '{shown}'")),
        Errno::NODEV => {
            CommandError::failed(format!("fs: No such device: the volume of '{shown}' is not on line"))
        }
        Errno::TIMEDOUT => {
            CommandError::failed(format!("fs: Connection timed out: no server of '{shown}' replies"))
        }
        Errno::ROFS => {
            CommandError::failed(format!("fs: You can not change '{shown}': its volume is read-only"))
        }
        Errno::NOTCONN => CommandError::failed(format!(
            "fs: the program that served the mount of '{shown}' has died; `andrew up` mounts its cell again, `andrew umount` removes the mount"
        )),
        Errno::CONNREFUSED => CommandError::failed(format!(
            "fs: the mount of '{shown}' is another user's, who alone can ask it, or was made with another ANDREW_RUN; see `andrew status`"
        )),
        Errno::PROTO => CommandError::failed(format!(
            "fs: the program of the mount of '{shown}' is of another version than this one; `andrew umount` and then the command that mounted it (`andrew up` or `andrew mount`) start this one"
        )),
        Errno::AGAIN => CommandError::failed(format!(
            "fs: the mount of '{shown}' has as many requests as it takes; try again when some are done"
        )),
        other => CommandError::failed(format!("fs:'{shown}': {}", std::io::Error::from(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_afs_is_bad_input() {
        let error = get(Path::new("/proc/self/status"), "afs.acl").unwrap_err();
        assert_eq!(error.status, CommandError::USAGE);
        assert_eq!(
            error.message,
            "fs: '/proc/self/status' is not in AFS; give a path in a mount (`andrew status` shows those there are)"
        );
    }

    #[test]
    fn a_missing_path_is_bad_input() {
        let error = get_text(Path::new("/no/such"), "afs.acl").unwrap_err();
        assert_eq!(error.message, "fs: File '/no/such' doesn't exist; give a path that does");
        assert_eq!(error.status, CommandError::USAGE);
    }
}
