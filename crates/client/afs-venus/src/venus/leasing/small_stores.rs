//! Close of a file that was made under a lease: its bytes go into the journal. Those of a small file go with the creation, if that was not
//! sent, or are a change of a list; those of a longer one are sent by a store of their own, between two lists. So do those of a small file at
//! its fsync while something about it waits there, which is sent then.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::{self, Change, FileKind, SMALL_DATA_MAX, SetStatus, SmallData, Status};
use afs_wire::ids::{DataVersion, Fid, FileTime};
use bytes::Bytes;

use super::plan::is_plain;
use crate::counters::{add, count};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::leases::{Decided, Entry, Lease, New, SmallFile, WHOLE_MAX, WholeStore};
use crate::promises::ChangeReply;
use crate::venus::Venus;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

impl Venus {
    /// Stores the data of a closed file in the journal of its lease. Returns false if an ordinary store has to do it.
    pub(in crate::venus) async fn store_under_lease(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<bool> {
        let Some(lease) = self.leases.of(vnode.key, self.now()) else { return Ok(false) };
        let longest = match reason {
            StoreReason::Close | StoreReason::Release => WHOLE_MAX,
            // It is sent at once: with what waits it costs no call of its own.
            StoreReason::Sync if self.leases.concern(vnode.key) => SMALL_DATA_MAX as u64,
            _ => return Ok(false),
        };
        if !vnode.state().locks.is_empty() {
            return Ok(false);
        }
        let _length = data.change_lock.block_cuts().await;
        let _quiet = data.change_lock.block_changes().await;
        let Some(length) = whole_length(data, longest) else { return Ok(false) };
        let cost = length.next_multiple_of(1024);
        if !lease.has(cost, New::Nothing) {
            Box::pin(self.borrow_more(&lease, cost, New::Nothing)).await;
        }
        let bytes = self.whole(data, length).await?;
        let time = data.content().changed_at.unwrap_or(self.time());
        let Some(status) = self.journal_data(&lease, vnode, data, bytes.clone(), time) else {
            return Ok(false);
        };
        add(&self.counters.bytes_stored, length);
        self.send_soon(&lease);
        self.note_sums(data, &bytes);
        data.content().was_stored(status.data_version);
        data.stored_unsynced.store(reason != StoreReason::Sync, Ordering::SeqCst);
        *data.ready.lock() = None;
        let serial = self.promises.serial();
        self.promises.record_change(
            &lease.volume,
            vnode,
            &ChangeReply { status: &status, sync: &lease.sync, serial },
        );
        // Not the time of the close, at which nothing changes for programs of this machine; and none that a program has set.
        vnode.state().decided_at = time.min(self.time());
        self.files.clear_store_retry(vnode.key);
        self.after_store(vnode, data);
        Ok(true)
    }

    /// All bytes of a file in the cache.
    async fn whole(&self, data: &Arc<FileData>, length: u64) -> Result<Bytes> {
        let ready = data.ready.lock().clone();
        if let Some(bytes) = ready.filter(|bytes| bytes.len() as u64 == length) {
            return Ok(bytes);
        }
        let file = data.file.clone();
        let bytes = self.files.disk_moving(length, move || file.read_at(0, length as usize)).await?;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(VenusError::new(ErrorKind::Cache, "StoreData")),
        }
    }

    /// The checksum by which a later write through a mapping is noticed.
    fn note_sums(&self, data: &FileData, bytes: &Bytes) {
        data.change_sums(|sums| {
            sums.forget(0..u64::MAX);
            if data.content().uses.passthrough() > 0 {
                sums.insert(0..bytes.len() as u64, crc32c::crc32c(bytes));
            }
        });
    }

