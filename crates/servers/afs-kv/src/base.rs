//! Base: the rows as of the last checkpoint, in one ordered redb table.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

use crate::backend::BlobBackend;
use crate::cursor::{Entry, Layer, Span};
use crate::damage::Damage;
use crate::error::{KvError, OpenError};
use crate::index_walk::IndexWalk;
use crate::medium::Blob;
use crate::memtable::Memtable;
use crate::page_header::MAGIC;
use crate::pages::PAGE_LEN;
use crate::recovery::LogFormat;
use crate::spare::Spare;
use crate::tables::Tables;

/// The database file; only the checkpoint writes it.
pub(crate) struct Base {
    blob: Arc<dyn Blob>,
    spare: Option<Arc<Spare>>,
    cache_bytes: usize,
    /// `None` after a failure whose repair failed too.
    database: Option<Database>,
}

/// A read transaction of the base at one checkpoint. Stays readable during later checkpoints for as long as it is
/// held.
pub(crate) struct BaseView {
    rows: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl Base {
    /// Opens the database file, creating the database in an empty file. `is_new`: nothing was ever committed.
    pub(crate) fn open(
        blob: Arc<dyn Blob>,
        spare: Option<Arc<Spare>>,
        cache_bytes: usize,
        is_new: bool,
    ) -> Result<Self, OpenError> {
        check_beginning(blob.as_ref(), is_new)?;
        if !is_new {
            // redb looks at no checksum after an orderly stop, so that it would serve rows that nobody wrote, and ends the program where it
            // meets other damage.
            IndexWalk::open(&blob).whole()?;
        }
        let mut base = Self { blob, spare, cache_bytes, database: None };
        base.database = Some(base.open_database()?);
        Ok(base)
    }

    /// Checks the format, numbers the tables, and makes both durable if they are new.
    pub(crate) fn prepare(&self, names: &[&str]) -> Result<Tables, OpenError> {
        let txn = self.begin()?;
        check_format(&txn)?;
        let mut numbers = read_numbers(&txn)?;
        for name in names {
            if !numbers.iter().any(|(known, _)| known == name) {
                let next = numbers.iter().map(|(_, number)| *number).max().unwrap_or(0);
                let next =
                    next.checked_add(1).filter(|next| *next < u8::MAX).ok_or(OpenError::TooManyTables)?;
                numbers.push(((*name).to_owned(), next));
            }
        }
        write_numbers(&txn, &numbers)?;
        commit(txn)?;
        Ok(Tables::new(numbers))
    }

    /// The same in a new base, with numbers that another one gave.
    pub(crate) fn prepare_numbered(&self, numbers: &[(String, u8)]) -> Result<(), OpenError> {
        let txn = self.begin()?;
        check_format(&txn)?;
        write_numbers(&txn, numbers)?;
        Ok(commit(txn)?)
    }

    /// The format of the log that belongs to the base. It is the current one from the next [`Base::absorb`] on.
    pub(crate) fn log_format(&self) -> Result<LogFormat, KvError> {
        let txn = self.database()?.begin_read().map_err(transaction_error)?;
        let meta = txn.open_table(META).map_err(table_error)?;
        let format = meta.get(FORMAT_KEY)?.map(|value| value.value());
        Ok(if format == Some(FORMAT_1) { LogFormat::One } else { LogFormat::Two })
    }

    /// Whether the log's files exist, and the blob of its current turn says something.
    pub(crate) fn has_log(&self) -> Result<bool, KvError> {
        let txn = self.database()?.begin_read().map_err(transaction_error)?;
        let meta = txn.open_table(META).map_err(table_error)?;
        Ok(meta.get(LOG_KEY)?.is_some())
    }

    /// Records that they do, from now on.
    pub(crate) fn note_log(&self) -> Result<(), KvError> {
        let txn = self.begin()?;
        txn.open_table(META).map_err(table_error)?.insert(LOG_KEY, 1)?;
        commit(txn)
    }

    /// The sequence number of the last batch that the base holds.
    pub(crate) fn applied(&self) -> Result<u64, KvError> {
        let txn = self.database()?.begin_read().map_err(transaction_error)?;
        let meta = txn.open_table(META).map_err(table_error)?;
        Ok(meta.get(APPLIED_KEY)?.map_or(0, |value| value.value()))
    }

    /// The pages of the file, as they are on the medium.
    pub(crate) fn index(&self) -> IndexWalk {
        IndexWalk::open(&self.blob)
    }

    pub(crate) fn view(&self) -> Result<BaseView, KvError> {
        let txn = self.database()?.begin_read().map_err(transaction_error)?;
        Ok(BaseView { rows: txn.open_table(ROWS).map_err(table_error)? })
    }

    /// Writes the newest rows of a memory table, and `sequence` as the last one applied, in one durable transaction.
    /// On failure the base is unchanged.
    pub(crate) fn absorb(&mut self, memtable: &Memtable, sequence: u64) -> Result<(), KvError> {
        self.change(|base, txn| {
            base.write_rows(txn, memtable, None, usize::MAX)?;
            let mut meta = txn.open_table(META).map_err(table_error)?;
            meta.insert(APPLIED_KEY, sequence)?;
            meta.insert(FORMAT_KEY, FORMAT)?;
            Ok(())
        })
    }

    /// Writes some of the newest rows of a memory table, those behind a key, in one durable transaction: few, so that it takes little room on a
    /// medium that is full. Returns the last one's key; `None` when all are written. The batches do not count as applied: a crash before
    /// [`Base::absorb`] replays them, which writes the same rows.
    pub(crate) fn absorb_piece(
        &mut self,
        memtable: &Memtable,
        after: Option<&Bytes>,
    ) -> Result<Option<Bytes>, KvError> {
        self.change(|base, txn| base.write_rows(txn, memtable, after.cloned(), ROWS_PER_PIECE))
    }

    fn change<T>(
        &mut self,
        change: impl FnOnce(&Self, &WriteTransaction) -> Result<T, KvError>,
    ) -> Result<T, KvError> {
        let result = self.begin().and_then(|txn| {
            let changed = change(self, &txn)?;
            commit(txn).map(|()| changed)
        });
        if result.is_err() {
            // After an I/O error redb refuses every operation; opening it again restores the last checkpoint.
            self.database = None;
            match self.open_database() {
                Ok(database) => self.database = Some(database),
                Err(error) => tracing::error!(%error, "the index cannot be opened again"),
            }
        }
        result
    }

    /// Returns the key of the last row if there may be more than `limit`.
    fn write_rows(
        &self,
        txn: &WriteTransaction,
        memtable: &Memtable,
        mut after: Option<Bytes>,
        limit: usize,
    ) -> Result<Option<Bytes>, KvError> {
        let mut rows = txn.open_table(ROWS).map_err(table_error)?;
        let mut written = 0;
        while written < limit {
            let part = memtable.newest_after(after.as_ref(), ROWS_PER_STEP.min(limit - written));
            let Some((last, _)) = part.last() else { return Ok(None) };
            (after, written) = (Some(last.clone()), written + part.len());
            for (key, value) in &part {
                match value {
                    Some(value) => drop(rows.insert(&key[..], &value[..])?),
                    None => drop(rows.remove(&key[..])?),
                }
            }
        }
        Ok(after)
    }

    fn begin(&self) -> Result<WriteTransaction, KvError> {
        let mut txn = self.database()?.begin_write().map_err(transaction_error)?;
        txn.set_durability(Durability::Immediate)
            .map_err(|error| KvError::Io(Arc::new(io::Error::other(error.to_string()))))?;
        // A checkpoint is rare, so that saving the allocator's state with it costs little; opening after a crash is
        // then fast at any size.
        txn.set_quick_repair(true);
        Ok(txn)
    }

    fn open_database(&self) -> Result<Database, KvError> {
        complete_length(self.blob.as_ref())?;
        let backend = BlobBackend { blob: self.blob.clone(), spare: self.spare.clone() };
        let opened = Database::builder().set_cache_size(self.cache_bytes).create_with_backend(backend);
        opened.map_err(|error| match error {
            redb::DatabaseError::Storage(error) => error.into(),
            other => damaged(format!("cannot be opened: {other}")),
        })
    }

    fn database(&self) -> Result<&Database, KvError> {
        self.database.as_ref().ok_or(KvError::NeedsReopen)
    }
}

impl BaseView {
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        Ok(self.rows.get(key)?.map(|guard| Bytes::copy_from_slice(guard.value())))
    }
}

