//! The product's own files and directories: made for their owner alone, and refused if another user owns them or may change them.
//!
//! Every directory and file that a program keeps of its own (state, cache, partition, drive, log, lock) is made and opened here. A name that
//! is a symbolic link is not followed, and what others may read is closed to them when it is opened.

use crate::directory::make_directory;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Mode bits of users other than the owner.
const OTHERS: u32 = 0o077;
/// Those by which others change a file, or the names in a directory.
const OTHERS_WRITE: u32 = 0o022;

/// Makes a directory that a user has named (by an option, for example), and those missing above it, durably. If it exists, its mode is left
/// as it is: its owner may let other users read the names in it.
///
/// # Errors
/// The system refuses; the directory belongs to another user than this one or root; others may write to it.
pub fn given_directory(path: &Path) -> io::Result<()> {
    make_directory(path, DirBuilder::new().mode(0o700))?;
    check(path, &fs::metadata(path).map_err(named(path))?)
}

/// Makes a directory of which the product alone knows, durably, in one that is there, or takes one: what others may read in it is closed
/// to them, with a line in the log.
///
/// # Errors
/// As [`given_directory`]; the directory above is missing; the file system does not keep modes.
pub fn directory(path: &Path) -> io::Result<()> {
    subdirectory(path).map_err(named(path))?;
    given_directory(path)?;
    match fs::metadata(path).map_err(named(path))?.mode() & OTHERS {
        0 => Ok(()),
        _ => close_to_others(path, &File::open(path).map_err(named(path))?),
    }
}

/// Makes a directory that must not exist.
///
/// # Errors
/// The system refuses, or it exists.
pub fn new_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes a directory in one of the product's own, unless it is there. A crash of the machine may undo that.
///
/// # Errors
/// The system refuses.
pub fn subdirectory(path: &Path) -> io::Result<()> {
    match new_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Makes a directory that other users may read, and those missing above it, or takes one that is there.
///
/// # Errors
/// As [`given_directory`].
pub fn public_directory(path: &Path) -> io::Result<()> {
    make_directory(path, DirBuilder::new().mode(0o755))?;
    check(path, &fs::metadata(path).map_err(named(path))?)?;
    let opened = File::open(path).map_err(named(path))?;
    match opened.metadata()?.uid() == geteuid().as_raw() {
        true => opened.set_permissions(Permissions::from_mode(0o755)).map_err(named(path)),
        false => Ok(()),
    }
}

/// Opens a file that a person has written and named, for reading: a configuration. Links to it are followed, and others may read it.
///
/// # Errors
/// The system refuses; it is no file; it belongs to another user than this one or root; others may write to it.
pub fn given_file(path: &Path) -> io::Result<File> {
    // Does not block on a pipe at this path.
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    check_file(path, &file.metadata()?)?;
    Ok(file)
}

/// How one of the product's own files is opened.
#[derive(Debug)]
pub struct Opening(OpenOptions);

impl Opening {
    /// For reading.
    #[must_use]
    pub fn read() -> Self {
        let mut options = OpenOptions::new();
        // Does not block on a pipe at this path.
        options
            .mode(0o600)
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        Self(options)
    }

    /// For reading and writing.
    #[must_use]
    pub fn write() -> Self {
        let Self(mut options) = Self::read();
        options.write(true);
        Self(options)
    }

    /// For reading, and for writing at its end.
    #[must_use]
    pub fn append() -> Self {
        let Self(mut options) = Self::read();
        options.append(true);
        Self(options)
    }

    /// It is made if it does not exist.
    #[must_use]
    pub fn or_make(mut self) -> Self {
        self.0.create(true);
        self
    }

    /// It must not exist.
    #[must_use]
    pub fn new_file(mut self) -> Self {
        self.0.create_new(true);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The system refuses; it is no file; it belongs to another user than this one or root; others may write to it.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let file = self.0.open(path)?;
        let found = file.metadata()?;
        check_file(path, &found)?;
        if found.mode() & OTHERS != 0 {
            close_to_others(path, &file)?;
        }
        Ok(file)
    }

    /// Opens the file, which is empty then.
    ///
    /// # Errors
    /// As [`Opening::open`].
    pub fn open_emptied(&self, path: &Path) -> io::Result<File> {
        let file = self.open(path)?;
        file.set_len(0)?;
        Ok(file)
    }
}

fn check_file(path: &Path, found: &Metadata) -> io::Result<()> {
    match found.is_file() {
        true => check(path, found),
        false => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a file", path.display())))
        }
    }
}

