//! What takes a name's place: a file or a directory made under a name of this process in the shadow directory, and removed there if it
//! is dropped before it was put into its place.

use super::call::Refusal;
use super::tree::{ADMIN, OWN};
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;

/// It.
pub(super) struct Prepared<'d> {
    directory: &'d OwnedFd,
    name: String,
    is_there: bool,
}

impl<'d> Prepared<'d> {
    /// An empty file, open to be written.
    pub(super) fn file(directory: &'d OwnedFd) -> Result<(Self, File), Refusal> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Self::made(directory, |name| openat(directory, name, flags, Mode::RUSR | Mode::WUSR))
            .map(|(prepared, file)| (prepared, file.into()))
    }

    /// A directory with its shadow.
    pub(super) fn directory(directory: &'d OwnedFd) -> Result<Self, Refusal> {
        let (prepared, ()) = Self::made(directory, |name| mkdirat(directory, name, OWN))?;
        mkdirat(directory, format!("{}/{ADMIN}", prepared.name), OWN)?;
        Ok(prepared)
    }

    /// A process that was killed may have left what it prepared, and this one may have its id.
    fn made<T>(
        directory: &'d OwnedFd,
        make: impl Fn(&str) -> Result<T, Errno>,
    ) -> Result<(Self, T), Refusal> {
        let name = format!("{ADMIN}/{ADMIN}.{}", std::process::id());
        let mut prepared = Self { directory, name, is_there: true };
        let made = match make(&prepared.name) {
            Err(Errno::EXIST | Errno::ISDIR) => {
                prepared.remove();
                make(&prepared.name)
            }
            made => made,
        };
        prepared.is_there = made.is_ok();
        Ok((prepared, made?))
    }

    /// Puts it under a name of the directory.
    ///
    /// # Errors
    /// [`Refusal::Kind`] where another process has made there what this cannot replace.
    pub(super) fn put(mut self, name: &str) -> Result<(), Refusal> {
        match renameat(self.directory, &*self.name, self.directory, name) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR) => Err(Refusal::Kind),
            put => {
                put?;
                self.is_there = false;
                Ok(())
            }
        }
    }

    /// What cannot be removed is in the way of the next one, which tells it.
    fn remove(&self) {
        if unlinkat(self.directory, &*self.name, AtFlags::empty()) == Err(Errno::ISDIR) {
            let shadow = format!("{}/{ADMIN}", self.name);
            let _ = unlinkat(self.directory, shadow, AtFlags::REMOVEDIR);
            let _ = unlinkat(self.directory, &*self.name, AtFlags::REMOVEDIR);
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if self.is_there {
            self.remove();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::super::tree::Tree;
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    struct Run {
        directory: tempfile::TempDir,
        tree: Tree,
    }

    impl Run {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let tree = Tree::open(directory.path()).unwrap();
            Self { directory, tree }
        }

        fn left(&self) -> PathBuf {
            self.directory.path().join(format!("{ADMIN}/{ADMIN}.{}", std::process::id()))
        }
    }

    #[test]
    fn what_a_killed_process_left_is_in_nobodys_way() {
        let run = Run::new();
        let place = |name| run.tree.find(&[name]).unwrap();
        let leave_directory = || fs::create_dir_all(run.left().join(ADMIN)).unwrap();
        leave_directory();
        place("dir").make_dir().unwrap();
        leave_directory();
        place("file").store(&mut &b"data"[..], 4).unwrap();
        fs::write(run.left(), "a half").unwrap();
        place("other").make_dir().unwrap();
        fs::write(run.left(), "a half").unwrap();
        place("short").store(&mut &b"d"[..], 1).unwrap();
        assert_eq!(fs::read(run.directory.path().join("short")).unwrap(), b"d");
        assert!(!run.left().exists());
    }

    #[test]
    fn a_store_that_was_cut_and_a_lost_race_leave_nothing() {
        let run = Run::new();
        let place = |name| run.tree.find(&[name]).unwrap();
        let cut = place("file").store(&mut &b"da"[..], 4);
        assert!(matches!(cut, Err(Refusal::Io(_))) && !run.left().exists(), "{cut:?}");
        assert!(place("file").kind.is_none());
        // Found before another process made a directory there.
        let [second, stub, store] = [place("dir"), place("dir"), place("dir")];
        place("dir").make_dir().unwrap();
        let refused = [
            second.make_dir(),
            stub.make_stub(super::super::call::ServerNumber(1)),
            store.store(&mut &b"data"[..], 4),
        ];
        assert!(refused.iter().all(|one| matches!(one, Err(Refusal::Kind))), "{refused:?}");
        let late = place("late");
        place("late").store(&mut &b"data"[..], 4).unwrap();
        assert!(matches!(late.make_dir(), Err(Refusal::Kind)));
        assert!(!run.left().exists());
        assert_eq!(fs::read_dir(run.directory.path().join(ADMIN)).unwrap().count(), 2, "a status of each");
    }
}
