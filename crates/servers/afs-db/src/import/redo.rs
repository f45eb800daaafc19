//! Redo log beside a database, `NAME.DBSYS1` (docs/protocol operations.md "3.5 File format"): the writes of
//! an interrupted commit. A log without a commit record is of a change that never happened.

use std::collections::BTreeMap;

use super::finding::Findings;
use super::image::{Image, UBIK_HEADER_LEN, UbikVersion};
use super::source::{ImportError, Source};

/// Length of a page of a log.
pub(super) const PAGE_LEN: u64 = 1024;
/// Longest log that is read.
const LOG_LEN_MAX: u64 = 256 << 20;
/// Most pages that a log changes.
const PAGES_MAX: usize = 64 * 1024;
/// Bytes of one record that are copied at once.
const PIECE_LEN: usize = 64 * 1024;

/// Pages as changed by a log.
#[derive(Default)]
pub(super) struct Pages(BTreeMap<u64, Box<[u8; PAGE_LEN as usize]>>);

/// One record of a log, with the position of the next.
enum Record {
    Begin,
    Write { address: u64, at: u64, len: u64 },
    Truncate { len: u64 },
    Commit(UbikVersion),
    Abort,
}

/// Applies a committed log to the database.
pub(super) fn replay(
    image: &mut Image<'_>,
    log: &dyn Source,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let size = log.size();
    if size <= UBIK_HEADER_LEN {
        return Ok(());
    }
    if size > LOG_LEN_MAX {
        return Err(ImportError::not_one(0, "the redo log (DBSYS1) is too long to be one"));
    }
    if !is_committed(log)? {
        findings.difference(0, "the redo log has no commit: its change never happened, and is left out");
        return Ok(());
    }
    findings.difference(0, "the redo log has a committed change, which is taken in");
    let mut at = UBIK_HEADER_LEN;
    while let Some((record, next)) = record(log, at)? {
        at = next;
        match record {
            Record::Begin => {}
            Record::Write { address, at, len } => write(image, log, address, at, len)?,
            Record::Truncate { len } => image.set_len(len),
            Record::Commit(version) => {
                image.version = version;
                break;
            }
            Record::Abort => break,
        }
    }
    Ok(())
}

/// Whether the log contains a commit record.
fn is_committed(log: &dyn Source) -> Result<bool, ImportError> {
    let mut at = UBIK_HEADER_LEN;
    while let Some((record, next)) = record(log, at)? {
        match record {
            Record::Commit(_) => return Ok(true),
            Record::Abort => return Ok(false),
            _ => at = next,
        }
    }
    Ok(false)
}

/// The record at a position; `None` if there is no complete one.
fn record(log: &dyn Source, at: u64) -> Result<Option<(Record, u64)>, ImportError> {
    let words = |offset: u64, count: u64| -> Result<Option<[u32; 3]>, ImportError> {
        let mut bytes = [0; 12];
        let Some(wanted) = bytes.get_mut(..4 * count as usize) else { return Ok(None) };
        if offset + 4 * count > log.size() {
            return Ok(None);
        }
        log.read_at(offset, wanted).map_err(|why| ImportError::Read { offset, why })?;
        let word = |n: usize| u32::from_be_bytes([bytes[n], bytes[n + 1], bytes[n + 2], bytes[n + 3]]);
        Ok(Some([word(0), word(4), word(8)]))
    };
    let Some([code, ..]) = words(at, 1)? else { return Ok(None) };
    let rest = at + 4;
    let found = match code {
        BEGIN => Some((Record::Begin, rest)),
        ABORT => Some((Record::Abort, rest)),
        COMMIT => words(rest, 2)?
            .map(|[epoch, counter, _]| (Record::Commit(UbikVersion { epoch, counter }), rest + 8)),
        TRUNCATE => words(rest, 2)?
            .filter(|[file, len, _]| *file == 0 && is_address(*len))
            .map(|[_, len, _]| (Record::Truncate { len: u64::from(len) }, rest + 8)),
        DATA => words(rest, 3)?
            .filter(|[file, address, len]| *file == 0 && is_address(*address) && is_address(*len))
            .filter(|[_, _, len]| rest + 12 + u64::from(*len) <= log.size())
            .map(|[_, address, len]| {
                let (at, len) = (rest + 12, u64::from(len));
                (Record::Write { address: u64::from(address), at, len }, at + len)
            }),
        _ => None,
    };
    Ok(found)
}

fn is_address(word: u32) -> bool {
    i32::try_from(word).is_ok()
}

fn write(
    image: &mut Image<'_>,
    log: &dyn Source,
    address: u64,
    at: u64,
    len: u64,
) -> Result<(), ImportError> {
    if address + len > i32::MAX as u64 {
        return Err(ImportError::not_one(at, "the redo log writes beyond what a database can be"));
    }
    let mut done = 0;
    while done < len {
        let mut piece = vec![0; PIECE_LEN.min((len - done) as usize)];
        let offset = at + done;
        log.read_at(offset, &mut piece).map_err(|why| ImportError::Read { offset, why })?;
        image.write(address + done, &piece)?;
        done += piece.len() as u64;
    }
    Ok(())
}

impl Pages {
    pub(super) fn has(&self, number: u64) -> bool {
        self.0.contains_key(&number)
    }

    pub(super) fn put(&mut self, number: u64, page: [u8; PAGE_LEN as usize]) -> Result<(), ImportError> {
        if self.0.len() >= PAGES_MAX {
            return Err(ImportError::not_one(
                0,
                "the redo log (DBSYS1) changes more than one transaction can",
            ));
        }
        self.0.insert(number, Box::new(page));
        Ok(())
    }

    /// Writes into existing pages.
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        let end = address + bytes.len() as u64;
        for (number, page) in self.0.range_mut(address / PAGE_LEN..end.div_ceil(PAGE_LEN)) {
            let start = number * PAGE_LEN;
            let (from, until) = (start.max(address), (start + PAGE_LEN).min(end));
            page[(from - start) as usize..(until - start) as usize]
                .copy_from_slice(&bytes[(from - address) as usize..(until - address) as usize]);
        }
    }

    /// Overwrites what was read with the pages of the log.
    pub(super) fn lay_over(&self, address: u64, into: &mut [u8]) {
        let end = address + into.len() as u64;
        for (number, page) in self.0.range(address / PAGE_LEN..end.div_ceil(PAGE_LEN)) {
            let start = number * PAGE_LEN;
            let (from, until) = (start.max(address), (start + PAGE_LEN).min(end));
            into[(from - address) as usize..(until - address) as usize]
                .copy_from_slice(&page[(from - start) as usize..(until - start) as usize]);
        }
    }
}

const BEGIN: u32 = 100;
const COMMIT: u32 = 101;
const ABORT: u32 = 102;
const DATA: u32 = 103;
const TRUNCATE: u32 = 104;
