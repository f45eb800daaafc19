//! Segment store in memory, page by page.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::drive::Usage;
use crate::segment_store::SegmentStore;

/// Segments in memory, in pages, with a capacity. Clones share them, so that a drive can be opened again on the
/// contents of an earlier one.
#[derive(Clone)]
pub struct MemorySegments(Arc<Mutex<Pages>>);

struct Pages {
    segments: BTreeMap<u64, Segment>,
    capacity: u64,
    used: u64,
}

#[derive(Default)]
struct Segment {
    len: u64,
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
}

impl MemorySegments {
    /// Room for `capacity` bytes, counted in pages of 4096.
    pub fn new(capacity: u64) -> Self {
        Self(Arc::new(Mutex::new(Pages { segments: BTreeMap::new(), capacity, used: 0 })))
    }

    /// Changes the capacity; below the used space, nothing more can be written.
    pub fn set_capacity(&self, bytes: u64) {
        self.lock().capacity = bytes;
    }

    /// Bytes in use, counted in pages of 4096.
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.0.lock()
    }
}

impl SegmentStore for MemorySegments {
    fn list(&self) -> io::Result<Vec<u64>> {
        Ok(self.lock().segments.keys().copied().collect())
    }

    fn len(&self, segment: u64) -> io::Result<u64> {
        let pages = self.lock();
        Ok(pages.segments.get(&segment).ok_or(io::ErrorKind::NotFound)?.len)
    }

    fn read_at(&self, segment: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let pages = self.lock();
        let segment = pages.segments.get(&segment).ok_or(io::ErrorKind::NotFound)?;
        if offset + out.len() as u64 > segment.len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (page, start, part) in split(offset, out.len()) {
            let out = &mut out[part];
            match segment.pages.get(&page) {
                Some(bytes) => out.copy_from_slice(&bytes[start..start + out.len()]),
                None => out.fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&self, segment: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut pages = self.lock();
        let pages = &mut *pages;
        let segment = pages.segments.entry(segment).or_default();
        for (page, start, part) in split(offset, data.len()) {
            if !segment.pages.contains_key(&page) {
                if pages.used + PAGE as u64 > pages.capacity {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                pages.used += PAGE as u64;
            }
            let bytes = segment.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
            bytes[start..start + part.len()].copy_from_slice(&data[part]);
        }
        segment.len = segment.len.max(offset + data.len() as u64);
        Ok(())
    }

    fn sync(&self, _segment: u64) -> io::Result<()> {
        Ok(())
    }

    fn punch(&self, segment: u64, offset: u64, len: u64) -> io::Result<()> {
        let mut pages = self.lock();
        let segment = pages.segments.get_mut(&segment).ok_or(io::ErrorKind::NotFound)?;
        let doomed = offset / PAGE as u64..(offset + len) / PAGE as u64;
        let before = segment.pages.len();
        segment.pages.retain(|page, _| !doomed.contains(page));
        let freed = before - segment.pages.len();
        pages.used -= (freed * PAGE) as u64;
        Ok(())
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        let mut pages = self.lock();
        if let Some(segment) = pages.segments.remove(&segment) {
            pages.used -= (segment.pages.len() * PAGE) as u64;
        }
        Ok(())
    }

    fn usage(&self) -> io::Result<Usage> {
        let pages = self.lock();
        Ok(Usage { free: pages.capacity.saturating_sub(pages.used), total: pages.capacity })
    }
}

/// The pages of a range: page number, first byte within it, and the part of the range that lies in it.
fn split(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % PAGE as u64) as usize;
        let count = (len - done).min(PAGE - start);
        let part = done..done + count;
        done += count;
        (count > 0).then_some((at / PAGE as u64, start, part))
    })
}

const PAGE: usize = 4096;