/// Refuses what another user owns or may change.
fn check(path: &Path, found: &Metadata) -> io::Result<()> {
    let (own, owner, mode) = (geteuid().as_raw(), found.uid(), found.mode() & 0o7777);
    let shown = path.display();
    let text = match owner == own || owner == 0 {
        false => format!(
            "{shown} belongs to user {owner}, who could put anything there; what Andrew keeps has to belong to who runs it: chown {own} {shown}, or give another place"
        ),
        true if mode & OTHERS_WRITE != 0 => {
            format!(
                "{shown} can be changed by other users (mode {mode:04o}), who could have put anything there; look at it, then chmod go-w {shown}, or give another place"
            )
        }
        true => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Takes the rights of others on what this user owns.
fn close_to_others(path: &Path, file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    let mode = found.mode() & 0o7777;
    if mode & OTHERS == 0 || found.uid() != geteuid().as_raw() {
        return Ok(());
    }
    let shown = path.display();
    file.set_permissions(Permissions::from_mode(mode & !OTHERS))?;
    if file.metadata()?.mode() & OTHERS != 0 {
        let text = format!(
            "{shown} is open to other users (mode {mode:04o}), and its file system keeps no other mode; give another place"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    tracing::warn!("{shown} was open to other users (mode {mode:04o}) and is no longer");
    Ok(())
}

/// An error of the system with the file that it is of.
fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn with_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_made_is_for_its_owner_alone_and_what_was_open_is_closed() {
        let scratch = tempfile::tempdir().unwrap();
        let (top, own) = (scratch.path().join("a/top"), scratch.path().join("a/top/own"));
        given_directory(&top).unwrap();
        directory(&own).unwrap();
        let file = own.join("file");
        drop(Opening::write().or_make().open(&file).unwrap());
        assert_eq!(
            [mode(&scratch.path().join("a")), mode(&top), mode(&own), mode(&file)],
            [0o700, 0o700, 0o700, 0o600]
        );
        for (path, wide) in [(&top, 0o755), (&own, 0o755), (&file, 0o644)] {
            with_mode(path, wide);
        }
        given_directory(&top).unwrap();
        directory(&own).unwrap();
        drop(Opening::read().open(&file).unwrap());
        assert_eq!(
            [mode(&top), mode(&own), mode(&file)],
            [0o755, 0o700, 0o600],
            "a given directory is its owner's"
        );
    }

    #[test]
    fn a_public_directory_can_be_reached_and_read_by_others() {
        let scratch = tempfile::tempdir().unwrap();
        let public = scratch.path().join("above/public");
        public_directory(&public).unwrap();
        let before = mode(&scratch.path().join("above"));
        with_mode(&public, 0o700);
        public_directory(&public).unwrap();
        assert_eq!((mode(&public), before & 0o555), (0o755, 0o555));
    }

    #[test]
    fn what_others_may_change_is_refused_with_the_command_that_mends_it() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, file) = (scratch.path().join("folder"), scratch.path().join("file"));
        directory(&folder).unwrap();
        drop(Opening::write().new_file().open(&file).unwrap());
        for wide in [0o770, 0o777, 0o1777, 0o702] {
            with_mode(&folder, wide);
            with_mode(&file, wide & 0o777);
            for said in [
                given_directory(&folder),
                directory(&folder),
                Opening::read().open(&file).map(drop),
                given_file(&file).map(drop),
            ] {
                let said = said.unwrap_err();
                assert_eq!(said.kind(), io::ErrorKind::PermissionDenied);
                assert!(said.to_string().contains("chmod go-w"), "{said}");
            }
            assert_eq!(mode(&folder), wide, "nothing was changed");
        }
    }

    #[test]
    fn what_another_user_owns_is_refused_and_a_link_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let (victim, link, pipe) =
            (scratch.path().join("victim"), scratch.path().join("link"), scratch.path().join("pipe"));
        fs::write(&victim, "of somebody else").unwrap();
        symlink(&victim, &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for opening in [
            Opening::read(),
            Opening::write().or_make(),
            Opening::append().or_make(),
            Opening::write().new_file(),
        ] {
            opening.open(&link).unwrap_err();
            opening.open(&pipe).unwrap_err();
            opening.open_emptied(&link).unwrap_err();
        }
        given_file(&link).expect("a person's own link is followed");
        given_file(&pipe).unwrap_err();
        symlink(scratch.path().join("new"), scratch.path().join("to_new")).unwrap();
        Opening::write().or_make().open(&scratch.path().join("to_new")).unwrap_err();
        assert!(!scratch.path().join("new").exists());
        assert_eq!(fs::read(&victim).unwrap(), b"of somebody else");
        if !geteuid().is_root() {
            return;
        }
        let folder = scratch.path().join("folder");
        directory(&folder).unwrap();
        for path in [&victim, &folder] {
            with_mode(path, 0o700);
            chown(path, Some(65_534), None).unwrap();
        }
        for said in [
            Opening::read().open(&victim).map(drop),
            given_file(&link).map(drop),
            given_directory(&folder),
            directory(&folder),
        ] {
            assert!(said.unwrap_err().to_string().contains("chown 0"));
        }
    }
}
