//! Directory on a crash disk: a power failure loses or brings back entries that were not synced.

use std::io;

use afs_drive::{Folder, FolderFile, Usage};

use super::CrashDisk;

/// A directory on a crashing disk.
pub struct CrashFolder(pub CrashDisk);

/// A file in it.
pub struct CrashFile {
    disk: CrashDisk,
    name: String,
}

impl CrashFolder {
    fn file(&self, name: &str) -> CrashFile {
        CrashFile { disk: self.0.clone(), name: name.to_owned() }
    }
}

impl Folder for CrashFolder {
    type File = CrashFile;

    fn open(&self, name: &str) -> io::Result<CrashFile> {
        self.0.len(name).map(|_| self.file(name))
    }

    fn create(&self, name: &str) -> io::Result<CrashFile> {
        self.0.create_entry(name).map(|()| self.file(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.names())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove_entry(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_entries()
    }

    fn usage(&self) -> io::Result<Usage> {
        Ok(Usage { free: 1 << 40, total: 1 << 40 })
    }
}

impl FolderFile for CrashFile {
    fn length(&self) -> io::Result<u64> {
        self.disk.len(&self.name)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(&self.name, offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write_at(&self.name, offset, data)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync(&self.name)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let len = len.min(self.disk.len(&self.name)?.saturating_sub(offset));
        self.disk.write_at(&self.name, offset, &vec![0; len as usize])
    }
}
