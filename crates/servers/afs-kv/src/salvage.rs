//! Salvage: a new store with everything that a damaged one still has.

use std::sync::Arc;

use afs_env::EnvRef;
use bytes::Bytes;

use crate::base::Base;
use crate::damage::Report;
use crate::error::{KvError, OpenError};
use crate::examine::Examined;
use crate::kv::{Config, Kv};
use crate::log_file::Rows;
use crate::medium::Medium;
use crate::memtable::Memtable;
use crate::pages::{LostPage, PageVisitor};

/// What becomes of batches behind the first that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// They are left out: the store is as it was before the first lost batch.
    LeaveOut,
    /// They are applied all the same: newer rows, which may contradict those that the lost batches would have changed.
    Apply,
}

/// Makes a store on an empty medium of what a damaged one still has: all rows of the index that can be read, and the batches of the log, in order.
/// Returns what [`check`](crate::check) says of the damaged one, of which nothing is written. The new one is complete, and closed, when this returns.
///
/// Where the index does not say which tables there are, they are `tables`, as in a store that was new when it was opened with these. The numbers of batches that were
/// lost or left out are not given again.
///
/// # Errors
/// One of the media fails, `into` is full or not empty, or the store is of another version of this program.
pub fn salvage(
    from: &dyn Medium,
    into: Arc<dyn Medium>,
    tables: &[&str],
    later: Later,
    env: EnvRef,
) -> Result<Report, OpenError> {
    if !into.list()?.is_empty() {
        return Err(OpenError::NotEmpty);
    }
    let Examined { index, log, report } = Examined::of(from, &mut ())?;
    let through = if later == Later::Apply { u64::MAX } else { report.through };
    let mut store = New::create(into.as_ref(), &index.tables, tables)?;
    index.rows(&mut store)?;
    log.load(report.applied, through, |sequence, rows| store.add(rows, sequence))?;
    store.finish(report.last)?;
    // It makes the files of the log.
    drop(Kv::open(into, &[], env, Config { cache_bytes: CACHE_BYTES, ..Config::default() })?);
    Ok(report)
}

/// The index of a new store.
struct New {
    base: Base,
    /// Rows that are not in the base yet.
    rows: Memtable,
    bytes: usize,
    sequence: u64,
}

impl New {
    fn create(medium: &dyn Medium, known: &[(String, u8)], names: &[&str]) -> Result<Self, OpenError> {
        let base = Base::open(medium.open("index")?, None, CACHE_BYTES, true)?;
        base.prepare_numbered(known)?;
        if known.is_empty() {
            base.prepare(names)?;
        }
        Ok(Self { base, rows: Memtable::default(), bytes: 0, sequence: 0 })
    }

    /// Adds rows in place of what they had before.
    fn add(&mut self, rows: Rows, sequence: u64) -> Result<(), KvError> {
        let len = |(key, value): &(Bytes, Option<Bytes>)| key.len() + value.as_ref().map_or(0, Bytes::len);
        self.bytes += rows.iter().map(len).sum::<usize>();
        self.rows.insert(rows, sequence, sequence);
        self.sequence = sequence;
        if self.bytes < STEP_BYTES { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), KvError> {
        self.base.absorb(&self.rows, self.sequence)?;
        (self.rows, self.bytes) = (Memtable::default(), 0);
        Ok(())
    }

    /// Writes what is left, and the number of the last batch.
    fn finish(mut self, sequence: u64) -> Result<(), KvError> {
        self.sequence = sequence;
        self.write()
    }
}

impl PageVisitor for New {
    type Error = KvError;

    fn rows(&mut self, rows: Vec<(Bytes, Bytes)>) -> Result<(), KvError> {
        self.add(rows.into_iter().map(|(key, value)| (key, Some(value))).collect(), 0)
    }

    /// The report has it.
    fn lost(&mut self, _: LostPage) {}
}

const CACHE_BYTES: usize = 32 << 20;
/// Rows that are written at a time.
const STEP_BYTES: usize = 8 << 20;
