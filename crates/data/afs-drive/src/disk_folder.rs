//! `Folder` of a directory of the operating system, held exclusively by a lock file.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use afs_own::{self as own, Opening};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};

use crate::drive::Usage;
use crate::folder::{Folder, FolderFile};

/// A directory, held exclusively by a lock on its `lock` file.
#[derive(Debug)]
pub struct DiskFolder {
    path: PathBuf,
    directory: File,
    is_read_only: bool,
    /// None where there is no file for it, and nothing is to be written.
    _lock: Option<File>,
}

impl DiskFolder {
    /// Opens the directory, creating it (one level) if it does not exist; its existence is durable then.
    ///
    /// Fails with `ResourceBusy` when another process, or another drive of this one, has it open.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        own::directory(&path)?;
        let lock = path.join("lock");
        let opened = Opening::write().or_make().open(&lock);
        let lock = Some(held(opened.map_err(named(&lock))?, &path)?);
        let directory = File::open(&path)?;
        Ok(Self { path, directory, is_read_only: false, _lock: lock })
    }

    /// Opens a directory that is there, for reading alone.
    ///
    /// Fails with `ResourceBusy` as [`DiskFolder::open`].
    pub fn read_only(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let lock = match Opening::read().open(&path.join("lock")) {
            Ok(lock) => Some(held(lock, &path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let directory = File::open(&path).map_err(named(&path))?;
        Ok(Self { path, directory, is_read_only: true, _lock: lock })
    }
}

/// The lock file of a directory, locked.
fn held(lock: File, directory: &Path) -> io::Result<File> {
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => {
            let what = format!("{} is in use by another process", directory.display());
            Err(io::Error::new(io::ErrorKind::ResourceBusy, what))
        }
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

impl Folder for DiskFolder {
    type File = File;

    fn open(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        let opening = if self.is_read_only { Opening::read() } else { Opening::write() };
        opening.open(&path).map_err(named(&path))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        Opening::write().or_make().open(&path).map_err(named(&path))
    }

    fn place(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn usage(&self) -> io::Result<Usage> {
        let stat = fstatvfs(&self.directory)?;
        Ok(Usage { free: stat.f_bavail * stat.f_frsize, total: stat.f_blocks * stat.f_frsize })
    }
}

impl FolderFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(self, flags, offset, len) {
            // A file system without holes: the bytes are overwritten, so that they read as freed; the space is freed
            // with the whole segment.
            Err(rustix::io::Errno::OPNOTSUPP) => overwrite(self, offset, len),
            other => Ok(other?),
        }
    }
}

/// An error of the system with the file that it is of.
fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn overwrite(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let zeros = [0; 4096];
    (offset..offset + len).step_by(zeros.len()).try_for_each(|at| file.write_all_at(&zeros, at))
}
