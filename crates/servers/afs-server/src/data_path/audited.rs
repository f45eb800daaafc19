//! Use of capabilities in the audit log: one record for each file that is read by one of them, and one for
//! each refusal.
//!
//! A call would have one for each of its ranges. What is recorded of a read is that it was opened; GetCapability
//! says what was permitted, Commit what was stored.

use std::collections::BTreeMap;

use afs_datapath::capability::{Access, Capability, Group};
use afs_datapath::session::{ReadRequest, RefusedRequest};
use afs_rpc::Identity;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::GetCapability;
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;
use parking_lot::Mutex;

use super::HolderId;
use crate::audit::CallKind;
use crate::call_context::CallContext;
use crate::file::FileServer;

/// Most uses that are remembered. Beyond, files that are read still are recorded once more.
const USES_MAX: usize = 16_384;

/// Names of what is recorded: no calls, but requests of docs/protocol/data-path.md.
const READ: &str = "DataPathRead";
const STORE: &str = "DataPathStore";

/// The reads that have a record, of capabilities that are valid.
#[derive(Default)]
pub(crate) struct AuditedReads(Mutex<BTreeMap<Use, u64>>);

/// A file and a capability: the holder, what it covers, and its expiry, which is also the value.
type Use = (HolderId, Group, u64, Fid);

impl AuditedReads {
    /// Whether this is the first read of a file by a capability.
    fn is_first(&self, capability: &Capability, fid: Fid, now: u64) -> bool {
        let mut reads = self.0.lock();
        if reads.len() >= USES_MAX {
            reads.retain(|_, expires| *expires > now);
        }
        if reads.len() >= USES_MAX {
            reads.clear();
        }
        let expires = capability.expires;
        reads.insert((capability.holder, capability.group, expires, fid), expires).is_none()
    }
}

impl FileServer {
    /// Records a capability that was given, or refused, in a call for several things.
    pub(crate) fn audit_capability(&self, context: &CallContext, fid: Fid, code: AbortCode) {
        let who = (&context.identity, context.peer);
        self.guard.audit().record_of(who, GetCapability::NAME, CallKind::Read, fid.into(), code);
    }

    /// Records a read that was opened.
    pub(super) fn audit_read(&self, read: &ReadRequest) {
        let audit = self.guard.audit();
        let now = self.env.wall().secs;
        if audit.has_reads() && self.data_path.audited().is_first(&read.capability, read.fid, now) {
            let who = self.holder_identity(&read.capability);
            audit.record_of((&who, read.peer), READ, CallKind::Read, read.fid.into(), AbortCode::OK);
        }
    }

    /// Records a read or store that was refused.
    pub(super) fn audit_refusal(&self, refused: &RefusedRequest) {
        let audit = self.guard.audit();
        if audit.is_on() {
            let who = refused.capability.map_or(Identity::Anonymous, |held| self.holder_identity(&held));
            let name = if refused.access == Access::WRITE { STORE } else { READ };
            let code = Errno::EACCES.to_uae();
            audit.record_of((&who, refused.peer), name, CallKind::Read, refused.fid.into(), code);
        }
    }

    /// The user to whom a capability was given; nobody, where the server no longer knows.
    fn holder_identity(&self, capability: &Capability) -> Identity {
        let holder = self.data_path.holders().get(capability.holder);
        holder.map_or(Identity::Anonymous, |holder| holder.identity.clone())
    }
}

#[cfg(test)]
mod tests {
    use afs_datapath::capability::{ByteRange, DriveId, Generation, KeyEpoch};
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    fn fid(vnode: u32) -> Fid {
        Fid { volume: VolumeId(7), vnode: VnodeId(vnode), unique: Uniquifier(1) }
    }

    fn capability(holder: u128, expires: u64) -> Capability {
        Capability {
            drive: DriveId(1),
            epoch: KeyEpoch(1),
            group: Group::Directory(fid(1)),
            access: Access::READ,
            range: ByteRange::ALL,
            expires,
            generation: Generation(0),
            holder: HolderId(holder),
        }
    }

    #[test]
    fn a_file_is_recorded_once_for_each_capability() {
        let reads = AuditedReads::default();
        for (holder, expires, file) in [(1, 100, 2), (2, 100, 2), (1, 200, 2), (1, 100, 4)] {
            let capability = capability(holder, expires);
            let first = [0; 2].map(|now| reads.is_first(&capability, fid(file), now));
            assert_eq!(first, [true, false], "{holder}, {expires}, {file}");
        }
    }

    #[test]
    fn uses_are_bounded_and_no_read_is_left_out() {
        let reads = AuditedReads::default();
        for file in 0..3 * USES_MAX as u32 {
            assert!(reads.is_first(&capability(1, 100), fid(file), 0));
            assert!(reads.0.lock().len() <= USES_MAX);
        }
        // Those of capabilities that have expired make room for others.
        let reads = AuditedReads::default();
        assert!(reads.is_first(&capability(2, 200), fid(2), 0));
        assert!((1..USES_MAX as u32).all(|file| reads.is_first(&capability(1, 100), fid(file), 0)));
        assert!(reads.is_first(&capability(2, 200), fid(4), 100) && reads.0.lock().len() == 2);
        assert!(!reads.is_first(&capability(2, 200), fid(2), 100), "it has its record");
    }
}