impl Layer for &BaseView {
    fn fill(&self, span: &Span, limit: usize, out: &mut VecDeque<Entry>) -> Result<Option<Bytes>, KvError> {
        let Some(bounds) = span.bounds() else { return Ok(None) };
        let mut range = self.rows.range::<&[u8]>(bounds)?;
        let before = out.len();
        while out.len() - before < limit {
            let row = if span.reverse { range.next_back() } else { range.next() };
            let Some(row) = row else { return Ok(None) };
            let (key, value) = row?;
            out.push_back((Bytes::copy_from_slice(key.value()), Some(Bytes::copy_from_slice(value.value()))));
        }
        Ok(out.back().map(|(key, _)| key.clone()))
    }
}

/// Checks the format, and writes it where there is none.
fn check_format(txn: &WriteTransaction) -> Result<(), OpenError> {
    txn.open_table(ROWS).map_err(table_error)?;
    let mut meta = txn.open_table(META).map_err(table_error)?;
    let found = meta.get(FORMAT_KEY).map_err(KvError::from)?.map(|value| value.value());
    match found {
        None => drop(meta.insert(FORMAT_KEY, FORMAT).map_err(KvError::from)?),
        Some(FORMAT | FORMAT_1) => {}
        Some(found) => return Err(OpenError::Format { found, expected: FORMAT }),
    }
    Ok(())
}

