//! Set of volume headers within a transaction that changes more than one volume.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afs_kv::Txn;
use afs_wire::ids::VolumeId;

use super::{Group, epochs};
use crate::error::VolumeError;
use crate::header::{VolumeHeader, decode_header};
use crate::key::{self, HEADERS, WORK};
use crate::location::Location;
use crate::series;
use crate::store::Store;

/// The headers that the transaction changes, and their references to epochs.
pub(crate) struct Members<'t, 'a> {
    pub(crate) txn: &'t mut Txn<'a>,
    pub(super) store: &'t Arc<Store>,
    /// `None` for a volume that is deleted.
    changed: BTreeMap<VolumeId, Option<VolumeHeader>>,
    /// Volumes whose state was passed to a clone.
    frozen: BTreeSet<VolumeId>,
    work: bool,
}

impl<'t, 'a> Members<'t, 'a> {
    pub(crate) fn new(txn: &'t mut Txn<'a>, store: &'t Arc<Store>) -> Self {
        Self { txn, store, changed: BTreeMap::new(), frozen: BTreeSet::new(), work: false }
    }

    /// A volume's header as of this transaction.
    pub(crate) fn header(&self, id: VolumeId) -> Result<VolumeHeader, VolumeError> {
        match self.changed.get(&id) {
            Some(header) => header.clone().ok_or(VolumeError::NoVolume),
            None => {
                let stored = self.txn.get(HEADERS, &key::volume(id))?.ok_or(VolumeError::NoVolume)?;
                decode_header(stored)
            }
        }
    }

    pub(crate) fn exists(&self, id: VolumeId) -> Result<bool, VolumeError> {
        match self.header(id) {
            Ok(_) => Ok(true),
            Err(VolumeError::NoVolume) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn put(&mut self, header: VolumeHeader) {
        self.changed.insert(header.id, Some(header));
    }

    /// As [`Members::put`], for a volume that continues in a new epoch with the content of the one that its
    /// clone has now.
    pub(super) fn put_frozen(&mut self, header: VolumeHeader) {
        self.frozen.insert(header.id);
        self.put(header);
    }

    /// Removes a volume from its group.
    pub(crate) fn remove(&mut self, id: VolumeId) -> Result<(), VolumeError> {
        let header = self.header(id)?;
        self.changed.insert(id, None);
        series::end_all(self.txn, id)?;
        self.leave(&header)
    }

    /// Removes a volume's role as the group's writer, and its reference.
    pub(crate) fn leave(&mut self, header: &VolumeHeader) -> Result<(), VolumeError> {
        let mut group = Group::load(self.txn, header.group)?;
        if group.writer == Some(header.id) {
            group.writer = None;
            group.save(self.txn, header.group);
        }
        self.release(Location::of(header))
    }

    /// Removes one reference to an epoch. After the last, the background deletes the epoch, and the group's
    /// writer no longer preserves anything for it.
    pub(crate) fn release(&mut self, location: Location) -> Result<(), VolumeError> {
        if !epochs::release(self.txn, location)? {
            return Ok(());
        }
        self.work(location);
        self.refresh_writer(location)
    }

    /// Queues background work for the group.
    pub(crate) fn work(&mut self, location: Location) {
        self.txn.put(WORK, &key::group(location.group), Vec::new());
        self.work = true;
    }

    fn refresh_writer(&mut self, location: Location) -> Result<(), VolumeError> {
        let Some(writer) = Group::load(self.txn, location.group)?.writer else { return Ok(()) };
        let mut header = self.header(writer)?;
        let newest = epochs::newest_held_before(self.txn, Location::of(&header))?;
        if header.newest_clone != newest {
            header.newest_clone = newest;
            self.put(header);
        }
        Ok(())
    }

    /// Writes the headers into the transaction. They become visible when it is durable.
    pub(crate) fn finish(self) {
        let Self { txn, store, changed, frozen, work } = self;
        for (id, header) in &changed {
            match header {
                Some(header) => txn.put(HEADERS, &key::volume(*id), header.encode()),
                None => txn.delete(HEADERS, &key::volume(*id)),
            }
        }
        let store = store.clone();
        txn.before_visible(move |sequence| {
            for (id, header) in changed {
                store.show(id, header, sequence, frozen.contains(&id));
            }
            if work {
                store.work.notify_one();
            }
        });
    }
}
