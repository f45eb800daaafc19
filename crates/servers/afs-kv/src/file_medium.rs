//! Medium of one directory: a file for each blob.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afs_own::{self as own, Opening};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::medium::{Blob, Medium};

/// A directory with one file for each blob. Held exclusively, by a lock on its `lock` file, while it or one of its blobs is open: a store keeps its blobs and
/// not its medium.
pub struct FileMedium {
    directory: PathBuf,
    /// `None` where a store that is only read has no such file, so that no process has it open.
    lock: Option<Arc<File>>,
    is_read_only: bool,
}

impl FileMedium {
    /// Opens the directory, creating it (one level) if it does not exist.
    ///
    /// Fails with `ResourceBusy` when another process, or another medium of this one, has it open.
    pub fn open(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        own::directory(&directory)?;
        let lock = directory.join(LOCK);
        let lock = Opening::write().or_make().open(&lock).map_err(named(&lock))?;
        hold(&lock, &directory)?;
        Ok(Self { directory, lock: Some(Arc::new(lock)), is_read_only: false })
    }

    /// Opens an existing directory to read it: nothing is created or changed.
    ///
    /// Fails as [`open`](Self::open) does when it is in use.
    pub fn read_only(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        let lock = match Opening::read().open(&directory.join(LOCK)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        lock.as_ref().map_or(Ok(()), |lock| hold(lock, &directory))?;
        Ok(Self { directory, lock: lock.map(Arc::new), is_read_only: true })
    }
}

/// An error of the system with the file that it is of.
fn named(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn hold(lock: &File, directory: &Path) -> io::Result<()> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(fs::TryLockError::WouldBlock) => {
            let text = format!("{} is in use by another process", directory.display());
            Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
        }
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

impl Medium for FileMedium {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let path = self.directory.join(name);
        if self.is_read_only {
            let file = Opening::read().open(&path).map_err(named(&path))?;
            return Ok(Arc::new(FileBlob { file, _lock: self.lock.clone() }));
        }
        let file = Opening::write().or_make().open(&path).map_err(named(&path))?;
        // Also for an existing file: the process that created it may have crashed before it was durable.
        File::open(&self.directory)?.sync_all()?;
        Ok(Arc::new(FileBlob { file, _lock: self.lock.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            if let Ok(name) = entry?.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.is_read_only {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        match fs::remove_file(self.directory.join(name)) {
            Ok(()) => File::open(&self.directory)?.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug)]
struct FileBlob {
    file: File,
    _lock: Option<Arc<File>>,
}

impl FileBlob {
    /// Takes room where the file system has no call for it.
    fn fill(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0; 64 << 10];
        let mut end = self.len()?;
        while end < len {
            let piece = (len - end).min(zeros.len() as u64);
            self.write_at(end, &zeros[..piece as usize])?;
            end += piece;
        }
        Ok(())
    }
}

impl Blob for FileBlob {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.fill(len),
            result => Ok(result?),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

const LOCK: &str = "lock";
