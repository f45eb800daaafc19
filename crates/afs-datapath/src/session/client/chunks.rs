//! Requests for chunks, as a file server makes them.

use afs_env::Instant;
use bytes::Bytes;

use super::{Arriving, Client, Handle};
use crate::frame::{ChunkReply, ChunkRequest, Message};
use crate::session::receiving::Receiving;
use crate::session::request::{Awaited, Reply, Request};
use crate::session::sending::Sending;
use crate::session::{Error, Lost};

impl Client {
    /// Has something done with chunks, with the bytes that the request announces, and waits for the outcome. Waits before while as
    /// many requests are in progress as the drive permits. Dropping the future cancels the request; what it did remains.
    ///
    /// # Errors
    /// [`Error::Length`] for other bytes than announced, or a request whose reply is bytes; [`Error::Failed`],
    /// [`Error::Stalled`], [`Error::Lost`].
    pub async fn perform(
        &self,
        handle: &Handle,
        what: ChunkRequest,
        bytes: Bytes,
    ) -> Result<ChunkReply, Error> {
        if what.incoming() != bytes.len() as u64 || what.outgoing().is_some() || !what.is_valid() {
            return Err(Error::Length);
        }
        let place = self.place().await?;
        let credit = self.0.welcome.store_credit;
        let request = |now: Instant| {
            let sending = Sending::new(what.incoming(), credit.into());
            Request::new(sending, Receiving::default(), Awaited::Outcome, now)
        };
        let handle = handle.number();
        let request =
            self.begin(place, request, |request| Message::Perform { request, handle, what: what.clone() })?;
        let (link, id) = (&request.client.0.link, request.id);
        link.with(|state| state.push(id, bytes))?;
        match link.reply(id).await? {
            Reply::Performed(reply) => Ok(reply),
            _ => Err(Lost::Violation("another reply than an outcome").into()),
        }
    }

    /// Asks for bytes of chunks or about them, and waits until the drive has announced them; as [`Client::perform`] otherwise.
    ///
    /// # Errors
    /// As [`Client::perform`], with [`Error::Length`] for a request whose reply is no bytes.
    pub async fn fetch(&self, handle: &Handle, what: ChunkRequest) -> Result<Arriving, Error> {
        let Some((most, credit)) = what.outgoing().filter(|_| what.is_valid()) else {
            return Err(Error::Length);
        };
        let place = self.place().await?;
        let request = |now: Instant| {
            Request::new(Sending::default(), Receiving::new(0, credit), Awaited::Announcement(most), now)
        };
        let handle = handle.number();
        let request =
            self.begin(place, request, |request| Message::Perform { request, handle, what: what.clone() })?;
        match request.client.0.link.reply(request.id).await? {
            Reply::Announced { length, file_length } => Ok(Arriving::new(request, length, file_length)),
            _ => Err(Lost::Violation("another reply than an announcement").into()),
        }
    }
}
