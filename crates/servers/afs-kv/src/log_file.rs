//! Reader of one file of the log: its records, also those behind damage, found by the salt of their turn.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::KvError;
use crate::log_turn::{RECORDS_START, Turn};
use crate::medium::Blob;
use crate::record::{ALIGNMENT, FORMAT_1_HEAD_LEN, HEAD_LEN, Head};
use crate::recovery::LogFormat;

/// One file of the log.
pub(crate) struct LogFile {
    pub(crate) name: &'static str,
    blob: Arc<dyn Blob>,
    len: u64,
    /// `None` in format 1.
    pub(crate) turn: Option<Turn>,
    /// Whether the turn is named at the beginning of the file.
    pub(crate) has_beginning: bool,
}

/// Records that follow one another in a file and by their numbers, `end` not included. The first stretch of a turn is known by its number even if its
/// first record is not complete: what is before it was durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) first: u64,
    pub(crate) end: u64,
    offset: u64,
}

impl Stretch {
    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.first
    }
}

/// Rows of a batch; `None` for one that is deleted.
pub(crate) type Rows = Vec<(Bytes, Option<Bytes>)>;

impl LogFile {
    /// `None` where the file holds no turn. `known` is the turn that it holds for certain, if its own beginning is damaged.
    pub(crate) fn open(
        name: &'static str,
        blob: Arc<dyn Blob>,
        format: LogFormat,
        known: Option<Turn>,
    ) -> Result<Option<Self>, KvError> {
        let len = blob.len()?;
        let written = if format == LogFormat::Two { Turn::read(blob.as_ref())? } else { None };
        let turn = written.or(known);
        let file = Self { name, blob, len, turn, has_beginning: written.is_some() };
        Ok((format == LogFormat::One || turn.is_some()).then_some(file))
    }

    /// Finds the records. Of those behind damage only stretches with one that is newer than `applied` and than those before are found.
    pub(crate) fn stretches(&self, applied: u64) -> Result<Vec<Stretch>, KvError> {
        let mut found = Vec::new();
        let Some((first, mut end)) = self.first_stretch()? else { return Ok(found) };
        found.push(first);
        let mut last = applied.max(first.end.saturating_sub(1));
        while let Some(turn) = self.turn
            && let Some((offset, sequence)) = self.newer_record_after(turn, end, last)?
        {
            let (stretch, next) = self.stretch_at(offset, sequence)?;
            last = stretch.end.saturating_sub(1);
            found.push(stretch);
            end = next;
        }
        Ok(found)
    }

    /// The stretch at the beginning and the offset behind it; `None` if there is no turn and no record.
    fn first_stretch(&self) -> Result<Option<(Stretch, u64)>, KvError> {
        let offset = if self.turn.is_some() { RECORDS_START } else { 0 };
        let first = match self.turn {
            Some(turn) => Some(turn.first),
            None => self.read_record(offset)?.map(|(head, _)| head.sequence),
        };
        first.map(|first| self.stretch_at(offset, first)).transpose()
    }

    /// The records from an offset on that are numbered from `first` on; the offset behind the last.
    fn stretch_at(&self, offset: u64, first: u64) -> Result<(Stretch, u64), KvError> {
        let mut stretch = Stretch { first, end: first, offset };
        let mut at = offset;
        while let Some((head, _)) = self.read_record(at)?
            && head.sequence == stretch.end
        {
            at += head.stride();
            // Without a number that follows no record follows.
            let Some(end) = stretch.end.checked_add(1) else { break };
            stretch.end = end;
        }
        Ok((stretch, at))
    }

    /// Gives the batches of a stretch behind `after`, up to and with `through`, in order.
    pub(crate) fn load(
        &self,
        stretch: Stretch,
        (after, through): (u64, u64),
        mut take: impl FnMut(u64, Rows) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        let mut at = stretch.offset;
        for sequence in stretch.first..stretch.end.min(through.saturating_add(1)) {
            let Some((head, record)) = self.read_record(at)? else {
                return Err(damaged(format!("batch {sequence} of {} can no longer be read", self.name)));
            };
            at += head.stride();
            if sequence > after {
                let rows = head
                    .rows(&record)
                    .ok_or_else(|| damaged(format!("batch {sequence} of {} cannot be decoded", self.name)))?;
                take(sequence, rows)?;
            }
        }
        Ok(())
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

    /// Searches from an offset on for a complete record that is newer than `last`: its offset and number.
    ///
    /// The search is for the turn's salt, so that neither user data nor a record of an earlier turn is examined.
    fn newer_record_after(&self, turn: Turn, from: u64, last: u64) -> Result<Option<(u64, u64)>, KvError> {
        let mut window = vec![0; WINDOW + HEAD_LEN];
        let mut start = from;
        while start < self.len {
            let len = (self.len - start).min(window.len() as u64) as usize;
            self.blob.read_at(start, &mut window[..len])?;
            for at in (0..WINDOW).step_by(ALIGNMENT) {
                let Some(fixed) = window[..len].get(at..).and_then(|rest| rest.first_chunk()) else { break };
                let offset = start + at as u64;
                if Head::decode(fixed, turn.salt).is_some_and(|head| head.sequence > last)
                    && let Some((head, _)) = self.read_record(offset)?
                {
                    return Ok(Some((offset, head.sequence)));
                }
            }
            start += WINDOW as u64;
        }
        Ok(None)
    }
}

fn damaged(what: String) -> KvError {
    KvError::Corrupt(what)
}

const WINDOW: usize = 256 << 10;
const _: () = assert!(FORMAT_1_HEAD_LEN < HEAD_LEN && WINDOW.is_multiple_of(ALIGNMENT));
