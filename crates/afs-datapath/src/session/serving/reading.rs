//! A read at a drive: bytes go from the objects to the connection, one piece after another.

use super::grant::Grant;
use super::role::note;
use crate::frame::{Failure, Message, RequestId};
use crate::session::Error;
use crate::session::link::Link;
use crate::session::objects::{Opened, ReadRequest};

/// Performs a read, and tells the client if it fails.
pub(super) async fn read(link: Link, id: RequestId, mut grant: Grant, request: ReadRequest) {
    match send(&link, id, &mut grant, request).await {
        Err(Error::Failed(failure)) => {
            note(&grant.drive, grant.peer, failure);
            link.end(id, Some(&Message::Failed { request: id, failure }));
        }
        // All is sent, or nobody wants it any more: then it is removed already.
        _ => link.end(id, None),
    }
}

async fn send(link: &Link, id: RequestId, grant: &mut Grant, request: ReadRequest) -> Result<(), Error> {
    let mut opened = grant.drive.objects.read(request).await?;
    if opened.length > request.range.len() {
        return Err(wrong(&request, "more bytes than were asked for"));
    }
    let now = link.now();
    link.with(|state| state.announce(id, opened.length, opened.file_length, now))?;
    grant.drive.counters.reads.add(1);
    let mut left = opened.length;
    while left > 0 {
        left -= send_piece(link, id, grant, &request, &mut opened).await?;
    }
    link.sent(id).await
}

/// Sends the next piece, as large as the client takes now. Returns its length.
async fn send_piece(
    link: &Link,
    id: RequestId,
    grant: &mut Grant,
    request: &ReadRequest,
    opened: &mut Opened,
) -> Result<u64, Error> {
    let wanted = link.wanted(id).await?;
    let piece = opened.pieces.next(wanted).await?;
    if piece.is_empty() || piece.len() > wanted {
        return Err(wrong(request, "a piece that was not asked for"));
    }
    // After the bytes were read: a change of rights that was made before they were is seen here.
    grant.check().map_err(Failure::from)?;
    let len = piece.len() as u64;
    link.with(|state| state.push(id, piece))?;
    Ok(len)
}

fn wrong(request: &ReadRequest, what: &str) -> Error {
    tracing::error!(fid = %request.fid, "the objects of a drive gave {what}");
    Failure::Io.into()
}
