//! Segment files of the product on a disk that loses unsynced directory entries in a power failure as well.

use std::io;
use std::sync::Arc;

use afs_drive::{FileSegments, Folder, FolderFile, SegmentDrive, Usage};
use afs_env::Parts;
use afs_kv::Kv;
use afs_volume::{Config, OpenError, TABLES, VolumeStore};

use super::crash_disk::CrashDisk;
use super::{now, ticking};

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

/// A store whose segments are the product's files, so short that a large file spans several.
pub fn open(disk: &CrashDisk) -> Result<VolumeStore, OpenError> {
    let limits = afs_kv::Config { log_bytes: 64 << 10, cache_bytes: 4 << 20, ..afs_kv::Config::default() };
    let failed = |error: afs_kv::OpenError| match error {
        afs_kv::OpenError::Kv(error) => OpenError::Volume(error.into()),
        other => panic!("{other}"),
    };
    let kv = Kv::open(Arc::new(disk.clone()), TABLES, Parts::inline(), limits).map_err(failed)?;
    let segments = FileSegments::over(CrashFolder(disk.clone()));
    let drive = SegmentDrive::open(segments, Parts::inline(), SEGMENT_BYTES)
        .map_err(|error| OpenError::Volume(afs_drive::DriveError::from(error).into()))?;
    now(VolumeStore::open(kv, Arc::new(drive), ticking(), Config::default()))
}

const SEGMENT_BYTES: u64 = 1 << 20;
