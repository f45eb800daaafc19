//! Transaction on one volume, as part of a commit.

mod content;
mod create;
mod cut;
mod directory;
mod image;
mod lent;
mod link;
mod names;
mod quota;
mod remove;
mod rename;
mod rows;
mod series;
mod status;
mod store_data;
mod vnodes;

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_kv::Txn;
use afs_wire::ids::{DataVersion, Fid, FileTime, UnixSeconds, ViceId, VnodeId, VolumeId};

use crate::error::VolumeError;
use crate::header::{VolumeHeader, decode_header};
use crate::ids::ContentId;
use crate::key::{self, HEADERS};
use crate::record::VnodeRecord;
use crate::store::Store;

pub use create::Created;
pub use lent::LENT_MAX;
pub use link::Linked;
pub use remove::{Object, Removed};
pub use rename::{Rename, Renamed, Replacing};
pub use store_data::StoreData;

use directory::HeldPages;
use vnodes::HeldVnode;

/// How far ahead of the server's a client's clock may be with the times of its changes still being told, in nanoseconds.
const CLOCKS_DIFFER_MAX: u64 = 60_000_000_000;

/// The user who makes a change, as far as the store's own rules depend on it. Access is decided by the
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Becomes owner of new objects and author of changed data.
    pub id: ViceId,
    /// May set bits and owners that other users may not.
    pub administrator: bool,
}

/// One volume within a transaction. It sees all earlier changes; its own become durable and visible together,
/// or not at all if the closure returns an error.
///
/// The closure runs on the store's writer while others wait: it must not block.
pub struct VolumeTx<'t, 'a> {
    txn: &'t mut Txn<'a>,
    store: &'t Arc<Store>,
    header: VolumeHeader,
    header_changed: bool,
    /// The present, of which a user is told.
    time: FileTime,
    /// The time of this change, by which later ones are told apart from it.
    now: FileTime,
    /// What the next new object becomes, if that was lent.
    number: Option<Fid>,
    /// When a client made the changes from here on, if that was before they came.
    made_at: Option<FileTime>,
    vnodes: BTreeMap<VnodeId, HeldVnode>,
    pages: BTreeMap<ContentId, HeldPages>,
    /// Whether there is background work once this is durable.
    work: bool,
}

impl<'t, 'a> VolumeTx<'t, 'a> {
    pub(crate) fn begin(
        txn: &'t mut Txn<'a>,
        store: &'t Arc<Store>,
        id: VolumeId,
    ) -> Result<Self, VolumeError> {
        let stored = txn.get(HEADERS, &key::volume(id))?.ok_or(VolumeError::NoVolume)?;
        Ok(Self::with(txn, store, decode_header(stored)?))
    }

    pub(crate) fn with(txn: &'t mut Txn<'a>, store: &'t Arc<Store>, header: VolumeHeader) -> Self {
        let time = store.time();
        Self {
            txn,
            store,
            time,
            // Increments by date and releases find what changed after a clone, which may be ahead of the clock.
            now: time.max(header.clone_date.into()),
            header,
            header_changed: false,
            number: None,
            made_at: None,
            vnodes: BTreeMap::new(),
            pages: BTreeMap::new(),
            work: false,
        }
    }

    /// The changes from here on were made by a client, at `at`: directories and objects have it as their time of change, by the rule of
    /// data (see `note_change_of`), and directories as their modification time.
    pub fn made_at(&mut self, at: FileTime) {
        self.made_at = Some(at);
    }

    /// Notes the time of a change that this server makes at the present, or that was made before it came.
    pub(crate) fn note_change(&self, record: &mut VnodeRecord) {
        self.note_change_of(record, self.made_at);
    }

    /// The modification time of what changes without one that a user has set: that of the change that was just noted.
    pub(crate) fn modified_at(&self, record: &VnodeRecord) -> FileTime {
        self.made_at.filter(|at| *at == record.change_time).unwrap_or(self.time)
    }

    /// Notes the time of a change that a client made to data, or to a new object, at `at`. That is the time shown, so that the file has the same before and
    /// after the store. Unless it is no later than the one known, as when a program has set a time of before, or so late that the client's
    /// clock must be wrong: then it is the present. It never goes back, since clients tell older replies by it.
    pub(crate) fn note_change_of(&self, record: &mut VnodeRecord, at: Option<FileTime>) {
        record.server_mod_time = self.now;
        let latest = self.time.after(CLOCKS_DIFFER_MAX);
        // The first data of a file may have come with its creation.
        let earliest = if record.data_version <= DataVersion(1) {
            record.change_time
        } else {
            record.change_time.after(1)
        };
        let at = at.filter(|at| (earliest..=latest).contains(at));
        record.change_time = at.unwrap_or(self.time.max(record.change_time.after(1)));
    }

    /// The time of this change.
    pub fn now(&self) -> UnixSeconds {
        self.now.seconds()
    }

    /// The volume's header as of this transaction.
    pub fn header(&self) -> &VolumeHeader {
        &self.header
    }

    /// Changes the header: quota, name, dates, messages, the online switch.
    pub fn edit_header(&mut self) -> &mut VolumeHeader {
        self.header_changed = true;
        &mut self.header
    }

    /// Changes what replicas have of the header too: the next release sees a change of the volume.
    pub fn edit_replicated(&mut self) -> &mut VolumeHeader {
        self.header.update_date = self.header.update_date.max(self.now());
        self.edit_header()
    }

    pub(crate) fn txn(&self) -> &Txn<'a> {
        self.txn
    }

    /// Whether the volume is read-write, and not being restored.
    pub(crate) fn check_takes_changes(&self) -> Result<(), VolumeError> {
        if !self.header.is_writable() {
            return Err(VolumeError::ReadOnly);
        }
        self.check_not_staged()
    }

    /// Refuses the change while a restore is in progress.
    pub(crate) fn check_not_staged(&self) -> Result<(), VolumeError> {
        if self.store.is_restoring(self.header.id) { Err(VolumeError::Busy) } else { Ok(()) }
    }

    /// Writes all changes into the transaction except the header, which is not visible yet.
    pub(crate) fn finish_staged(mut self) -> Result<VolumeHeader, VolumeError> {
        self.put_vnodes()?;
        self.put_pages()?;
        Ok(self.header)
    }

    /// Writes all changes into the transaction.
    pub(crate) fn finish(mut self) -> Result<(), VolumeError> {
        let changed = self.put_vnodes()?;
        self.put_pages()?;
        let (id, store) = (self.header.id, self.store.clone());
        let header = self.header_changed.then(|| {
            self.txn.put(HEADERS, &key::volume(id), self.header.encode());
            self.header
        });
        if changed.is_empty() && header.is_none() && !self.work {
            return Ok(());
        }
        let work = self.work;
        self.txn.before_visible(move |sequence| {
            for vnode in changed {
                store.cache.invalidate(id, vnode, sequence);
            }
            if let Some(header) = header {
                store.show(id, Some(header), sequence, false);
            }
            if work {
                store.work.notify_one();
            }
        });
        Ok(())
    }
}
