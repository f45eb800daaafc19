//! Stores of a client at a drive: chunks are staged in a room, which the file server claims.

use afs_drive::ChunkRef;
use bytes::Bytes;

use super::{Client, Handle};
use crate::capability::TransferId;
use crate::frame::{ChunkReply, ChunkRequest, Content};
use crate::session::{Error, Lost};

impl Client {
    /// Stages a chunk of 1 to [`STAGED_LEN_MAX`](crate::frame::STAGED_LEN_MAX) bytes by the capability of a room. The reference is
    /// compared with the bytes: the drive has got what is here. It is not durable before the file server has claimed it.
    ///
    /// # Errors
    /// As [`Client::perform`]; [`Failure::NoSpace`](crate::frame::Failure::NoSpace),
    /// [`Failure::Busy`](crate::frame::Failure::Busy); [`Lost::Violation`] for the reference of other bytes.
    pub async fn stage(&self, handle: &Handle, bytes: Bytes) -> Result<ChunkRef, Error> {
        let content = Content::of(&bytes);
        self.staged(handle, ChunkRequest::Stage { length: content.length }, content, bytes).await
    }

    /// Stages a chunk as [`Client::stage`] does, by the capability of a room in which each is commanded: as soon as the file server has
    /// commanded, or commands while this waits, a transfer of this number with these bytes. None of them is sent before.
    ///
    /// # Errors
    /// As [`Client::stage`]; [`Failure::Stalled`](crate::frame::Failure::Stalled) if nothing is commanded in time.
    pub async fn send(&self, handle: &Handle, transfer: TransferId, bytes: Bytes) -> Result<ChunkRef, Error> {
        let content = Content::of(&bytes);
        self.staged(handle, ChunkRequest::Send { transfer, content }, content, bytes).await
    }

    async fn staged(
        &self,
        handle: &Handle,
        what: ChunkRequest,
        content: Content,
        bytes: Bytes,
    ) -> Result<ChunkRef, Error> {
        match self.perform(handle, what, bytes).await? {
            ChunkReply::Written { chunk, .. } if (chunk.len, chunk.crc) == (content.length, content.crc) => {
                Ok(chunk)
            }
            _ => Err(Lost::Violation("another reply than a reference to what was staged").into()),
        }
    }

    /// Gives up what was staged in a room and not claimed. Worth the request where a commit was refused; what nobody claims the
    /// drive forgets after ten minutes in any case.
    ///
    /// # Errors
    /// As [`Client::perform`].
    pub async fn forget_staged(&self, handle: &Handle) -> Result<(), Error> {
        match self.perform(handle, ChunkRequest::Forget, Bytes::new()).await? {
            ChunkReply::Done => Ok(()),
            _ => Err(Lost::Violation("another reply than that it is forgotten").into()),
        }
    }
}
