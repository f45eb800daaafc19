//! Rows of lent vnode numbers: each may become one object, until it is taken back.

use afs_wire::ids::{Fid, Uniquifier, VnodeId};

use super::VolumeTx;
use crate::error::VolumeError;
use crate::key::{self, LENT};
use crate::lent;

/// Most numbers that one [`VolumeTx::lend`] lends.
pub const LENT_MAX: usize = 256;

impl VolumeTx<'_, '_> {
    /// Lends numbers for files (and links) and for directories, each with a uniquifier: nothing else gets them until they are
    /// taken back. Opening the store takes back all that were not used.
    ///
    /// # Errors
    /// `Invalid` for no numbers, or more than [`LENT_MAX`]; `DiskFull` if the numbers are used up.
    pub fn lend(&mut self, files: usize, directories: usize) -> Result<Vec<Fid>, VolumeError> {
        let count = files.saturating_add(directories);
        if count == 0 || count > LENT_MAX {
            return Err(VolumeError::Invalid);
        }
        let classes = std::iter::repeat_n(VnodeId(2), files);
        classes
            .chain(std::iter::repeat_n(VnodeId(1), directories))
            .map(|class| self.lend_one(class))
            .collect()
    }

    fn lend_one(&mut self, class: VnodeId) -> Result<Fid, VolumeError> {
        let vnode = self.allocate_vnode(class)?;
        let unique = Uniquifier(self.header.take_unique());
        self.txn.put(LENT, &key::lent(self.header.group, vnode), unique.0.to_be_bytes().to_vec());
        Ok(Fid { volume: self.header.id, vnode, unique })
    }

    /// The next object that this transaction creates becomes `fid`, which was lent. The creation fails with `NotLent` if it
    /// was not, was used or was taken back, and with `Invalid` if the number is of the other class.
    pub fn number_next(&mut self, fid: Fid) {
        self.number = Some(fid);
    }

    /// The number and uniquifier of a new object.
    pub(super) fn new_number(&mut self, class: VnodeId) -> Result<(VnodeId, Uniquifier), VolumeError> {
        let Some(fid) = self.number.take() else {
            return Ok((self.allocate_vnode(class)?, Uniquifier(self.header.take_unique())));
        };
        if fid.vnode.is_directory() != class.is_directory() {
            return Err(VolumeError::Invalid);
        }
        // A restore may have assigned the number meanwhile.
        if !self.end_loan(fid)? || self.by_number(fid.vnode)?.is_some() {
            return Err(VolumeError::NotLent);
        }
        Ok((fid.vnode, fid.unique))
    }

    /// Takes back those of the numbers that are lent and were not used; the others are left alone. Returns how many.
    pub fn take_back(&mut self, fids: &[Fid]) -> Result<usize, VolumeError> {
        let mut taken = 0;
        for fid in fids {
            if self.end_loan(*fid)? {
                self.reuse(fid.vnode)?;
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Removes a number from those that are lent; false if it is not.
    fn end_loan(&mut self, fid: Fid) -> Result<bool, VolumeError> {
        let key = key::lent(self.header.group, fid.vnode);
        let lent = self.txn.get(LENT, &key)?.is_some_and(|row| lent::unique(&row) == Some(fid.unique));
        let lent = lent && fid.volume == self.header.id;
        if lent {
            self.txn.delete(LENT, &key);
        }
        Ok(lent)
    }

    /// Puts a number that was lent into the list of freed ones, unless it is in use. A clone that became the writer may not
    /// have got as far as the number.
    fn reuse(&mut self, vnode: VnodeId) -> Result<(), VolumeError> {
        if vnode.0 < self.header.numbers(vnode).next && self.by_number(vnode)?.is_none() {
            self.header_changed = true;
            self.put_freed(vnode)?;
        }
        Ok(())
    }
}
