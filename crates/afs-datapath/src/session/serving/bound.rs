//! Whether a capability permits a request for chunks: the file server's for all of a store, a client's for what is bound to a group.

use afs_env::UnixTime;

use super::grant::Grant;
use crate::capability::{Binding, Capability, Group, Refusal};
use crate::frame::ChunkRequest;
use crate::session::{ChunkCall, Drive};

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
    let ChunkRequest::ReadBound { chunk, start, end, binding, .. } = what else {
        return capability.permits_chunks().map(drop);
    };
    let group = capability.permits_bound(*start, *end)?;
    if capability.expires > now.secs.saturating_add(LIFE_MAX) {
        return Err(Refusal::Expired);
    }
    drive.key.check_binding(group, *chunk, binding, &(*start..*end))?;
    if is_current(drive, binding) { Ok(()) } else { Err(Refusal::Revoked) }
}

/// Whether nothing was revoked for the file since the binding was made.
pub(super) fn is_current(drive: &Drive, binding: &Binding) -> bool {
    let terms = &binding.terms;
    terms.generation >= drive.revocations.generation(Group::Tagged(terms.file))
}

/// The call for the chunks of the drive, to whom it does not matter who reads. `None` for what was not permitted.
pub(super) fn call(grant: &mut Grant, what: ChunkRequest) -> Option<ChunkCall> {
    let peer = grant.peer;
    let ChunkRequest::ReadBound { chunk, start, end, credit, binding } = what else {
        return Some(ChunkCall { peer, store: grant.capability.permits_chunks().ok()?, what });
    };
    let store = binding.terms.store;
    grant.binding = Some(Box::new(binding));
    Some(ChunkCall { peer, store, what: ChunkRequest::Read { chunk, start, end, credit } })
}
