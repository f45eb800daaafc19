//! A store at a drive: bytes go from the connection to the objects.

use std::net::SocketAddr;

use super::attempt::Attempt;
use super::grant::Grant;
use super::role::note;
use super::taken::Taken;
use crate::capability::{Access, TicketId};
use crate::frame::{Failure, Message, RequestId};
use crate::session::counters::Counter;
use crate::session::limits::{STORE_WINDOW, STREAM_WINDOW};
use crate::session::link::Link;
use crate::session::objects::{StoreRequest, StreamRequest};
use crate::session::{Drive, Error};

/// Performs a store, and tells the client how it ended.
pub(super) async fn store(link: Link, id: RequestId, grant: Grant, request: StoreRequest) {
    let (drive, peer) = (grant.drive.clone(), grant.peer);
    let attempt = Attempt::by(&grant, request.description.fid, Access::WRITE);
    let taken = Taken::new(link.clone(), id, grant);
    let stored = drive.objects.store(request, taken).await;
    let stored = whole(&link, id, stored);
    attempt.ended(&stored);
    tell(&link, id, (&drive, peer), stored, &drive.counters.stores);
}

/// Takes a stream of a volume, and tells the client how it ended. Its ticket names nothing.
pub(super) async fn take_stream(link: Link, id: RequestId, grant: Grant, request: StreamRequest) {
    let (drive, peer) = (grant.drive.clone(), grant.peer);
    let taken = Taken::new(link.clone(), id, grant);
    let now = link.now();
    link.with(|state| state.widen(id, STREAM_WINDOW - STORE_WINDOW, now));
    let stored = drive.objects.take_stream(request, taken).await.map(|()| TicketId(0));
    tell(&link, id, (&drive, peer), whole(&link, id, stored), &drive.counters.streams);
}

/// The ticket, if all bytes have come.
fn whole(link: &Link, id: RequestId, stored: Result<TicketId, Failure>) -> Result<TicketId, Error> {
    let ticket = stored?;
    if !link.with(|state| state.is_taken(id))? {
        tracing::error!(request = %id, "the objects of a drive ended a store before all bytes had come");
        return Err(Failure::Io.into());
    }
    Ok(ticket)
}

fn tell(
    link: &Link,
    id: RequestId,
    (drive, peer): (&Drive, SocketAddr),
    stored: Result<TicketId, Error>,
    counter: &Counter,
) {
    match stored {
        Ok(ticket) => {
            counter.add(1);
            link.end(id, Some(&Message::Stored { request: id, ticket }));
        }
        Err(Error::Failed(failure)) => {
            note(link, drive, peer, failure);
            link.end(id, Some(&Message::Failed { request: id, failure }));
        }
        // Nobody wants it any more. The ticket, if there is one, expires.
        Err(_) => link.end(id, None),
    }
}
