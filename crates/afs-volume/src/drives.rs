//! Map from drive ids to the drives of a store. Today each store has one.

use std::sync::Arc;

use afs_drive::{BoxFuture, Drive, DriveError, DriveId};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::located::LocatedChunk;

pub(crate) struct Drives {
    own: Arc<dyn Drive>,
}

impl Drives {
    pub(crate) fn new(own: Arc<dyn Drive>) -> Self {
        Self { own }
    }

    /// The drive that takes new chunks.
    pub(crate) fn own(&self) -> &Arc<dyn Drive> {
        &self.own
    }

    /// The drive with an id.
    ///
    /// # Errors
    /// `UnknownDrive` if a row names a drive that the store does not have.
    pub(crate) fn get(&self, id: DriveId) -> Result<&Arc<dyn Drive>, VolumeError> {
        if id == DriveId::OWN { Ok(&self.own) } else { Err(VolumeError::UnknownDrive { drive: id }) }
    }

    /// Starts to read a part of a chunk.
    pub(crate) fn read(
        &self,
        located: LocatedChunk,
        range: std::ops::Range<u32>,
    ) -> Result<BoxFuture<Result<Bytes, DriveError>>, VolumeError> {
        Ok(self.get(located.drive)?.read(located.chunk, range))
    }
}
