//! Whether a capability permits a request for chunks: the file server's for all of a store, a client's for what is bound to a
//! group as a list, or commanded, or staged under a tag.

use afs_env::UnixTime;

use super::grant::Grant;
use crate::capability::{Capability, Group, Refusal, Terms};
use crate::frame::{ChunkRequest, Failure};
use crate::session::{ChunkCall, Drive, Room};

/// Seconds of the longest life of a client's capability here. A file server gives shorter ones: what lasts longer was sealed by one
/// whose clock, or this drive's, is wrong.
const LIFE_MAX: u64 = 600;

/// Whether a capability permits a request. Whether its terms are current is checked with each piece ([`Grant::check`]).
pub(super) fn permits(
    drive: &Drive,
    capability: &Capability,
    what: &ChunkRequest,
    now: UnixTime,
) -> Result<(), Refusal> {
    match what {
        ChunkRequest::ReadListed { chunk, start, end, listed, .. } => {
            let group = capability.permits_bound(*start, *end)?;
            lives_shortly(capability, now)?;
            drive.key().check_listed(group, *chunk, listed, &(*start..*end))
        }
        // What it gets, the command decides.
        ChunkRequest::Receive { start, end, .. } => {
            capability.permits_bound(*start, *end)?;
            lives_shortly(capability, now)
        }
        ChunkRequest::Stage { .. } | ChunkRequest::Send { .. } => {
            capability.permits_chunk(matches!(what, ChunkRequest::Send { .. }))?;
            lives_shortly(capability, now)
        }
        ChunkRequest::Forget => {
            capability.permits_staging()?;
            lives_shortly(capability, now)
        }
        ChunkRequest::Deliver { terms, .. } => {
            let store = capability.permits_chunks()?;
            if store == terms.store { Ok(()) } else { Err(Refusal::OtherObject) }
        }
        _ => capability.permits_chunks().map(drop),
    }
}

/// Whether a client's capability ends as soon as it must.
fn lives_shortly(capability: &Capability, now: UnixTime) -> Result<(), Refusal> {
    if capability.expires > now.secs.saturating_add(LIFE_MAX) { Err(Refusal::Expired) } else { Ok(()) }
}

/// Whether nothing was revoked for the file since its terms were made.
pub(super) fn is_current(drive: &Drive, terms: &Terms) -> bool {
    terms.generation >= drive.revocations.generation(Group::Tagged(terms.file))
}

/// The call for the chunks of the drive, to whom it does not matter who reads. Waits for the command that a client's request is for.
///
/// # Errors
/// [`Failure::Stalled`] without a command; a refusal of what was not permitted, or commanded.
pub(super) async fn call(grant: &mut Grant, what: ChunkRequest) -> Result<ChunkCall, Failure> {
    match what {
        ChunkRequest::ReadListed { chunk, start, end, credit, listed } => {
            read(grant, listed.terms(), ChunkRequest::Read { chunk, start, end, credit })
        }
        ChunkRequest::Receive { transfer, chunk, start, end, credit } => {
            let (env, group) = (grant.env().clone(), grant.capability.permits_bound(start, end)?);
            let command = grant.drive.deliveries.wait(&env, (group, transfer)).await?;
            command.permits(chunk, &(start..end))?;
            read(grant, command.terms, ChunkRequest::Read { chunk, start, end, credit })
        }
        ChunkRequest::Send { transfer, content } => {
            let (env, holder) = (grant.env().clone(), grant.capability.holder);
            let command = grant.drive.collections.wait(&env, (holder, transfer)).await?;
            command.permits(grant.capability.permits_staging()?, content)?;
            grant.check()?;
            in_room(grant, what)
        }
        ChunkRequest::Stage { .. } | ChunkRequest::Forget => in_room(grant, what),
        _ => {
            let store = grant.capability.permits_chunks()?;
            Ok(ChunkCall { peer: grant.peer, epoch: grant.capability.epoch, store, room: None, what })
        }
    }
}

/// A request in the room of a client.
fn in_room(grant: &Grant, what: ChunkRequest) -> Result<ChunkCall, Failure> {
    let (store, tag) = grant.capability.permits_staging()?;
    let room = Room { tag, bytes: grant.capability.range.len() };
    Ok(ChunkCall { peer: grant.peer, epoch: grant.capability.epoch, store, room: Some(room), what })
}

/// A read on the terms of a client.
fn read(grant: &mut Grant, terms: Terms, what: ChunkRequest) -> Result<ChunkCall, Failure> {
    grant.terms = Some(Box::new(terms));
    grant.check()?;
    Ok(ChunkCall { peer: grant.peer, epoch: grant.capability.epoch, store: terms.store, room: None, what })
}
