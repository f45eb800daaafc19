//! Recovery: replays the log when a store is opened.

use std::sync::Arc;

use bytes::Bytes;

use crate::current_turn::Held;
use crate::error::KvError;
use crate::log;
use crate::log_turn::{RECORDS_START, Turn};
use crate::medium::{Blob, Medium};
use crate::memtable::Memtable;
use crate::record::{ALIGNMENT, FORMAT_1_HEAD_LEN, HEAD_LEN, Head};

/// The formats of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Records without a salt, from the beginning of the file. Read once, and never written.
    One,
    /// Turns with a salt each.
    Two,
}

/// Inserts every batch after `applied` into `memtable`; returns the last sequence number of the store.
///
/// An incomplete record ends the log: it was being written at the crash, and its success was not reported. A gap, or
/// a complete record after a broken one, is damage to acknowledged data, and an error. Cost: each byte of the log is
/// read at most three times, whatever is stored in it.
pub(crate) fn replay(
    medium: &dyn Medium,
    format: LogFormat,
    applied: u64,
    memtable: &Memtable,
) -> Result<u64, KvError> {
    let mut runs = Vec::new();
    for blob in log::open_blobs(medium, format)? {
        if let Some(file) = LogFile::open(blob, format)? {
            runs.extend(file.survey(applied)?.map(|run| (run, file)));
        }
    }
    runs.sort_by_key(|(run, _)| run.first);
    let mut reached = applied;
    for (run, file) in runs {
        if run.first > reached + 1 {
            let missing = run.first - 1;
            return Err(KvError::Corrupt(format!(
                "the log lacks the batches from {} to {missing}",
                reached + 1
            )));
        }
        file.load(applied, run, memtable)?;
        reached = reached.max(run.end - 1);
    }
    Ok(reached)
}

/// Damage, if the log does not hold what it held for certain, or the base is older than the log.
pub(crate) fn check_current(medium: &dyn Medium, held: Option<Held>, applied: u64) -> Result<(), KvError> {
    let damage = match held {
        None => Some("log.turn, which names the current turn of the log, does not name one".into()),
        Some(Held::Nothing { through }) => (through > applied).then(|| {
            format!("the index ends with batch {applied} and had all up to {through}: it is an older copy")
        }),
        Some(Held::Turn { file, turn }) => {
            let blob = &log::open_blobs(medium, LogFormat::Two)?[file];
            // A later turn is one that a crash kept from being named.
            let is_there =
                Turn::read(blob.as_ref())?.is_some_and(|found| found == turn || found.first > turn.first);
            let name = log::names(LogFormat::Two)[file];
            (!is_there).then(|| format!("{name} does not hold the batches from {} that it held", turn.first))
        }
    };
    damage.map_or(Ok(()), |damage| Err(KvError::Corrupt(damage)))
}

/// What a log of before its current turn was named holds at least.
pub(crate) fn found_in_log(medium: &dyn Medium, format: LogFormat, applied: u64) -> Result<Held, KvError> {
    let mut turns = Vec::new();
    if format == LogFormat::Two {
        for (file, blob) in log::open_blobs(medium, format)?.into_iter().enumerate() {
            turns.extend(Turn::read(blob.as_ref())?.map(|turn| (file, turn)));
        }
    }
    let last = turns.into_iter().max_by_key(|(_, turn)| turn.first);
    Ok(last.map_or(Held::Nothing { through: applied }, |(file, turn)| Held::Turn { file, turn }))
}

/// The sequence numbers of the records at the beginning of a file, `end` not included. Of a turn whose first record
/// is incomplete only its number is known: what is before it was durable.
#[derive(Clone, Copy)]
struct Run {
    first: u64,
    end: u64,
}

/// One file of the log.
struct LogFile {
    blob: Arc<dyn Blob>,
    len: u64,
    /// `None` in format 1.
    turn: Option<Turn>,
}

impl LogFile {
    /// `None` where the file holds no turn.
    fn open(blob: Arc<dyn Blob>, format: LogFormat) -> Result<Option<Self>, KvError> {
        let len = blob.len()?;
        let turn = match format {
            LogFormat::One => None,
            LogFormat::Two => match Turn::read(blob.as_ref())? {
                None => return Ok(None),
                turn => turn,
            },
        };
        Ok(Some(Self { blob, len, turn }))
    }