fn read_numbers(txn: &WriteTransaction) -> Result<Vec<(String, u8)>, KvError> {
    let tables = txn.open_table(TABLES).map_err(table_error)?;
    let mut numbers = Vec::new();
    for row in tables.iter()? {
        let (name, number) = row?;
        let number =
            u8::try_from(number.value()).map_err(|_| damaged("has a table whose number is out of range"))?;
        numbers.push((name.value().to_owned(), number));
    }
    Ok(numbers)
}

fn write_numbers(txn: &WriteTransaction, numbers: &[(String, u8)]) -> Result<(), KvError> {
    let mut tables = txn.open_table(TABLES).map_err(table_error)?;
    for (name, number) in numbers {
        let known = tables.get(name.as_str())?.map(|known| known.value());
        if known != Some(u64::from(*number)) {
            tables.insert(name.as_str(), u64::from(*number))?;
        }
    }
    Ok(())
}

/// redb takes a file without its magic bytes for one whose creation was interrupted, and creates it anew. That is
/// right only where nothing can have been in it, and where the contents can be the beginning of a redb file.
fn check_beginning(blob: &dyn Blob, is_new: bool) -> Result<(), OpenError> {
    let mut beginning = [0; MAGIC.len()];
    let len = (blob.len()? as usize).min(beginning.len());
    blob.read_at(0, &mut beginning[..len])?;
    let interrupted = beginning.iter().zip(MAGIC).all(|(found, expected)| *found == 0 || found == expected);
    match beginning == *MAGIC || is_new && interrupted {
        true => Ok(()),
        false if is_new => Err(OpenError::NotAStore),
        false => Err(damaged("does not begin as an index").into()),
    }
}

fn damaged(what: impl Into<String>) -> KvError {
    (&Damage::of("index", what)).into()
}

/// Extends the file to whole pages, and makes its length part of the next sync.
///
/// redb refuses a length that is not one of its layouts'. The file has one when a crash came while it grew: a part of a
/// write behind the old end reached the disk, and the new length did not. Nothing there belongs to a checkpoint,
/// whose pages are durable, with the length they need, before it is named. A failed sync, too, may have forgotten a
/// length that the page cache still has and the layout counts on.
fn complete_length(blob: &dyn Blob) -> io::Result<()> {
    match blob.len()? {
        0 => Ok(()),
        len => blob.set_len(len.next_multiple_of(PAGE_LEN)),
    }
}

fn commit(txn: WriteTransaction) -> Result<(), KvError> {
    txn.commit().map_err(|error| match error {
        redb::CommitError::Storage(error) => error.into(),
        other => KvError::Io(Arc::new(io::Error::other(other.to_string()))),
    })
}

fn transaction_error(error: redb::TransactionError) -> KvError {
    match error {
        redb::TransactionError::Storage(error) => error.into(),
        other => KvError::Io(Arc::new(io::Error::other(other.to_string()))),
    }
}

fn table_error(error: redb::TableError) -> KvError {
    match error {
        redb::TableError::Storage(error) => error.into(),
        other => damaged(format!("has a table that cannot be opened: {other}")),
    }
}

const ROWS: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("rows");
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const TABLES: TableDefinition<'static, &str, u64> = TableDefinition::new("tables");
const FORMAT_KEY: &str = "format";
const APPLIED_KEY: &str = "applied";
const LOG_KEY: &str = "log";
const FORMAT: u64 = 2;
/// The log has records without a salt. The base is unchanged.
const FORMAT_1: u64 = 1;
const ROWS_PER_STEP: usize = 256;
/// Each may be on a page of its own, of which a new copy is written.
const ROWS_PER_PIECE: usize = 128;
