//! Bytes of an encrypted cache file: encrypted sectors at the positions of their plain text; the length of the file on disk encodes that of the plain text.
//!
//! A file of `len` bytes has `len` rounded up to whole sectors, and behind them a hole of `len % 4096` bytes. So no other record of the length
//! has to be kept in step. Bytes of the last sector beyond the end are zeros in plain text.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use parking_lot::RwLock;

use super::holes::{self, in_memory, punch};
use crate::cache::Ranges;
use crate::cache::encryption::{SECTOR, SectorCipher};

/// An encrypted file. No other process, and not the kernel, writes to it meanwhile.
pub(super) struct SealedBytes {
    file: File,
    cipher: SectorCipher,
    /// The length. Held while sectors are written, which readers must not see in part, and of which two writers may have a part each.
    length: RwLock<u64>,
}

/// Length of the file on disk that has so many bytes.
fn on_disk_len(len: u64) -> u64 {
    len.next_multiple_of(SECTOR).saturating_add(len % SECTOR)
}

/// Bytes that a file on disk of this length has.
pub(super) fn len_of(on_disk: u64) -> u64 {
    if on_disk.is_multiple_of(SECTOR) { on_disk } else { on_disk.saturating_sub(SECTOR) }
}

fn sector_of(pos: u64) -> u64 {
    pos - pos % SECTOR
}

impl SealedBytes {
    pub fn new(file: File, cipher: SectorCipher) -> io::Result<Self> {
        let length = RwLock::new(len_of(file.metadata()?.len()));
        Ok(Self { file, cipher, length })
    }

    pub fn on_disk(&self) -> &File {
        &self.file
    }

    pub fn len(&self) -> u64 {
        *self.length.read()
    }

    pub fn read_at(&self, pos: u64, len: usize) -> io::Result<Bytes> {
        let length = self.length.read();
        let end = pos.saturating_add(len as u64).min(*length);
        if pos >= end {
            return Ok(Bytes::new());
        }
        let first = sector_of(pos);
        let mut sectors = vec![0; (end.next_multiple_of(SECTOR) - first) as usize];
        self.file.read_exact_at(&mut sectors, first)?;
        drop(length);
        Ok(self.opened(first, sectors, pos..end))
    }

    pub fn read_now(&self, pos: u64, len: usize) -> Option<Bytes> {
        let length = self.length.try_read()?;
        let end = pos.checked_add(len as u64).filter(|end| *end <= *length)?;
        let first = sector_of(pos);
        let sectors = in_memory(&self.file, first, (end.next_multiple_of(SECTOR) - first) as usize)?;
        drop(length);
        Some(self.opened(first, sectors, pos..end))
    }

    /// The plain text of a range within sectors that begin at `first`.
    fn opened(&self, first: u64, mut sectors: Vec<u8>, range: std::ops::Range<u64>) -> Bytes {
        self.cipher.decrypt(first / SECTOR, &mut sectors);
        Bytes::from(sectors).slice((range.start - first) as usize..(range.end - first) as usize)
    }

    pub fn write_at(&self, pos: u64, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = pos.checked_add(data.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut length = self.length.write();
        let before = *length;
        if end > before {
            // First, so that no kill leaves bytes beyond the end that are not zeros.
            self.file.set_len(on_disk_len(end))?;
            *length = end;
        }
        self.put(pos, data, before)
    }

    /// Writes the sectors of these bytes, which are within the file; it had `before` bytes so far.
    fn put(&self, pos: u64, data: &[u8], before: u64) -> io::Result<()> {
        let (first, end) = (sector_of(pos), pos + data.len() as u64);
        let last = sector_of(end - 1);
        let mut sectors = vec![0; (last + SECTOR - first) as usize];
        let (head, tail) = (pos > first, end < last + SECTOR);
        if head || (tail && last == first) {
            self.take(first, &mut sectors, 0, before)?;
        }
        if tail && last > first {
            self.take(last, &mut sectors, (last - first) as usize, before)?;
        }
        let at = (pos - first) as usize;
        if let Some(to) = sectors.get_mut(at..at + data.len()) {
            to.copy_from_slice(data);
        }
        self.cipher.encrypt(first / SECTOR, &mut sectors);
        self.file.write_all_at(&sectors, first)
    }

    /// Reads the sector at `pos`, of which a part stays, to its place. Where the file ended so far there are zeros.
    fn take(&self, pos: u64, sectors: &mut [u8], at: usize, before: u64) -> io::Result<()> {
        match sectors.get_mut(at..at + SECTOR as usize) {
            Some(sector) if pos < before => {
                self.file.read_exact_at(sector, pos)?;
                self.cipher.decrypt(pos / SECTOR, sector);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub fn set_len(&self, len: u64) -> io::Result<()> {
        let mut length = self.length.write();
        if len < *length {
            // First, as above; then what is behind the last sector, where a hole has to be.
            self.clear(len..len.next_multiple_of(SECTOR).min(*length), *length)?;
            self.file.set_len(len.next_multiple_of(SECTOR))?;
        }
        self.file.set_len(on_disk_len(len))?;
        *length = len;
        Ok(())
    }

    pub fn data(&self) -> io::Result<Ranges> {
        let length = self.length.read();
        let mut data = holes::data_of(&self.file)?;
        data.remove(*length..u64::MAX);
        Ok(data)
    }

    /// Punches the whole sectors, and writes zeros to parts of others. The last one of the file counts as whole up to its end.
    pub fn discard(&self, pos: u64, len: u64) -> io::Result<()> {
        let length = self.length.write();
        let end = pos.saturating_add(len).min(*length);
        let first = pos.next_multiple_of(SECTOR);
        let last = if end == *length { end.next_multiple_of(SECTOR) } else { sector_of(end) };
        if pos >= end {
            return Ok(());
        }
        if first < last {
            punch(&self.file, first, last - first)?;
        }
        self.clear(pos..first.min(end), *length)?;
        self.clear(last.max(first)..end, *length)
    }

    /// Makes a part of one sector zeros, unless it is a hole.
    fn clear(&self, range: std::ops::Range<u64>, length: u64) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut sector = vec![0; SECTOR as usize];
        self.file.read_exact_at(&mut sector, sector_of(range.start))?;
        match sector.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => self.put(range.start, &vec![0; (range.end - range.start) as usize], length),
        }
    }
}

#[cfg(test)]
mod tests;
