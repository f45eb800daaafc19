//! Reading the log after a stop of any kind.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::KvError;
use crate::medium::Blob;
use crate::memtable::Memtable;
use crate::record::{ALIGNMENT, HEAD_LEN, Head, MAGIC};

/// Brings every batch after `applied` back into `memtable`; answers the last sequence number of the store.
///
/// A record that is not whole ends the log: it was being written when the machine stopped, and nobody was told
/// that it succeeded. A gap, or a whole record behind a broken one, is damage to what was acknowledged,
/// and an error.
pub(crate) fn replay(blobs: &[Arc<dyn Blob>; 2], applied: u64, memtable: &Memtable) -> Result<u64, KvError> {
    let mut runs = Vec::new();
    for blob in blobs {
        let run = survey(blob.as_ref(), applied)?;
        if let Some((first, last)) = run
            && last > applied
        {
            runs.push((first, last, blob));
        }
    }
    runs.sort_by_key(|(first, _, _)| *first);
    let mut reached = applied;
    for (first, last, blob) in runs {
        if first > reached + 1 {
            return Err(KvError::Corrupt(format!(
                "the log lacks the batches from {} to {}",
                reached + 1,
                first - 1
            )));
        }
        load(blob.as_ref(), applied, last, memtable)?;
        reached = reached.max(last);
    }
    Ok(reached)
}

/// The first and last sequence numbers of the run of records at the beginning of a blob. Where the first record of a
/// new turn is torn, whole records of the turn before lie behind it: those that the base has applied are no loss.
fn survey(blob: &dyn Blob, applied: u64) -> Result<Option<(u64, u64)>, KvError> {
    let mut records = Records::new(blob)?;
    let mut run: Option<(u64, u64)> = None;
    let mut end = 0;
    while let Some((head, _)) = records.next()? {
        match &mut run {
            None => run = Some((head.sequence, head.sequence)),
            Some((_, last)) if head.sequence == *last + 1 => *last = head.sequence,
            Some(_) => break,
        }
        end = records.offset;
    }
    let last = run.map_or(applied, |(_, last)| last.max(applied));
    if let Some(later) = newer_record_behind(blob, end, last)? {
        return Err(KvError::Corrupt(format!("the log is broken between the batches {last} and {later}")));
    }
    Ok(run)
}

fn load(blob: &dyn Blob, applied: u64, last: u64, memtable: &Memtable) -> Result<(), KvError> {
    let mut records = Records::new(blob)?;
    while let Some((head, record)) = records.next()? {
        if head.sequence > applied {
            let rows = head.rows(&record).ok_or_else(|| {
                KvError::Corrupt(format!("batch {} of the log cannot be decoded", head.sequence))
            })?;
            memtable.insert(rows, head.sequence, head.sequence);
        }
        if head.sequence == last {
            break;
        }
    }
    Ok(())
}

/// Whole records one behind the other.
struct Records<'a> {
    blob: &'a dyn Blob,
    len: u64,
    offset: u64,
}

impl<'a> Records<'a> {
    fn new(blob: &'a dyn Blob) -> Result<Self, KvError> {
        Ok(Self { blob, len: blob.len()?, offset: 0 })
    }

    fn next(&mut self) -> Result<Option<(Head, Bytes)>, KvError> {
        let record = read_record(self.blob, self.len, self.offset)?;
        if let Some((head, _)) = &record {
            self.offset += head.stride();
        }
        Ok(record)
    }
}

fn read_record(blob: &dyn Blob, len: u64, offset: u64) -> Result<Option<(Head, Bytes)>, KvError> {
    if offset + HEAD_LEN as u64 > len {
        return Ok(None);
    }
    let mut fixed = [0; HEAD_LEN];
    blob.read_at(offset, &mut fixed)?;
    let Some(head) = Head::decode(&fixed) else { return Ok(None) };
    if offset + (HEAD_LEN + head.payload) as u64 > len {
        return Ok(None);
    }
    let mut record = vec![0; HEAD_LEN + head.payload];
    blob.read_at(offset, &mut record)?;
    Ok(head.verify(&record).then(|| (head, record.into())))
}

/// Looks behind the end of a run for a whole record that is newer than its last one.
fn newer_record_behind(blob: &dyn Blob, from: u64, last: u64) -> Result<Option<u64>, KvError> {
    let len = blob.len()?;
    let mut window = vec![0; WINDOW];
    let mut start = from;
    while start < len {
        let part = &mut window[..(len - start).min(WINDOW as u64) as usize];
        blob.read_at(start, part)?;
        for at in (0..part.len().saturating_sub(MAGIC.len() - 1)).step_by(ALIGNMENT) {
            if part[at..at + MAGIC.len()] == MAGIC
                && let Some((head, _)) = read_record(blob, len, start + at as u64)?
                && head.sequence > last
            {
                return Ok(Some(head.sequence));
            }
        }
        start += WINDOW as u64;
    }
    Ok(None)
}

const WINDOW: usize = 256 << 10;
