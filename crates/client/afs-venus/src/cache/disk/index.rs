//! Index of the disk cache: a log of kept files, read at start.
//!
//! A record is `length u32, crc32c u32` (of the rest, big-endian like everything here) and then
//!
//! ```text
//! keep     7u8, cell, fid 3*u32, version u64, file u64, modified u64, length u64, ranges present, ranges that are holes
//! ranges   count u32, count * (start u64, end u64)
//! forget   2u8, cell, fid 3*u32
//! offline  4u8, cell, fid 3*u32, what is known of a pinned object (`crate::cache::offline`)
//! end of that  5u8, cell, fid 3*u32
//! written  8u8, cell, fid 3*u32, file u64, version u64, base length u64, changed u8, owner: the kernel may write to the file
//! owner    0u8 | 1u8, uid u32 | 2u8, uid u32, session u128
//! cell     length u8, bytes
//! ```
//!
//! The log ends at the first truncated or damaged record: files recorded after it count as not kept and are fetched
//! again.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use afs_own::Opening;
use afs_wire::ids::{CellName, DataVersion, Fid};

use crate::cache::codec::{
    cell_of, fid_of, framed, long, owner, put_name, put_owner, put_ranges, ranges, take,
};
use crate::cache::encryption::{RecordKind, SEALED, Sealing};
use crate::cache::kept::{BeingWritten, KeptFiles, Modified};
use crate::cache::{CacheKey, Kept, OfflineRecord, WrittenFile};

/// Longest record; a file with more ranges is not kept.
const RECORD_MAX: usize = 128 << 10;
/// Ranges of a kind that are recorded of one file; of more, the first ones.
const RANGES_MAX: usize = 4000;

/// Bytes that are read of the log at once.
const READ: usize = 256 << 10;

/// Kinds of records. Kind 1 was a record without holes, kind 3 one of a file in another directory, and kind 6 one without a time: such files are
/// fetched again.
const KEEP: u8 = 7;
const FORGET: u8 = 2;
const OFFLINE: u8 = 4;
const NOT_OFFLINE: u8 = 5;
const WRITTEN: u8 = 8;

/// A record of the log.
pub(super) enum IndexRecord {
    Keep {
        key: CacheKey,
        file: u64,
        modified: Modified,
        kept: Kept,
    },
    Forget {
        cell: CellName,
        fid: Fid,
    },
    Offline {
        cell: CellName,
        fid: Fid,
        record: OfflineRecord,
    },
    NotOffline {
        cell: CellName,
        fid: Fid,
    },
    /// In place of an earlier one of the same file.
    Written {
        file: u64,
        written: BeingWritten,
    },
}

pub(super) struct Index {
    path: PathBuf,
    file: File,
    /// Bytes of whole records.
    length: u64,
    records: usize,
    sealing: Sealing,
}

/// Whether the log in this file begins with a sealed record.
pub(super) fn is_sealed(path: &Path) -> io::Result<bool> {
    let mut begin = [0; 9];
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        opened => Ok(fill(&mut opened?, &mut begin)? && begin.last() == Some(&SEALED)),
    }
}

impl Index {
    /// Reads the log and opens it for appending.
    pub fn open(path: &Path, sealing: &Sealing) -> io::Result<(Index, KeptFiles)> {
        let mut kept = KeptFiles::default();
        let file = Opening::append().or_make().open(path)?;
        let mut reader = Records::new(BufReader::with_capacity(READ, &file), sealing.clone());
        let (mut records, mut good) = (0, 0);
        while let Some((record, length)) = reader.next()? {
            apply(&mut kept, record);
            records += 1;
            good += length as u64;
        }
        file.set_len(good)?;
        Ok((Index { path: path.to_owned(), file, length: good, records, sealing: sealing.clone() }, kept))
    }

    /// Appends a record. What a full disk took of it is removed: records behind it would not be found.
    pub fn append(&mut self, record: &IndexRecord) -> io::Result<()> {
        let bytes = encode(&self.sealing, record);
        if let Err(error) = self.file.write_all(&bytes) {
            self.file.set_len(self.length)?;
            return Err(error);
        }
        self.records += 1;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// True if most of the log concerns files that are not kept any more.
    pub fn is_long(&self, kept: usize) -> bool {
        self.records > 1000 + 3 * kept
    }

    /// Rewrites the log with the kept files, pinned ones first, then the oldest first, and with the records of pinned objects.
    pub fn rewrite(&mut self, kept: &KeptFiles) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        let mut file = Opening::write().or_make().open_emptied(&temporary)?;
        let mut out = Vec::new();
        for ((cell, fid), record) in kept.all() {
            let key = CacheKey { cell: cell.clone(), fid: *fid, version: record.version };
            let (file, modified, kept) = (record.file, record.modified, record.kept.clone());
            out.extend(encode(&self.sealing, &IndexRecord::Keep { key, file, modified, kept }));
        }
        for ((cell, fid), record) in kept.all_offline() {
            out.extend(encode(
                &self.sealing,
                &IndexRecord::Offline { cell: cell.clone(), fid: *fid, record: record.clone() },
            ));
        }
        for (file, written) in kept.being_written() {
            out.extend(encode(&self.sealing, &IndexRecord::Written { file, written: written.clone() }));
        }
        file.write_all(&out)?;
        std::fs::rename(&temporary, &self.path)?;
        self.file = Opening::append().open(&self.path)?;
        self.length = out.len() as u64;
        self.records = kept.count();
        Ok(())
    }
}