    /// Finds the run of records, and verifies that no newer one follows. `None` if nothing in it can be newer than `applied`.
    fn survey(&self, applied: u64) -> Result<Option<Run>, KvError> {
        let mut run = self.turn.map(|turn| Run { first: turn.first, end: turn.first });
        let mut records = self.records();
        let mut end = records.offset;
        while let Some((head, _)) = records.next()? {
            let expected = run.get_or_insert(Run { first: head.sequence, end: head.sequence });
            if head.sequence != expected.end {
                break;
            }
            expected.end = head.sequence.saturating_add(1);
            end = records.offset;
        }
        let last = run.map_or(applied, |run| applied.max(run.end.saturating_sub(1)));
        if let Some(turn) = self.turn
            && let Some(later) = self.newer_record_after(turn, end, last)?
        {
            return Err(KvError::Corrupt(format!(
                "the log is broken between the batches {last} and {later}"
            )));
        }
        Ok(run.filter(|run| run.end > applied))
    }

    fn load(&self, applied: u64, run: Run, memtable: &Memtable) -> Result<(), KvError> {
        let mut records = self.records();
        for sequence in run.first..run.end {
            let Some((head, record)) = records.next()? else {
                return Err(KvError::Corrupt(format!("batch {sequence} of the log can no longer be read")));
            };
            if sequence > applied {
                let rows = head.rows(&record).ok_or_else(|| {
                    KvError::Corrupt(format!("batch {sequence} of the log cannot be decoded"))
                })?;
                memtable.insert(rows, sequence, sequence);
            }
        }
        Ok(())
    }

    fn records(&self) -> Records<'_> {
        Records { file: self, offset: if self.turn.is_some() { RECORDS_START } else { 0 } }
    }

    /// The fixed part of the record at `offset`, if one that fits into the file begins there.
    fn read_head(&self, offset: u64) -> Result<Option<Head>, KvError> {
        let head = match self.turn {
            None => self.read_array(offset)?.and_then(|fixed| Head::decode_format_1(&fixed)),
            Some(turn) => self.read_array(offset)?.and_then(|fixed| Head::decode(&fixed, turn.salt)),
        };
        Ok(head.filter(|head| offset + head.len() as u64 <= self.len))
    }

    fn read_array<const N: usize>(&self, offset: u64) -> Result<Option<[u8; N]>, KvError> {
        if offset + N as u64 > self.len {
            return Ok(None);
        }
        let mut fixed = [0; N];
        self.blob.read_at(offset, &mut fixed)?;
        Ok(Some(fixed))
    }

    fn read_record(&self, offset: u64) -> Result<Option<(Head, Bytes)>, KvError> {
        let Some(head) = self.read_head(offset)? else { return Ok(None) };
        let mut record = vec![0; head.len()];
        self.blob.read_at(offset, &mut record)?;
        Ok(head.verify(&record).then(|| (head, record.into())))
    }

    /// Searches after the end of a run for a complete record that is newer than its last one.
    ///
    /// The search is for the turn's salt, so that neither user data nor a record of an earlier turn is examined.
    fn newer_record_after(&self, turn: Turn, from: u64, last: u64) -> Result<Option<u64>, KvError> {
        let mut window = vec![0; WINDOW + HEAD_LEN];
        let mut start = from;
        while start < self.len {
            let len = (self.len - start).min(window.len() as u64) as usize;
            self.blob.read_at(start, &mut window[..len])?;
            for at in (0..WINDOW).step_by(ALIGNMENT) {
                let Some(fixed) = window[..len].get(at..).and_then(|rest| rest.first_chunk()) else { break };
                if Head::decode(fixed, turn.salt).is_some_and(|head| head.sequence > last)
                    && let Some((head, _)) = self.read_record(start + at as u64)?
                {
                    return Ok(Some(head.sequence));
                }
            }
            start += WINDOW as u64;
        }
        Ok(None)
    }
}

/// Iterator over consecutive complete records.
struct Records<'a> {
    file: &'a LogFile,
    offset: u64,
}

impl Records<'_> {
    fn next(&mut self) -> Result<Option<(Head, Bytes)>, KvError> {
        let record = self.file.read_record(self.offset)?;
        if let Some((head, _)) = &record {
            self.offset += head.stride();
        }
        Ok(record)
    }
}

const WINDOW: usize = 256 << 10;
const _: () = assert!(FORMAT_1_HEAD_LEN < HEAD_LEN && WINDOW.is_multiple_of(ALIGNMENT));
