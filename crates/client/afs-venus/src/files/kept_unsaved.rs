//! Data whose store failed is kept beyond the end of the mount: its record is made, and dropped when it is settled.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cache::{CacheFile, Ranges, UnsavedRecord, UnsavedTicket};
use crate::data::FileData;
use crate::error::{ErrorKind, VenusError};
use crate::files::kernel_writes::sum_of;
use crate::files::store_retries::KeptRecord;
use crate::files::{Failure, Files, Restored};
use crate::identity::User;
use crate::key::Key;
use crate::vnode::Vnode;

/// Who had what kept: the part of a record that is not in the data.
struct Circumstances<'a> {
    user: User,
    had_token: bool,
    /// If an earlier mount kept it.
    restored: Option<Restored>,
    failure: &'a Failure,
    is_set_aside: bool,
    is_open: bool,
}

impl Files {
    /// Keeps the data of a file that is listed with a failure, if it has changed since it was last kept. Returns when it
    /// is on disk; an error of the disk is logged. `had_token`: the user has a token for the cell, or had one that expired.
    pub async fn keep_unsaved(&self, vnode: &Vnode, data: &Arc<FileData>, had_token: bool) {
        let _guard = data.keeping.lock().await;
        let Some(listed) = self.store_retries.get(vnode.key) else { return };
        let Some(failure) = &listed.failure else { return };
        let changes = data.changes.load(Ordering::SeqCst);
        let is_open = !self.writers_have_closed(data);
        let is_as_kept = |kept: KeptRecord| (kept.changes, kept.is_open) == (changes, is_open);
        if listed.kept.is_some_and(is_as_kept) && !data.backed.load(Ordering::SeqCst) {
            return;
        }
        let (user, had_token) = (listed.user, had_token || listed.restored.is_some_and(|it| it.had_token));
        let restored = listed.restored;
        let circumstances =
            Circumstances { user, had_token, restored, failure, is_set_aside: false, is_open };
        let Some(record) = self.record(vnode, vnode.key, data, &circumstances) else { return };
        let Some(ticket) = self.keep_record(data, record).await else { return };
        if !self.store_retries.set_kept(vnode.key, KeptRecord { ticket, changes, is_open }) {
            self.drop_record(ticket);
        }
    }

    /// Keeps data that was set aside.
    pub async fn keep_set_aside(&self, vnode: &Vnode, number: u64, had_token: bool) {
        let mut all = self.all_set_aside().into_iter();
        let Some(aside) = all.find(|it| it.data.file.id() == number) else { return };
        let (user, failure) = (aside.user, &aside.failure);
        let circumstances =
            Circumstances { user, had_token, restored: None, failure, is_set_aside: true, is_open: false };
        let Some(record) = self.record(vnode, aside.key, &aside.data, &circumstances) else { return };
        let Some(ticket) = self.keep_record(&aside.data, record).await else { return };
        if !self.set_aside.set_kept(number, ticket) {
            self.drop_record(ticket);
        }
    }

    /// Takes a file from the list: its data is settled.
    pub(super) fn unlist(&self, key: Key) {
        let kept = self.store_retries.remove(key).and_then(|listed| listed.kept);
        kept.into_iter().for_each(|kept| self.drop_record(kept.ticket));
    }

    /// Drops the record of settled data, soon.
    pub(super) fn drop_record(&self, ticket: UnsavedTicket) {
        self.dropped_records.lock().push(ticket);
        let drop = self.dropping();
        match self.cache.blocks() {
            true => self.env.blocking(Box::new(drop)),
            false => drop(),
        }
    }

    /// Returns when no record of settled data is left on disk.
    pub async fn records_dropped(&self) {
        let drop = self.dropping();
        let dropping = move || {
            drop();
            Ok(())
        };
        let done = self.disk(dropping).await;
        if let Err(error) = done {
            tracing::warn!(%error, "records of data that is settled stay in the cache");
        }
    }

