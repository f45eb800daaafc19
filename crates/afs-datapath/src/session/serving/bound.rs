//! Whether a capability permits a request for chunks: the file server's for all of a store, a client's for what is bound to a
//! group, or staged under a tag.

use afs_env::UnixTime;

use super::grant::Grant;
use crate::capability::{Binding, Capability, Group, Refusal};
use crate::frame::ChunkRequest;
use crate::session::{ChunkCall, Drive, Room};

/// Seconds of the longest life of a client's capability here. A file server gives shorter ones: what lasts longer was sealed by one
/// whose clock, or this drive's, is wrong.
const LIFE_MAX: u64 = 600;

/// Whether a capability permits a request.
pub(super) fn permits(
    drive: &Drive,
    capability: &Capability,
    what: &ChunkRequest,
    now: UnixTime,
) -> Result<(), Refusal> {
    let (chunk, start, end, binding) = match what {
        ChunkRequest::ReadBound { chunk, start, end, binding, .. } => (chunk, start, end, binding),
        ChunkRequest::Stage { .. } | ChunkRequest::Receipts { .. } | ChunkRequest::Forget => {
            capability.permits_staging()?;
            return lives_shortly(capability, now);
        }
        _ => return capability.permits_chunks().map(drop),
    };
    let group = capability.permits_bound(*start, *end)?;
    lives_shortly(capability, now)?;
    drive.key.check_binding(group, *chunk, binding, &(*start..*end))?;
    if is_current(drive, binding) { Ok(()) } else { Err(Refusal::Revoked) }
}

/// Whether a client's capability ends as soon as it must.
fn lives_shortly(capability: &Capability, now: UnixTime) -> Result<(), Refusal> {
    if capability.expires > now.secs.saturating_add(LIFE_MAX) { Err(Refusal::Expired) } else { Ok(()) }
}

/// Whether nothing was revoked for the file since the binding was made.
pub(super) fn is_current(drive: &Drive, binding: &Binding) -> bool {
    let terms = &binding.terms;
    terms.generation >= drive.revocations.generation(Group::Tagged(terms.file))
}

/// The call for the chunks of the drive, to whom it does not matter who reads. `None` for what was not permitted.
pub(super) fn call(grant: &mut Grant, what: ChunkRequest) -> Option<ChunkCall> {
    let peer = grant.peer;
    match what {
        ChunkRequest::ReadBound { chunk, start, end, credit, binding } => {
            let store = binding.terms.store;
            grant.binding = Some(Box::new(binding));
            let what = ChunkRequest::Read { chunk, start, end, credit };
            Some(ChunkCall { peer, store, room: None, what })
        }
        ChunkRequest::Stage { .. } | ChunkRequest::Receipts { .. } | ChunkRequest::Forget => {
            let (store, tag) = grant.capability.permits_staging().ok()?;
            let room = Room { drive: grant.drive.clone(), tag, bytes: grant.capability.range.len() };
            Some(ChunkCall { peer, store, room: Some(room), what })
        }
        _ => Some(ChunkCall { peer, store: grant.capability.permits_chunks().ok()?, room: None, what }),
    }
}
