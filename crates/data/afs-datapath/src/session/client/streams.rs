//! Streams of volumes at a client: requests without a length, each by a capability of its own.

use afs_wire::ids::DataVersion;

use super::{Arriving, Begun, Client, Handle, Leaving};
use crate::capability::{ByteRange, StreamName};
use crate::frame::{Message, OPEN_END, RequestId, StoreDescription};
use crate::session::limits::STREAM_WINDOW;
use crate::session::receiving::Receiving;
use crate::session::request::{Awaited, Reply, Request};
use crate::session::sending::Sending;
use crate::session::{Error, Lost};

impl Client {
    /// Asks for a stream that leaves the drive, and waits until the drive has opened it. Its end is known when
    /// [`Arriving::next`] gives no more; at most 2 MiB are taken in advance. How long it may take is up to the user.
    ///
    /// # Errors
    /// As [`Client::read`].
    pub async fn receive_stream(&self, handle: &Handle, stream: StreamName) -> Result<Arriving, Error> {
        let receiving = Receiving::new(0, STREAM_WINDOW);
        let message = |request| Message::Read {
            request,
            handle: handle.number(),
            fid: stream.fid(),
            range: ByteRange::ALL,
            version: DataVersion(0),
            credit: STREAM_WINDOW,
        };
        let awaited = Awaited::Announcement(OPEN_END);
        let request = self.begin_stream(Sending::default(), receiving, awaited, message).await?;
        match request.client.0.link.reply(request.id).await? {
            Reply::Announced { length, file_length } => Ok(Arriving::new(request, length, file_length)),
            _ => Err(Lost::Violation("another reply than an announcement for a stream").into()),
        }
    }

    /// Begins a stream into the drive. [`Leaving::finish`] ends it, waits until the drive has done what the stream is for, and
    /// gives a ticket that names nothing.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub async fn send_stream(&self, handle: &Handle, stream: StreamName) -> Result<Leaving, Error> {
        let description = StoreDescription::of_stream(stream);
        let sending = Sending::new(OPEN_END, self.0.welcome.store_credit.into());
        let message = |request| Message::Store { request, handle: handle.number(), description };
        let request = self.begin_stream(sending, Receiving::default(), Awaited::Ticket, message).await?;
        Ok(Leaving::of_stream(request))
    }

    async fn begin_stream(
        &self,
        sending: Sending,
        receiving: Receiving,
        awaited: Awaited,
        message: impl FnOnce(RequestId) -> Message,
    ) -> Result<Begun, Error> {
        let place = self.place().await?;
        self.begin(place, |now| Request::new(sending, receiving, awaited, now).of_stream(), message)
    }
}
