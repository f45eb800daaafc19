//! A store at a drive: bytes go from the connection to the objects.

use super::grant::Grant;
use super::role::note;
use super::taken::Taken;
use crate::capability::TicketId;
use crate::frame::{Failure, Message, RequestId};
use crate::session::Error;
use crate::session::link::Link;
use crate::session::objects::StoreRequest;

/// Performs a store, and tells the client how it ended.
pub(super) async fn store(link: Link, id: RequestId, grant: Grant, request: StoreRequest) {
    let (drive, peer) = (grant.drive.clone(), grant.peer);
    match take(&link, id, grant, request).await {
        Ok(ticket) => {
            drive.counters.stores.add(1);
            link.end(id, Some(&Message::Stored { request: id, ticket }));
        }
        Err(Error::Failed(failure)) => {
            note(&drive, peer, failure);
            link.end(id, Some(&Message::Failed { request: id, failure }));
        }
        // Nobody wants it any more. The ticket, if there is one, expires.
        Err(_) => link.end(id, None),
    }
}

async fn take(link: &Link, id: RequestId, grant: Grant, request: StoreRequest) -> Result<TicketId, Error> {
    let fid = request.description.fid;
    let objects = grant.drive.objects.clone();
    let ticket = objects.store(request, Taken::new(link.clone(), id, grant)).await?;
    if !link.with(|state| state.is_taken(id))? {
        tracing::error!(%fid, "the objects of a drive made a ticket before all bytes had come");
        return Err(Failure::Io.into());
    }
    Ok(ticket)
}
