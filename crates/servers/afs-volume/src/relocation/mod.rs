//! Relocation: moves chunks to another drive in the background.
//!
//! A step plans some chunks in one snapshot, copies them, makes the copies durable, and exchanges the references in one
//! transaction where they still are what was copied ([`crate::exchange`]). The old chunks are then discarded like any others,
//! when no reader is left. A crash before the transaction leaves copies that nothing refers to, which the next sweep frees.
//! Contents, data versions and quotas stay as they are. A chunk that several volumes share is moved once, for all of them.

mod moving;
mod plan;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_drive::DriveId;
use afs_wire::ids::{Fid, VolumeId};

use crate::copies;
use crate::data_walk::DataWalk;
use crate::error::VolumeError;
use crate::ids::SlotIndex;
use crate::store::VolumeStore;
use moving::Copies;
use plan::Plan;

/// A move of data in progress. It has no state on disk: one that is begun anew passes over what was moved before.
#[derive(Clone, Debug)]
pub struct Relocation {
    what: What,
    to: DriveId,
}

/// What is moved, and where the next step continues.
#[derive(Clone, Debug)]
enum What {
    /// All chunks on a drive.
    Drive(DriveId, DataWalk),
    /// The chunks of one file that are on other drives.
    File(Fid, SlotIndex),
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relocated {
    /// Whether the last step of a pass is done; the next begins again.
    pub complete: bool,
    /// Rows of vnodes and slots that were read.
    pub rows: u64,
    /// Chunks that were moved.
    pub chunks: u64,
    /// Bytes that were copied, also of chunks that were not moved.
    pub bytes: u64,
    /// Chunks that were not moved, because their file changed meanwhile.
    pub changed: u64,
    /// Chunks and rows that were not moved because they are damaged; a scrub tells which.
    pub bad: u64,
}

impl Relocation {
    /// Of all chunks of the store on `from`, and no copies there any longer: those of all files of all volumes, clones included, as their rows are when the step
    /// meets them. What is stored to `from` meanwhile may be missed.
    pub fn of_drive(from: DriveId, to: DriveId) -> Self {
        Self { what: What::Drive(from, DataWalk::default()), to }
    }

    /// Of the chunks of one file, which clones may share, from any other drive.
    pub fn of_file(file: Fid, to: DriveId) -> Self {
        Self { what: What::File(file, SlotIndex(0)), to }
    }
}

impl VolumeStore {
    /// Moves about `bytes` of chunks, at least those of one mebibyte of a file, and keeps the position in `relocation`. At most
    /// four chunks are in memory at a time. After an error the position is that of before, and the step can be repeated.
    ///
    /// # Errors
    /// `UnknownDrive`; `NoVolume` or `NoVnode` for a file that is not there; errors of the two drives and the index. Damaged
    /// chunks are counted, and stay where they are.
    pub async fn relocate_step(
        &self,
        relocation: &mut Relocation,
        bytes: u64,
    ) -> Result<Relocated, VolumeError> {
        let to = (relocation.to, self.store.drives.get(relocation.to)?);
        let mut what = relocation.what.clone();
        let (plan, _lease) = {
            let snapshot = self.store.kv.snapshot();
            // Protects the chunks until they are copied.
            let lease = self.store.leases.take(snapshot.sequence(), self.store.work.clone());
            (Plan::new(self, &snapshot, &mut what, relocation.to, bytes)?, lease)
        };
        let Plan { chunks, mut report, .. } = plan;
        let mut copies = Copies::new(self.store.clone(), to);
        copies.write(chunks, &mut report).await?;
        copies.finish(&mut report).await?;
        if let (What::Drive(from, _), true) = (&what, report.complete) {
            self.release_copies(*from).await?;
        }
        relocation.what = what;
        Ok(report)
    }

    /// Gives up the copies on a drive, in bounded transactions. A rebuild makes others, where they are wanted.
    async fn release_copies(&self, drive: DriveId) -> Result<(), VolumeError> {
        if !self.store.has_copies.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut after = None;
        loop {
            let store = self.store.clone();
            let released = self.store.kv.update(move |txn| {
                txn.before_visible(move |_| store.work.notify_one());
                copies::release_on(txn, drive, after)
            });
            after = released.await?;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The volume of a relocation of one file.
    fn volume_of(&self, volume: VolumeId) -> Result<Arc<crate::volume::Volume>, VolumeError> {
        self.volume(volume).ok_or(VolumeError::NoVolume)
    }
}
