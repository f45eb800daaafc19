//! Bytes of a store, as they leave for a drive.

use bytes::Bytes;

use super::Begun;
use crate::capability::TicketId;
use crate::session::request::Reply;
use crate::session::{Error, Lost};

/// Bytes of a store that leave for a drive. Dropping it gives the store up.
pub struct Leaving {
    request: Begun,
    /// Whether it is a stream, which has the bytes that it was given.
    is_stream: bool,
}

impl Leaving {
    pub(super) fn new(request: Begun) -> Self {
        Self { request, is_stream: false }
    }

    pub(super) fn of_stream(request: Begun) -> Self {
        Self { request, is_stream: true }
    }

    /// Gives the next bytes of the ranges, in pieces of any size; they are not copied. Waits while 256 KiB or more wait to be
    /// sent. Dropping the future gives none of them.
    ///
    /// # Errors
    /// [`Error::Failed`] as soon as the drive says so, [`Error::Length`] for more bytes than the ranges have, and others.
    pub async fn put(&mut self, piece: Bytes) -> Result<(), Error> {
        let (link, id) = (&self.request.client.0.link, self.request.id);
        link.room(id).await?;
        link.with(|state| state.push(id, piece))
    }

    /// Waits until the drive has made all bytes durable. The ticket is for CommitStore.
    ///
    /// # Errors
    /// [`Error::Length`] if bytes are missing, and others.
    pub async fn finish(self) -> Result<TicketId, Error> {
        let (link, id) = (&self.request.client.0.link, self.request.id);
        if self.is_stream {
            link.end_stream(id).await?;
        } else if link.with(|state| state.missing(id))? > 0 {
            return Err(Error::Length);
        }
        match link.reply(id).await? {
            Reply::Stored(ticket) => Ok(ticket),
            Reply::Announced { .. } | Reply::Performed(_) => {
                Err(Lost::Violation("another reply than a ticket for a store").into())
            }
        }
    }
}
