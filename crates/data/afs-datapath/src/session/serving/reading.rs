//! A read at a drive: bytes go from the objects to the connection, one piece after another.

use super::attempt::Attempt;
use super::grant::Grant;
use super::role::note;
use crate::capability::Access;
use crate::frame::{Failure, Message, OPEN_END, RequestId};
use crate::session::Error;
use crate::session::link::Link;
use crate::session::objects::{Opened, ReadRequest, StreamRequest};

/// Performs a read, and tells the client if it fails.
pub(super) async fn read(link: Link, id: RequestId, mut grant: Grant, request: ReadRequest) {
    let attempt = Attempt::by(&grant, request.fid, Access::READ);
    let sent = send(&link, id, &mut grant, request).await;
    attempt.ended(&sent);
    tell(&link, id, &grant, sent);
}

/// Sends a stream of a volume, and tells the client if it fails.
pub(super) async fn send_stream(link: Link, id: RequestId, grant: Grant, request: StreamRequest) {
    let sent = send_all(&link, id, &grant, request).await;
    tell(&link, id, &grant, sent);
}

fn tell(link: &Link, id: RequestId, grant: &Grant, sent: Result<(), Error>) {
    match sent {
        Err(Error::Failed(failure)) => {
            note(link, &grant.drive, grant.peer, failure);
            link.end(id, Some(&Message::Failed { request: id, failure }));
        }
        // All is sent, or nobody wants it any more: then it is removed already.
        _ => link.end(id, None),
    }
}

async fn send(link: &Link, id: RequestId, grant: &mut Grant, request: ReadRequest) -> Result<(), Error> {
    let opened = grant.drive.objects.read(request).await?;
    send_opened(link, id, grant, opened, request.range.len()).await
}

/// Announces bytes, of which the client wants `most`, and sends them.
pub(super) async fn send_opened(
    link: &Link,
    id: RequestId,
    grant: &mut Grant,
    mut opened: Opened,
    most: u64,
) -> Result<(), Error> {
    if opened.length > most {
        return Err(wrong(grant, "more bytes than were asked for"));
    }
    let now = link.now();
    link.with(|state| state.announce(id, opened.length, opened.file_length, now))?;
    grant.drive.counters.reads.add(1);
    let mut left = opened.length;
    while left > 0 {
        left -= send_piece(link, id, grant, &mut opened).await?;
    }
    link.sent(id).await
}

/// Sends the next piece, as large as the client takes now. Returns its length.
async fn send_piece(
    link: &Link,
    id: RequestId,
    grant: &mut Grant,
    opened: &mut Opened,
) -> Result<u64, Error> {
    let wanted = link.wanted(id).await?;
    let piece = opened.pieces.next(wanted).await?;
    if piece.is_empty() || piece.len() > wanted {
        return Err(wrong(grant, "a piece that was not asked for"));
    }
    // After the bytes were read: a change of rights that was made before they were is seen here.
    grant.check().map_err(Failure::from)?;
    let len = piece.len() as u64;
    link.with(|state| state.push(id, piece))?;
    Ok(len)
}

/// Sends pieces until there are no more, and then their length.
async fn send_all(link: &Link, id: RequestId, grant: &Grant, request: StreamRequest) -> Result<(), Error> {
    let mut pieces = grant.drive.objects.open_stream(request).await?;
    let now = link.now();
    link.with(|state| state.announce(id, OPEN_END, 0, now))?;
    loop {
        let wanted = link.wanted(id).await?;
        let piece = pieces.next(wanted).await?;
        if piece.is_empty() {
            break;
        }
        if piece.len() > wanted {
            return Err(wrong(grant, "a piece that was not asked for"));
        }
        link.with(|state| state.push(id, piece))?;
    }
    link.end_stream(id).await?;
    grant.drive.counters.streams.add(1);
    Ok(())
}

fn wrong(grant: &Grant, what: &str) -> Error {
    tracing::error!(group = %grant.capability.group, "the objects of a drive gave {what}");
    Failure::Io.into()
}
