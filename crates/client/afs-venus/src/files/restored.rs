//! Data that an earlier mount kept becomes dirty data again: copied, compared with its record, listed or set aside.

use std::io;
use std::sync::Arc;

use crate::cache::{CacheFile, CacheStore, Ranges, UnsavedRecord, UnsavedTicket};
use crate::data::{Content, FileData};
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::kept_unsaved::error_of;
use crate::files::store_retries::KeptRecord;
use crate::files::{Failure, Files, Restored, SetAside, StoreRetry, is_current};
use crate::key::Key;
use crate::vnode::Vnode;
use afs_wire::ids::CellName;

/// Bytes that are copied at once.
const PIECE: u64 = 256 << 10;

/// A copy of data that an earlier mount kept.
pub(crate) struct RestoredCopy {
    pub key: Key,
    data: Arc<FileData>,
    record: UnsavedRecord,
    ticket: UnsavedTicket,
    /// The bytes are those of the record.
    is_intact: bool,
}

/// Outcome of the copy of such data.
pub(crate) enum CopiedKept {
    Copy(Box<RestoredCopy>),
    /// The mount does not know the cell.
    UnknownCell(CellName),
}

impl Files {
    /// What earlier mounts kept, by number. Of data that was being copied when such a mount ended, the copy.
    pub async fn kept_by_earlier_mounts(&self) -> Result<Vec<UnsavedTicket>> {
        let cache = self.cache.clone();
        self.disk(move || without_replaced(&*cache)).await
    }

    /// Copies such data into a new cache file, which nothing else can change, and keeps that in its place. Data of a cell that this mount
    /// does not know stays as it is. `None`: there is nothing to keep.
    ///
    /// # Errors
    /// The record is damaged, or the disk failed or is full: the data stays where it is.
    pub async fn copy_kept(&self, kept: UnsavedTicket) -> Result<Option<CopiedKept>> {
        let (cache, cells) = (self.cache.clone(), self.cells.clone());
        let copied = self
            .disk(move || {
                let (old, record) = cache.open_unsaved(kept)?;
                let Some(cell) = cells.index(record.cell.as_str()) else {
                    return Ok(Err(Some(record.cell)));
                };
                cache.make_room(record.dirty_data().bytes() + record.clean_data().bytes());
                let (file, record, is_intact) = copied(&*cache, &*old, record)?;
                if !is_intact {
                    tracing::error!("{} is damaged: what is left is kept aside", cache.unsaved_place(kept));
                }
                let record = UnsavedRecord { replaces: kept.number, ..record };
                let Some(ticket) = cache.keep_unsaved(&file, &record)? else { return Ok(Err(None)) };
                cache.drop_unsaved(kept)?;
                Ok(Ok((cell, file, record, ticket, is_intact)))
            })
            .await?;
        Ok(match copied {
            Ok((cell, file, record, ticket, is_intact)) => {
                let data = Arc::new(FileData::new(file, content_of(&record)));
                let key = Key::new(cell, record.fid);
                Some(CopiedKept::Copy(Box::new(RestoredCopy { key, data, record, ticket, is_intact })))
            }
            Err(unknown) => unknown.map(CopiedKept::UnknownCell),
        })
    }

    /// Makes a copy the current data of its file, listed for a retry, or sets it aside if it may not be stored, or if
    /// programs have changed the file meanwhile. Returns false if it was set aside.
    pub fn restore(&self, vnode: &Vnode, copy: RestoredCopy) -> bool {
        let RestoredCopy { key, data, record, ticket, is_intact } = copy;
        let may_store = is_intact && !record.is_set_aside && !record.is_open;
        let since = record.since;
        if may_store && self.make_current(vnode, &data) {
            let entry = StoreRetry {
                user: record.owner,
                failure: Some(Failure { error: error_of(&record), since }),
                kept: Some(KeptRecord { ticket, changes: 0, is_open: false }),
                restored: Some(Restored {
                    had_token: record.had_token,
                    base_version: record.version,
                    base_length: record.base_length,
                    base_time: record.base_time,
                }),
            };
            self.store_retries.restore(key, entry);
            return true;
        }
        let error = match is_intact && !record.is_open {
            true => error_of(&record),
            false => VenusError::new(ErrorKind::ShutDown, "while it was open for writing").of(record.fid),
        };
        self.add_aside(SetAside {
            key,
            user: record.owner,
            failure: Failure { error, since },
            data,
            kept: Some(ticket),
        });
        false
    }

    fn make_current(&self, vnode: &Vnode, data: &Arc<FileData>) -> bool {
        let mut state = vnode.state();
        if state.file.is_orphan() {
            return false;
        }
        let is_changed = |current: &Arc<FileData>| {
            let content = current.content();
            content.is_dirty() || content.uses.writers() > 0
        };
        if state.file.data().is_some_and(is_changed) {
            return false;
        }
        let replaced = state.file.replace_data(data);
        debug_assert!(is_current(&state, data));
        drop(state);
        drop(replaced);
        true
    }
}

/// All that was kept, without the originals of complete copies.
fn without_replaced(cache: &dyn CacheStore) -> io::Result<Vec<UnsavedTicket>> {
    let mut all = cache.unsaved();
    let replaced: Vec<u64> = all
        .iter()
        .filter_map(|ticket| cache.open_unsaved(*ticket).ok())
        .map(|(_, record)| record.replaces)
        .collect();
    for ticket in all.extract_if(.., |ticket| replaced.contains(&ticket.number)) {
        cache.drop_unsaved(ticket)?;
    }
    Ok(all)
}

/// The copy in a new cache file, and whether what no server has is as recorded. Other data that is not is left out.
fn copied(
    cache: &dyn CacheStore,
    old: &dyn CacheFile,
    mut record: UnsavedRecord,
) -> io::Result<(Arc<dyn CacheFile>, UnsavedRecord, bool)> {
    let file = cache.create()?;
    file.set_len(record.length)?;
    let sum = copy(old, &*file, &record.dirty_data())?;
    if !record.has_sums {
        (record.has_sums, record.dirty_sum) = (true, sum);
    }
    let is_intact = sum == record.dirty_sum;
    let clean = record.clean_data();
    if copy(old, &*file, &clean)? != record.clean_sum {
        for range in clean.iter() {
            file.zero(range.start, range.end - range.start)?;
            record.present.remove(range);
        }
        record.clean_sum = 0;
    }
    Ok((file, record, is_intact))
}

/// Copies ranges and returns the checksum of the bytes. Ends at the end of the old file.
fn copy(old: &dyn CacheFile, new: &dyn CacheFile, ranges: &Ranges) -> io::Result<u32> {
    let mut sum = 0;
    for range in ranges.iter() {
        let mut at = range.start;
        while at < range.end {
            let bytes = old.read_at(at, (range.end - at).min(PIECE) as usize)?;
            if bytes.is_empty() {
                break;
            }
            new.write_at(at, &bytes)?;
            sum = crc32c::crc32c_append(sum, &bytes);
            at += bytes.len() as u64;
        }
    }
    Ok(sum)
}

fn content_of(record: &UnsavedRecord) -> Content {
    Content {
        length: record.length,
        present: record.present.clone(),
        holes: record.holes.clone(),
        dirty: record.dirty.clone(),
        cut: record.cut,
        resized: true,
        changed_at: record.changed_at,
        ..Content::new(record.version, record.base_length)
    }
}
