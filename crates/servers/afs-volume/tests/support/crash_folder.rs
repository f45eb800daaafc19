//! Store over segment files of the product on a disk that loses unsynced directory entries in a power failure as well.

use std::sync::Arc;

use afs_drive::{FileSegments, SegmentDrive};
use afs_env::Parts;
use afs_kv::Kv;
use afs_sim::crash::{CrashDisk, CrashFolder};
use afs_volume::{Config, OpenError, TABLES, VolumeStore};

use super::{now, ticking};

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
