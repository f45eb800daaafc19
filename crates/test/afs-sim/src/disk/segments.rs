//! Segments of a drive on a simulated disk.

use std::io;

use afs_drive::{SegmentStore, Usage};

use crate::disk::SimDisk;
use crate::disk::blob::BlobHandle;

/// Numbered segments on a [`SimDisk`], valid until the next crash of its node.
///
/// A punched range reads as zeros; its bytes count as used until the segment is removed ([`SimDisk::filled`] does not count them).
#[derive(Clone)]
pub struct SimSegments {
    pub(crate) disk: SimDisk,
    pub(crate) prefix: String,
    pub(crate) cycle: u64,
}

impl SimSegments {
    fn name(&self, segment: u64) -> String {
        format!("{}{segment:016x}", self.prefix)
    }

    fn existing(&self, segment: u64) -> io::Result<BlobHandle> {
        BlobHandle::find(&self.disk, self.name(segment), self.cycle)
    }
}

impl SegmentStore for SimSegments {
    fn list(&self) -> io::Result<Vec<u64>> {
        let number =
            |name: String| u64::from_str_radix(&name, 16).map_err(|_| io::ErrorKind::InvalidData.into());
        self.disk.names(&self.prefix, self.cycle)?.into_iter().map(number).collect()
    }

    fn len(&self, segment: u64) -> io::Result<u64> {
        self.existing(segment)?.length()
    }

    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.existing(segment)?.read(offset, out)
    }

    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        BlobHandle::open_volatile(&self.disk, self.name(segment), self.cycle)?.write(offset, data)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        self.existing(segment)?.sync()
    }

    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()> {
        let blob = self.existing(segment)?;
        let end = (offset + len).min(blob.length()?);
        let zeros = usize::try_from(end.saturating_sub(offset)).map_err(|_| io::ErrorKind::InvalidInput)?;
        if zeros == 0 { Ok(()) } else { blob.write(offset, &vec![0; zeros]) }
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.disk.remove(&self.name(segment), self.cycle)
    }

    fn usage(&self) -> io::Result<Usage> {
        let total = self.disk.capacity().unwrap_or(UNBOUNDED);
        Ok(Usage { free: total.saturating_sub(self.disk.used()), total })
    }
}

/// Reported size of a disk without a limit: 1 TiB.
const UNBOUNDED: u64 = 1 << 40;
