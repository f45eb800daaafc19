//! Guard of a written chunk until its writer has the reference.

use crate::chunk::ChunkRef;
use crate::drive::Drive;
use crate::error::DriveError;

/// A chunk whose writer does not know its id yet. It is discarded if this is dropped before [`Unclaimed::claim`], as
/// happens when the writer drops the future of [`Drive::write`].
#[derive(Debug)]
pub struct Unclaimed<D: Drive> {
    chunk: Option<ChunkRef>,
    drive: D,
}

impl<D: Drive> Unclaimed<D> {
    /// The guard of a chunk on a drive.
    pub fn new(chunk: ChunkRef, drive: D) -> Self {
        Self { chunk: Some(chunk), drive }
    }

    /// Hands the chunk to its writer.
    ///
    /// # Errors
    /// None of this type's own: the result has the form that [`Drive::write`] returns.
    pub fn claim(mut self) -> Result<ChunkRef, DriveError> {
        self.chunk.take().ok_or(DriveError::Closed)
    }
}

impl<D: Drive> Drop for Unclaimed<D> {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            drop(self.drive.discard(vec![chunk]));
        }
    }
}
