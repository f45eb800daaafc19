//! Medium in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::medium::{Blob, Medium};

/// A medium in memory, with an optional capacity. Clones share their blobs, so that a store can be opened again on
/// the contents of an earlier one.
#[derive(Clone, Default)]
pub struct MemoryMedium {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    blobs: Mutex<BTreeMap<String, Arc<MemoryBlob>>>,
    space: Arc<Space>,
}

impl MemoryMedium {
    /// An empty medium without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most bytes that all blobs together may hold; growth beyond fails with `StorageFull`.
    pub fn set_capacity(&self, bytes: u64) {
        self.shared.space.lock().capacity = Some(bytes);
    }
}

impl Medium for MemoryMedium {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let mut blobs = self.shared.blobs.lock();
        let blob = blobs.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(MemoryBlob { bytes: Mutex::default(), space: self.shared.space.clone() })
        });
        Ok(blob.clone())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.shared.blobs.lock().keys().cloned().collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if let Some(blob) = self.shared.blobs.lock().remove(name) {
            blob.set_len(0)?;
        }
        Ok(())
    }
}

/// Bytes used by all blobs of one medium, and their limit.
#[derive(Default)]
struct Space(Mutex<Usage>);

#[derive(Default)]
struct Usage {
    used: u64,
    capacity: Option<u64>,
}

impl Space {
    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.lock()
    }

    fn resize(&self, from: u64, to: u64) -> io::Result<()> {
        let mut usage = self.lock();
        let used = usage.used - from + to;
        if to > from && usage.capacity.is_some_and(|capacity| used > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        usage.used = used;
        Ok(())
    }
}

struct MemoryBlob {
    bytes: Mutex<Vec<u8>>,
    space: Arc<Space>,
}

impl fmt::Debug for MemoryBlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBlob").field("len", &self.bytes.lock().len()).finish()
    }
}

impl Blob for MemoryBlob {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock();
        let (start, end) = span(offset, out.len())?;
        out.copy_from_slice(bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes.lock();
        let (start, end) = span(offset, data.len())?;
        if end > bytes.len() {
            self.space.resize(bytes.len() as u64, end as u64)?;
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock();
        let (len, _) = span(len, 0)?;
        self.space.resize(bytes.len() as u64, len as u64)?;
        bytes.resize(len, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn span(offset: u64, len: usize) -> io::Result<(usize, usize)> {
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    let end = start.checked_add(len).ok_or(io::ErrorKind::InvalidInput)?;
    Ok((start, end))
}
