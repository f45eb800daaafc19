//! Modes that close: in volumes with that setting, a directory whose mode has no bits for group and others leaves everybody off
//! its access list (docs/protocol/extensions.md "Modes that close").

use std::sync::Arc;

use afs_volume::{VnodeRecord, VolumeError, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{Fid, ViceId};
use afs_wire::vol::Modes;

use super::object::object;
use crate::access::{self, Operation};
use crate::subject::Subject;

/// The bits for group and others.
const OTHERS: u32 = 0o077;

/// Everybody, and everybody with a token.
const EVERYBODY: [ViceId; 2] = [ViceId::ANYUSER, ViceId::AUTHUSER];

/// Whether a change of status asks for a directory for its owner alone.
pub(super) fn asks_to_close(set: &SetStatus) -> bool {
    set.mode.is_some_and(|mode| mode.0 & OTHERS == 0)
}

/// Takes everybody off the list of a directory that was just given its status, if the volume has it so and the caller may change the
/// list; `None` if the list stays.
pub(super) fn close(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    fid: Fid,
    record: &VnodeRecord,
    set: &SetStatus,
) -> Result<Option<VnodeRecord>, VolumeError> {
    if tx.header().modes != Modes::Close || !record.is_directory() || !asks_to_close(set) {
        return Ok(None);
    }
    let acl = record.acl.clone().unwrap_or_default();
    let may = access::check(subject, &object(tx.header(), record, &acl), Operation::StoreAcl);
    match without_everybody(&acl).filter(|_| may.is_ok()) {
        Some(acl) => tx.set_acl(fid, acl).map(Some),
        None => Ok(None),
    }
}

fn without_everybody(acl: &Arc<Acl>) -> Option<Acl> {
    let mut left = (**acl).clone();
    left.positive.retain(|(id, _)| !EVERYBODY.contains(id));
    (left.positive.len() < acl.positive.len()).then_some(left)
}
