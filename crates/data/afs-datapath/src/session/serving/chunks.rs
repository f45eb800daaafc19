//! Requests for chunks at a drive.

use afs_env::Instant;
use afs_env::future::{Either, select};

use super::bound;
use super::grant::Grant;
use super::reading::send_opened;
use super::role::note;
use super::taken::Taken;
use crate::capability::{DriveKey, Group, KeyEpoch, Refusal, Secret};
use crate::frame::{ChunkReply, ChunkRequest, Failure, Message, RequestId};
use crate::session::commands::{Collection, Delivery};
use crate::session::limits::STORE_WINDOW;
use crate::session::link::Link;
use crate::session::{ChunkCall, Drive, Error};

/// Performs a request, and tells the client how it ended.
pub(super) async fn serve(link: Link, id: RequestId, grant: Grant, what: ChunkRequest) {
    let (drive, peer) = (grant.drive.clone(), grant.peer);
    match done(&link, id, grant, what).await {
        Ok(Some(reply)) => link.end(id, Some(&Message::Performed { request: id, reply })),
        Err(Error::Failed(failure)) => {
            note(&link, &drive, peer, failure);
            link.end(id, Some(&Message::Failed { request: id, failure }));
        }
        // All is sent, or nobody wants it any more: then it is removed already.
        Ok(None) | Err(_) => link.end(id, None),
    }
}

/// The outcome of a request whose reply is no bytes.
async fn done(
    link: &Link,
    id: RequestId,
    mut grant: Grant,
    what: ChunkRequest,
) -> Result<Option<ChunkReply>, Error> {
    let call = match select(bound::call(&mut grant, what), link.gone(id)).await {
        Either::Left(call) => call?,
        Either::Right(error) => return Err(error),
    };
    match call.what.outgoing() {
        Some((most, _)) => send(link, id, &mut grant, call, most).await.map(|()| None),
        None => perform(link, id, grant, call).await.map(Some),
    }
}

async fn send(
    link: &Link,
    id: RequestId,
    grant: &mut Grant,
    call: ChunkCall,
    most: u64,
) -> Result<(), Error> {
    let drive = grant.drive.clone();
    let chunks = drive.objects.chunks().ok_or(Failure::NoObject)?;
    let opened = chunks.open(call).await?;
    send_opened(link, id, grant, opened, most).await
}

async fn perform(link: &Link, id: RequestId, grant: Grant, call: ChunkCall) -> Result<ChunkReply, Error> {
    let drive = grant.drive.clone();
    if let Some(reply) = revoke(&drive, &call.what) {
        return Ok(reply);
    }
    if let Some(commanded) = command(&drive, &call, link.now()) {
        return Ok(commanded?);
    }
    if let ChunkRequest::Adopt { epoch, key } = call.what {
        return adopt(&drive, (call.epoch, epoch), key.0).await;
    }
    let chunks = drive.objects.chunks().ok_or(Failure::NoObject)?;
    if matches!(call.what, ChunkRequest::Send { .. }) {
        let now = link.now();
        link.with(|state| state.widen(id, STORE_WINDOW, now));
    }
    let performed = chunks.perform(call, Taken::new(link.clone(), id, grant));
    let reply = performed.await?;
    if !link.with(|state| state.is_taken(id))? {
        tracing::error!("the chunks of a drive were done before all bytes had come");
        return Err(Failure::Io.into());
    }
    Ok(reply)
}

/// Exchanges the key of the drive for that of the next epoch, when it is durable. Whoever has waited here while another key was
/// adopted has the earlier one.
async fn adopt(drive: &Drive, (by, next): (KeyEpoch, KeyEpoch), secret: Secret) -> Result<ChunkReply, Error> {
    let _turn = drive.adopting.lock().await;
    let present = drive.key();
    if by != present.epoch() {
        return Err(Failure::Refused(Refusal::OtherEpoch).into());
    }
    if present.epoch().next() != Some(next) {
        return Err(Failure::Invalid.into());
    }
    let chunks = drive.objects.chunks().ok_or(Failure::NoObject)?;
    chunks.adopt(next, secret.clone()).await?;
    drive.replace_key(DriveKey::new(present.drive(), next, *secret.expose()));
    Ok(ChunkReply::Done)
}

/// Does what a command asks for: a client that waits for it goes on, or it is kept for one.
fn command(drive: &Drive, call: &ChunkCall, now: Instant) -> Option<Result<ChunkReply, Failure>> {
    let commanded = match call.what {
        ChunkRequest::Deliver { group, transfer, chunk, terms } => {
            drive.deliveries.command((group, transfer), Delivery { chunk, terms }, now)
        }
        ChunkRequest::Collect { holder, tag, transfer, content } => {
            let collection = Collection { room: (call.store, tag), content };
            drive.collections.command((holder, transfer), collection, now)
        }
        _ => return None,
    };
    Some(commanded.map(|()| ChunkReply::Done))
}

/// Does what a request to revoke something asks for: when the reply leaves, nothing more is sent by what was revoked.
fn revoke(drive: &Drive, what: &ChunkRequest) -> Option<ChunkReply> {
    match what {
        ChunkRequest::Revoke { groups } => {
            groups.iter().for_each(|group| drive.revocations.revoke(Group::Tagged(*group)));
        }
        ChunkRequest::RevokeAll => drive.revocations.revoke_all(),
        _ => return None,
    }
    Some(ChunkReply::Revoked { latest: drive.revocations.latest() })
}