fn apply(kept: &mut KeptFiles, record: IndexRecord) {
    match record {
        IndexRecord::Keep { key, file, modified, kept: what } => {
            drop(kept.keep(&key, (file, modified), what));
        }
        IndexRecord::Forget { cell, fid } => drop(kept.forget(&cell, fid)),
        IndexRecord::Offline { cell, fid, record } => drop(kept.keep_offline((cell, fid), record)),
        IndexRecord::NotOffline { cell, fid } => drop(kept.forget_offline(&cell, fid)),
        IndexRecord::Written { file, written } => {
            kept.begin_writing(file, &written);
            kept.set_changed(file, written.is_changed);
        }
    }
}

fn encode(sealing: &Sealing, record: &IndexRecord) -> Vec<u8> {
    let mut body = Vec::with_capacity(96);
    match record {
        IndexRecord::Keep { key, file, modified, kept } => {
            body.push(KEEP);
            put_name(&mut body, &key.cell, key.fid);
            for number in [key.version.0, *file, modified.0, kept.length] {
                body.extend(number.to_be_bytes());
            }
            put_ranges(&mut body, &kept.present, RANGES_MAX);
            put_ranges(&mut body, &kept.holes, RANGES_MAX);
        }
        IndexRecord::Forget { cell, fid } => {
            body.push(FORGET);
            put_name(&mut body, cell, *fid);
        }
        IndexRecord::Offline { cell, fid, record } => {
            body.push(OFFLINE);
            put_name(&mut body, cell, *fid);
            body.extend(record.encode());
        }
        IndexRecord::NotOffline { cell, fid } => {
            body.push(NOT_OFFLINE);
            put_name(&mut body, cell, *fid);
        }
        IndexRecord::Written { file, written: BeingWritten { of, is_changed } } => {
            body.push(WRITTEN);
            put_name(&mut body, &of.cell, of.fid);
            for number in [*file, of.version.0, of.base_length] {
                body.extend(number.to_be_bytes());
            }
            body.push(u8::from(*is_changed));
            put_owner(&mut body, of.owner);
        }
    }
    framed(sealing, RecordKind::Index, body)
}

/// The records of a log. A cache has millions, most of one cell: the buffer and the cell's name are made once.
struct Records<R> {
    reader: R,
    body: Vec<u8>,
    cell: Option<CellName>,
    sealing: Sealing,
}

impl<R: Read> Records<R> {
    fn new(reader: R, sealing: Sealing) -> Self {
        Records { reader, body: Vec::new(), cell: None, sealing }
    }

    /// The next record and its length in the file; `None` at the end or at a damaged record.
    fn next(&mut self) -> io::Result<Option<(IndexRecord, usize)>> {
        let mut head = [0; 8];
        if !fill(&mut self.reader, &mut head)? {
            return Ok(None);
        }
        let [a, b, c, d, e, f, g, h] = head;
        let (length, crc) = (u32::from_be_bytes([a, b, c, d]) as usize, u32::from_be_bytes([e, f, g, h]));
        if length > RECORD_MAX + 128 {
            return Ok(None);
        }
        self.body.resize(length, 0);
        if !fill(&mut self.reader, &mut self.body)? || crc32c::crc32c(&self.body) != crc {
            return Ok(None);
        }
        let Some(record) = self.sealing.open(RecordKind::Index, &self.body) else { return Ok(None) };
        Ok(decode(&record, &mut self.cell).map(|record| (record, length + 8)))
    }
}

/// Fuzz target: reads arbitrary bytes as a record of a pinned object, and as an index. The first byte of each hundred determines whether they become a
/// record with valid length and checksum.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_any(bytes: &[u8]) {
    crate::cache::offline::read_any(bytes);
    let mut file = Vec::new();
    for piece in bytes.chunks(100) {
        let Some((&first, body)) = piece.split_first() else { continue };
        if first & 1 == 0 {
            file.extend((body.len() as u32).to_be_bytes());
            file.extend(crc32c::crc32c(body).to_be_bytes());
        }
        file.extend(body);
    }
    let (mut records, mut kept) = (Records::new(file.as_slice(), Sealing::Plain), KeptFiles::default());
    while let Ok(Some((record, length))) = records.next() {
        assert!(length >= 8, "a record has a length");
        apply(&mut kept, record);
    }
}

/// True if the whole buffer was filled.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The record of a body. `last` is the cell of the record before, and becomes that of this one.
fn decode(body: &[u8], last: &mut Option<CellName>) -> Option<IndexRecord> {
    let mut rest = body;
    let kind = take::<1>(&mut rest)?[0];
    let length = take::<1>(&mut rest)?[0] as usize;
    let cell = cell_of(rest.get(..length)?, last)?;
    rest = rest.get(length..)?;
    let fid = fid_of(&mut rest)?;
    match kind {
        KEEP => {
            let (version, file) = (DataVersion(long(&mut rest)?), long(&mut rest)?);
            let (modified, length) = (Modified(long(&mut rest)?), long(&mut rest)?);
            let kept = Kept { length, present: ranges(&mut rest)?, holes: ranges(&mut rest)? };
            Some(IndexRecord::Keep { key: CacheKey { cell, fid, version }, file, modified, kept })
        }
        FORGET => Some(IndexRecord::Forget { cell, fid }),
        OFFLINE => Some(IndexRecord::Offline { cell, fid, record: OfflineRecord::decode(rest)? }),
        NOT_OFFLINE => Some(IndexRecord::NotOffline { cell, fid }),
        WRITTEN => written(cell, fid, &mut rest),
        _ => None,
    }
}

fn written(cell: CellName, fid: Fid, rest: &mut &[u8]) -> Option<IndexRecord> {
    let (file, version, base_length) = (long(rest)?, DataVersion(long(rest)?), long(rest)?);
    let [changed] = take::<1>(rest)?;
    let of = WrittenFile { cell, fid, owner: owner(rest)?, version, base_length };
    Some(IndexRecord::Written { file, written: BeingWritten { of, is_changed: changed != 0 } })
}
