//! Segments of a drive on a crash disk, each durable in itself: entries are not lost.

use std::io;

use afs_drive::{SegmentStore, Usage};

use super::CrashDisk;

/// Segments on a crashing disk.
pub struct CrashSegments(pub CrashDisk);

impl SegmentStore for CrashSegments {
    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(self.0.names().iter().filter_map(|name| name.strip_prefix("seg.")?.parse().ok()).collect())
    }

    fn len(&self, segment: u64) -> io::Result<u64> {
        self.0.len(&name(segment))
    }

    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_at(&name(segment), offset, out)
    }

    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(&name(segment), offset, data)
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        self.0.sync(&name(segment))
    }

    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()> {
        let len = len.min(self.0.len(&name(segment))?.saturating_sub(offset));
        self.0.write_at(&name(segment), offset, &vec![0; len as usize])
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        self.0.remove(&name(segment))
    }

    fn usage(&self) -> io::Result<Usage> {
        let total = self.0.capacity().unwrap_or(1 << 40);
        Ok(Usage { free: total.saturating_sub(self.0.used()), total })
    }
}

/// With leading zeros, so that the names sort as the numbers do.
fn name(segment: u64) -> String {
    format!("seg.{segment:020}")
}
