//! Requests for chunks, as a file server makes them, and reads of chunks by other clients.

use std::ops::Range;

use afs_drive::{ChunkRef, Pieces};
use afs_env::Instant;
use bytes::{Bytes, BytesMut};

use super::{Arriving, Client, Handle};
use crate::capability::{Listed, TransferId};
use crate::frame::{ChunkReply, ChunkRequest, Failure, Message, SUM_LEN};
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
        let credit = what.first_credit(self.0.welcome.store_credit);
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

    /// Reads a range of a chunk by a capability for the group to which its list is bound. Every byte is verified against the reference.
    ///
    /// # Errors
    /// As [`Client::fetch`]; [`Failure::Damaged`] if other bytes came than those of the reference.
    pub async fn read_listed(
        &self,
        handle: &Handle,
        (chunk, listed): (ChunkRef, Listed),
        range: Range<u32>,
    ) -> Result<Bytes, Error> {
        let (start, end, credit) = (range.start, range.end, BOUND_CREDIT);
        let what = ChunkRequest::ReadListed { chunk, start, end, credit, listed: Box::new(listed) };
        self.verified(handle, what, chunk, range).await
    }

    /// Receives a range of a chunk that the file server has commanded, or will command while this waits, for a transfer of this number
    /// and the group of the capability. Verified as by [`Client::read_listed`].
    ///
    /// # Errors
    /// As [`Client::read_listed`]; [`Failure::Stalled`] if nothing is commanded in time.
    pub async fn receive(
        &self,
        handle: &Handle,
        transfer: TransferId,
        (chunk, range): (ChunkRef, Range<u32>),
    ) -> Result<Bytes, Error> {
        let (start, end, credit) = (range.start, range.end, BOUND_CREDIT);
        let what = ChunkRequest::Receive { transfer, chunk, start, end, credit };
        self.verified(handle, what, chunk, range).await
    }

    /// The bytes of a range of a chunk, as its reference says.
    async fn verified(
        &self,
        handle: &Handle,
        what: ChunkRequest,
        chunk: ChunkRef,
        range: Range<u32>,
    ) -> Result<Bytes, Error> {
        let covering = Pieces::covering(chunk.len, &range).map_err(|_| Error::Length)?;
        let length = SUM_LEN * Pieces::count(chunk.len) + covering.len();
        let mut arriving = self.fetch(handle, what).await?;
        if arriving.length() != length as u64 {
            return Err(Failure::Damaged.into());
        }
        let mut bytes = BytesMut::new();
        while let Some(piece) = arriving.next().await? {
            bytes.extend_from_slice(&piece);
        }
        chunk_pieces(chunk, bytes.freeze()).verified(chunk, range).map_err(|_| Failure::Damaged.into())
    }
}

/// Bytes of a chunk that a drive may send before more are wanted.
const BOUND_CREDIT: u32 = 1 << 20;

/// The reply to a read of a chunk: the checksums precede the bytes, big-endian.
#[must_use]
pub fn chunk_pieces(chunk: ChunkRef, mut bytes: Bytes) -> Pieces {
    let sums = bytes.split_to((SUM_LEN * Pieces::count(chunk.len)).min(bytes.len()));
    let words = sums.as_chunks::<SUM_LEN>().0;
    Pieces { sums: words.iter().map(|word| u32::from_be_bytes(*word)).collect(), bytes }
}