    /// Adds the bytes to the journal, and returns the status that the file has with them.
    fn journal_data(
        &self,
        lease: &Arc<Lease>,
        vnode: &Arc<Vnode>,
        data: &FileData,
        bytes: Bytes,
        time: FileTime,
    ) -> Option<Status> {
        let version = data.content().version;
        let status = vnode.fresh_status(&lease.volume, self.now());
        let status = status.filter(|status| status.data_version == version)?;
        let (key, user, length) = (vnode.key, self.context.user, bytes.len() as u64);
        let is_pushed = match SmallData::new(&bytes[..]) {
            Ok(data) => {
                let file = SmallFile { key, user, data: &data, time };
                lease.push_data(&file, || self.store_entry(vnode, version, &file))
            }
            Err(_) => lease.push_store(key, bytes.len(), || self.whole_entry(vnode, version, bytes, time)),
        };
        if !is_pushed {
            return None;
        }
        Some(Status { data_version: version.next(), length, client_mod_time: time, ..status })
    }
}

impl Venus {
    /// The bytes as a change of their own.
    fn store_entry(&self, vnode: &Arc<Vnode>, expected: DataVersion, file: &SmallFile<'_>) -> Entry {
        let status = SetStatus { mod_time: Some(file.time), ..SetStatus::default() };
        let (fid, data, cost) = (vnode.key.fid, file.data.clone(), file.cost());
        let store = fs::StoreSmall { fid, status, expected, position: 0, file_length: 0, data };
        Entry { cost, ..self.entry_of_object(vnode, Decided::Change(Change::Store(store))) }
    }

    /// The bytes as a store of their own.
    fn whole_entry(&self, vnode: &Arc<Vnode>, expected: DataVersion, data: Bytes, time: FileTime) -> Entry {
        let status = SetStatus { mod_time: Some(time), ..SetStatus::default() };
        let cost = (data.len() as u64).next_multiple_of(1024);
        let store = WholeStore { fid: vnode.key.fid, status, expected, data };
        Entry { cost, ..self.entry_of_object(vnode, Decided::Store(store)) }
    }

    /// A change of an object that was made under the lease.
    fn entry_of_object(&self, vnode: &Arc<Vnode>, decided: Decided) -> Entry {
        Entry {
            user: self.context.user,
            since: self.now(),
            object: Fid::default(),
            time: self.time_after([vnode]),
            decided,
            vnode: vnode.clone(),
            dirs: Vec::new(),
            unlinked: None,
            concerns: vec![vnode.key],
            cost: 0,
        }
    }

    /// Changes mode and time of an object that was made under a lease, in its journal. Returns false if a call has to do it.
    pub(in crate::venus) async fn set_under_lease(
        &self,
        vnode: &Arc<Vnode>,
        set: &SetStatus,
    ) -> Result<bool> {
        let Some(lease) = self.leases.of(vnode.key, self.now()).filter(|lease| lease.dir != vnode.key) else {
            return Ok(false);
        };
        if !is_plain(set) {
            return Ok(false);
        }
        self.require_write(vnode).await?;
        let Some(status) = vnode.fresh_status(&lease.volume, self.now()) else { return Ok(false) };
        if status.kind == FileKind::Symlink {
            return Ok(false);
        }
        let status = Status {
            mode: set.mode.unwrap_or(status.mode),
            client_mod_time: set.mod_time.unwrap_or(status.client_mod_time),
            ..status
        };
        let request = fs::StoreStatus { fid: vnode.key.fid, status: *set };
        let alone = || self.entry_of_object(vnode, Decided::Change(Change::StoreStatus(request)));
        if !lease.push_status(vnode.key, self.context.user, set, alone) {
            return Ok(false);
        }
        count(&self.counters.changes_decided);
        self.send_soon(&lease);
        let change = ChangeReply { status: &status, sync: &lease.sync, serial: self.promises.serial() };
        self.promises.record_change(&lease.volume, vnode, &change);
        self.decided_at(self.time_after([vnode]), [vnode.key]);
        Ok(true)
    }
}

/// The length of a file that may be stored under a lease: all of it cached, without holes, and at most `longest` bytes.
fn whole_length(data: &FileData, longest: u64) -> Option<u64> {
    let content = data.content();
    let fits = content.length > 0 && content.length <= longest;
    (fits && content.is_complete() && content.holes.is_empty()).then_some(content.length)
}
