//! Vnodes within a transaction: look-up, caching, allocation and release of numbers.

use afs_wire::ids::{Fid, Uniquifier, VnodeId};

use super::VolumeTx;
use crate::error::VolumeError;
use crate::key::{self, FREE, RowId};
use crate::record::VnodeRecord;
use crate::rows::{Rows, damaged};

/// A vnode that this transaction has read.
pub(super) struct HeldVnode {
    record: Option<VnodeRecord>,
    changed: bool,
}

impl VolumeTx<'_, '_> {
    /// The record of a fid. Volume or vnode 0 is `Invalid`, another volume `NoVolume`, a free vnode or a
    /// wrong uniquifier `NoVnode` (`docs/protocol/fileserver.md` "6. Vnodes, modes, versions").
    pub fn vnode(&mut self, fid: Fid) -> Result<VnodeRecord, VolumeError> {
        if fid.volume.0 == 0 || fid.vnode.0 == 0 {
            return Err(VolumeError::Invalid);
        }
        if fid.volume != self.header.id {
            return Err(VolumeError::NoVolume);
        }
        let record = self.held(fid.vnode)?.ok_or(VolumeError::NoVnode)?;
        if record.unique == fid.unique { Ok(record.clone()) } else { Err(VolumeError::NoVnode) }
    }

    /// The record of a directory's fid; anything else is `NotDirectory`.
    pub fn directory(&mut self, fid: Fid) -> Result<VnodeRecord, VolumeError> {
        let record = self.vnode(fid)?;
        if record.is_directory() { Ok(record) } else { Err(VolumeError::NotDirectory) }
    }

    /// The directory whose access list applies to an object: the object if it is a directory, else its
    /// parent.
    pub fn access_directory(&mut self, record: &VnodeRecord) -> Result<VnodeRecord, VolumeError> {
        if record.is_directory() {
            return Ok(record.clone());
        }
        match self.held(record.parent)? {
            Some(parent) if parent.is_directory() => Ok(parent.clone()),
            _ => Err(damaged(record.vnode, "its parent is no directory")),
        }
    }

    /// Holds a changed record until the end of the transaction.
    pub(super) fn put_vnode(&mut self, record: VnodeRecord) {
        self.vnodes.insert(record.vnode, HeldVnode { record: Some(record), changed: true });
    }

    /// The numbers of the objects that this transaction has made, changed or removed so far.
    pub fn changed(&self) -> impl Iterator<Item = VnodeId> + '_ {
        self.vnodes.iter().filter(|(_, held)| held.changed).map(|(vnode, _)| *vnode)
    }

    /// The numbers of the objects that this transaction has looked at so far, those that do not exist too.
    pub fn seen(&self) -> impl Iterator<Item = VnodeId> + '_ {
        self.vnodes.keys().copied()
    }

    /// A record by its number alone, for names found in directories.
    pub(super) fn named(&mut self, vnode: VnodeId, unique: Uniquifier) -> Result<VnodeRecord, VolumeError> {
        match self.held(vnode)? {
            Some(record) if record.unique == unique => Ok(record.clone()),
            _ => Err(damaged(vnode, "a directory names it and it does not exist")),
        }
    }

    /// A record by its number alone, for the background.
    pub(crate) fn by_number(&mut self, vnode: VnodeId) -> Result<Option<VnodeRecord>, VolumeError> {
        Ok(self.held(vnode)?.cloned())
    }

    /// Allocates a number of the class of `like`, reusing the one freed last.
    pub(super) fn allocate_vnode(&mut self, like: VnodeId) -> Result<VnodeId, VolumeError> {
        self.header_changed = true;
        for _ in 0..LOOSE_NUMBERS_MAX {
            let freed = self.header.numbers(like).freed;
            if freed == 0 {
                break;
            }
            let vnode = self.take_freed(VnodeId(freed))?;
            if !self.header.loose_numbers || self.held(vnode)?.is_none() {
                return Ok(vnode);
            }
        }
        let numbers = self.header.numbers(like);
        let vnode = VnodeId(numbers.next);
        // The last numbers of the class are not used, so that the next one never overflows.
        numbers.next = vnode.0.checked_add(2).ok_or(VolumeError::DiskFull)?;
        Ok(vnode)
    }

    /// Takes the first number from the list of its class.
    fn take_freed(&mut self, vnode: VnodeId) -> Result<VnodeId, VolumeError> {
        let key = key::free(self.header.group, vnode);
        let next = self.txn.get(FREE, &key)?.and_then(|next| Some(u32::from_be_bytes(*next.first_chunk()?)));
        let next = next.ok_or_else(|| damaged(vnode, "the chain of free vnodes is broken"))?;
        self.txn.delete(FREE, &key);
        self.header.numbers(vnode).freed = next;
        Ok(vnode)
    }

    /// Deletes a vnode with its data.
    pub(super) fn free_vnode(&mut self, record: &VnodeRecord) -> Result<(), VolumeError> {
        self.drop_content(record)?;
        self.credit(record.blocks());
        self.header.file_count = self.header.file_count.saturating_sub(1);
        self.put_freed(record.vnode)?;
        self.forget_vnode(record.vnode);
        Ok(())
    }

    /// Puts a number into the list of its class.
    pub(super) fn put_freed(&mut self, vnode: VnodeId) -> Result<(), VolumeError> {
        let key = key::free(self.header.group, vnode);
        // A restore may have assigned a number that is still in the list.
        if !self.header.loose_numbers || self.txn.get(FREE, &key)?.is_none() {
            let numbers = self.header.numbers(vnode);
            let next = std::mem::replace(&mut numbers.freed, vnode.0);
            self.txn.put(FREE, &key, next.to_be_bytes().to_vec());
        }
        Ok(())
    }

    /// Marks a vnode as deleted.
    pub(super) fn forget_vnode(&mut self, vnode: VnodeId) {
        self.vnodes.insert(vnode, HeldVnode { record: None, changed: true });
    }

    /// Writes the changed records into the transaction and returns their numbers.
    pub(super) fn put_vnodes(&mut self) -> Result<Vec<VnodeId>, VolumeError> {
        let mut changed = Vec::new();
        for (vnode, held) in std::mem::take(&mut self.vnodes) {
            if held.changed {
                let row = held.record.map(|record| record.encode());
                self.put_row(RowId::Vnode(self.header.group, vnode), row)?;
                changed.push(vnode);
            }
        }
        Ok(changed)
    }

    fn held(&mut self, vnode: VnodeId) -> Result<Option<&VnodeRecord>, VolumeError> {
        if !self.vnodes.contains_key(&vnode) {
            let record = self.txn.vnode_row(self.header.group, vnode, self.header.epoch)?;
            self.vnodes.insert(vnode, HeldVnode { record, changed: false });
        }
        Ok(self.vnodes.get(&vnode).and_then(|held| held.record.as_ref()))
    }
}

/// Most numbers of the list that one transaction finds in use, before it takes an unused one.
const LOOSE_NUMBERS_MAX: usize = 64;
