//! Image of a ubik database, by address: the file after its header, with a committed redo log applied
//! (docs/protocol operations.md "3.5 File format").

use std::cell::RefCell;
use std::fmt;

use super::finding::Findings;
use super::redo::{self, PAGE_LEN, Pages};
use super::source::{ImportError, Source};

/// Position of address 0 in the file.
pub(super) const UBIK_HEADER_LEN: u64 = 64;

/// Version of a database: the time of the election and the number of changes since.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UbikVersion {
    /// Seconds of the election that preceded the first of these changes.
    pub epoch: u32,
    /// Number of changes since.
    pub counter: u32,
}

impl fmt::Display for UbikVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.counter)
    }
}

/// A database being read.
pub(super) struct Image<'a> {
    source: &'a dyn Source,
    pages: Pages,
    len: u64,
    window: RefCell<Window>,
    pub(super) version: UbikVersion,
}

/// The part of the file read last: entries are read sequentially.
#[derive(Default)]
struct Window {
    offset: u64,
    bytes: Vec<u8>,
}

impl<'a> Image<'a> {
    /// Checks the header, and applies the redo log if there is one.
    pub(super) fn open(
        source: &'a dyn Source,
        log: Option<&dyn Source>,
        findings: &mut Findings,
    ) -> Result<Self, ImportError> {
        let (version, len) = header(source)?;
        let window = RefCell::default();
        let mut image = Image { source, pages: Pages::default(), len, window, version };
        if let Some(log) = log {
            redo::replay(&mut image, log, findings)?;
        }
        if image.version.epoch == 0 {
            return Err(ImportError::not_one(
                8,
                "the database is marked as not whole, as while it is received from another server; take the file of \
                 another database server",
            ));
        }
        Ok(image)
    }

    /// Number of bytes after the header.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The bytes at an address.
    pub(super) fn bytes<const N: usize>(&self, address: u32) -> Result<[u8; N], ImportError> {
        let mut bytes = [0; N];
        self.read(u64::from(address), &mut bytes)?;
        Ok(bytes)
    }

    /// The number at an address.
    pub(super) fn word(&self, address: u32) -> Result<u32, ImportError> {
        self.bytes(address).map(u32::from_be_bytes)
    }

    /// Consecutive numbers.
    pub(super) fn words(&self, address: u32, count: usize) -> Result<Vec<u32>, ImportError> {
        let mut bytes = vec![0; 4 * count];
        self.read(u64::from(address), &mut bytes)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect())
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), ImportError> {
        let offset = UBIK_HEADER_LEN + address;
        if address + into.len() as u64 > self.len {
            return Err(ImportError::Read { offset, why: "the database ends before".into() });
        }
        self.beneath(address, into)?;
        self.pages.lay_over(address, into);
        Ok(())
    }

    /// Reads the file without the log; bytes behind its end are zeros.
    pub(super) fn beneath(&self, address: u64, into: &mut [u8]) -> Result<(), ImportError> {
        let offset = UBIK_HEADER_LEN + address;
        let there = usize::try_from(self.source.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let (from_file, beyond) = into.split_at_mut(there.min(into.len()));
        beyond.fill(0);
        let mut window = self.window.borrow_mut();
        if !window.has(offset, from_file.len()) {
            window.fill(self.source, offset, from_file.len())?;
        }
        window.copy(offset, from_file);
        Ok(())
    }

    /// Sets the length, as a redo log does.
    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
    }

    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ImportError> {
        let (first, end) = (address / PAGE_LEN, address + bytes.len() as u64);
        for number in first..end.div_ceil(PAGE_LEN) {
            if !self.pages.has(number) {
                let mut page = [0; PAGE_LEN as usize];
                self.beneath(number * PAGE_LEN, &mut page)?;
                self.pages.put(number, page)?;
            }
        }
        self.pages.write(address, bytes);
        self.len = self.len.max(end);
        Ok(())
    }
}

impl Window {
    fn has(&self, offset: u64, len: usize) -> bool {
        offset >= self.offset && offset + len as u64 <= self.offset + self.bytes.len() as u64
    }

    fn fill(&mut self, source: &dyn Source, offset: u64, len: usize) -> Result<(), ImportError> {
        let there = usize::try_from(source.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        self.bytes.clear();
        self.bytes.resize(there.min(len.max(WINDOW_LEN)), 0);
        self.offset = offset;
        source.read_at(offset, &mut self.bytes).map_err(|why| ImportError::Read { offset, why })
    }

    fn copy(&self, offset: u64, into: &mut [u8]) {
        let start = (offset - self.offset) as usize;
        if let Some(bytes) = self.bytes.get(start..start + into.len()) {
            into.copy_from_slice(bytes);
        }
    }
}

fn header(source: &dyn Source) -> Result<(UbikVersion, u64), ImportError> {
    let size = source.size();
    if size < UBIK_HEADER_LEN {
        return Err(ImportError::not_one(size, "the file is too short for a database of OpenAFS"));
    }
    // Addresses are signed numbers of 32 bits.
    if size > UBIK_HEADER_LEN + i32::MAX as u64 {
        return Err(ImportError::not_one(0, "the file is larger than a database of OpenAFS can be"));
    }
    let mut bytes = [0; 16];
    source.read_at(0, &mut bytes).map_err(|why| ImportError::Read { offset: 0, why })?;
    let word = |n: usize| u32::from_be_bytes([bytes[n], bytes[n + 1], bytes[n + 2], bytes[n + 3]]);
    if word(0) != MAGIC || word(4) & 0xffff != UBIK_HEADER_LEN as u32 {
        return Err(ImportError::not_one(0, "this is no database of OpenAFS (vldb.DB0, prdb.DB0)"));
    }
    Ok((UbikVersion { epoch: word(8), counter: word(12) }, size - UBIK_HEADER_LEN))
}

const MAGIC: u32 = 0x0035_4545;
/// Bytes read at once.
const WINDOW_LEN: usize = 64 * 1024;