    /// Work on the disk. A record leaves the list after it is gone: each of two such works has dropped it when it ends.
    fn dropping(&self) -> impl FnOnce() + Send + 'static {
        let (cache, list) = (self.cache.clone(), self.dropped_records.clone());
        move || {
            loop {
                let Some(ticket) = list.lock().first().copied() else { return };
                if let Err(error) = cache.drop_unsaved(ticket) {
                    tracing::warn!(%error, "the record of data that is settled cannot be removed from the cache");
                }
                list.lock().retain(|it| *it != ticket);
            }
        }
    }

    /// The record, without checksums. `None` if there is nothing to keep or it has too many ranges.
    fn record(
        &self,
        vnode: &Vnode,
        key: Key,
        data: &FileData,
        circumstances: &Circumstances<'_>,
    ) -> Option<UnsavedRecord> {
        let status = vnode.state().status;
        let content = data.content();
        let cell = self.cells.name(key.cell)?;
        let Failure { error, since } = circumstances.failure;
        let (error_kind, error_number) = number_of(error);
        let mut dirty = content.dirty.clone();
        content.storing.iter().for_each(|range| dirty.insert(range));
        let known = status.filter(|status| status.data_version == content.version);
        let of_restored = circumstances.restored.filter(|restored| restored.base_version == content.version);
        let base_time =
            known.map(|base| base.client_mod_time).or_else(|| of_restored.and_then(|base| base.base_time));
        let record = UnsavedRecord {
            cell,
            fid: key.fid,
            owner: circumstances.user,
            had_token: circumstances.had_token,
            is_set_aside: circumstances.is_set_aside,
            is_open: circumstances.is_open,
            replaces: 0,
            version: content.version,
            base_length: content.base_length,
            base_time,
            length: content.length,
            cut: content.cut.min(content.base_length),
            changed_at: content.changed_at,
            error_kind,
            error_number,
            server: error.server,
            since: *since,
            present: content.present.clone(),
            holes: content.holes.clone(),
            dirty,
            has_sums: true,
            dirty_sum: 0,
            clean_sum: 0,
        };
        if !record.fits() {
            tracing::error!(fid = %key.fid, "unsaved data has too many ranges to survive the end of the mount");
        }
        (content.is_dirty() && record.fits()).then_some(record)
    }

    async fn keep_record(&self, data: &FileData, mut record: UnsavedRecord) -> Option<UnsavedTicket> {
        let (cache, file, fid) = (self.cache.clone(), data.file.clone(), record.fid);
        let keep = move || {
            record.dirty_sum = sum_of_all(&*file, &record.dirty_data())?;
            record.clean_sum = sum_of_all(&*file, &record.clean_data())?;
            cache.keep_unsaved(&file, &record)
        };
        self.disk(keep).await.unwrap_or_else(|error| {
            tracing::error!(%error, %fid, "unsaved data does not survive the end of the mount: it cannot be kept");
            None
        })
    }
}

fn sum_of_all(file: &dyn CacheFile, ranges: &Ranges) -> std::io::Result<u32> {
    ranges.iter().try_fold(0, |sum, range| sum_of(file, sum, range))
}

/// Numbers of the errors of stores in records on disk.
const KINDS: [(u8, ErrorKind); 13] = [
    (1, ErrorKind::ServerUnreachable),
    (2, ErrorKind::OverQuota),
    (3, ErrorKind::NoSpace),
    (4, ErrorKind::TokenExpired),
    (5, ErrorKind::AccessDenied),
    (6, ErrorKind::NotPermitted),
    (7, ErrorKind::ReadOnly),
    (8, ErrorKind::Stale),
    (9, ErrorKind::LockLost),
    (10, ErrorKind::TooBig),
    (11, ErrorKind::NoVolume),
    (12, ErrorKind::VolumeOffline),
    (13, ErrorKind::VolumeBusy),
];

/// Kind and number of an error in a record: 0 and an errno if the kind has no number.
fn number_of(error: &VenusError) -> (u8, i32) {
    let known = KINDS.iter().find(|(_, kind)| *kind == error.kind);
    known.map_or((0, error.errno()), |(number, _)| (*number, 0))
}

/// The error of a record.
pub(super) fn error_of(record: &UnsavedRecord) -> VenusError {
    let known = KINDS.iter().find(|(number, _)| *number == record.error_kind);
    let kind = known.map_or(ErrorKind::Refused(record.error_number), |(_, kind)| *kind);
    VenusError { server: record.server, ..VenusError::new(kind, "StoreData").of(record.fid) }
}
