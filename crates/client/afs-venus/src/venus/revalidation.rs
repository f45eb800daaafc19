//! Bulk revalidation: an object whose promise ended with all others of its volume is asked for together with others like it.
//!
//! After a restart of the mount, of the server or of the machine, after a sleep and after a move of the volume, everything
//! cached of a volume is suspect at once. The first use of such an object takes up to 49 other suspect objects of the volume
//! along, so that a call serves fifty; a task that needs one of those meanwhile waits for that call alone, as it would for
//! its own. What the reply does not name stays suspect.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Status};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// How many objects before, and how many after one are examined for company.
const EXAMINED: usize = 512;

impl Venus {
    /// Suspect objects to be asked for together with one, at most 49. None if that one is not suspect itself.
    pub(super) fn suspects_near(&self, vnode: &Vnode, volume: &Volume) -> Vec<Key> {
        let (is_suspect, is_new) = {
            let state = vnode.state();
            (state.is_suspect(volume, self.now()), state.status.is_none() && !state.is_gone)
        };
        if !(is_suspect || is_new) || self.has_plain_bulk_only(volume) {
            return Vec::new();
        }
        let known = match is_suspect {
            true => self.vnodes.near(vnode.key, EXAMINED),
            false => Vec::new(),
        };
        let known = known.into_iter().filter(|other| other.state().is_suspect(volume, self.now()));
        // Of what an earlier mount kept, the status is not known yet.
        let kept = self.files.kept_near(vnode.key, EXAMINED).into_iter();
        let kept = kept.filter(|key| self.vnodes.peek(*key).is_none());
        // What is asked for must not evict what is in use.
        let most = (fs::FIDS_MAX - 1).min(self.limits.statuses_max / 8);
        let company = known.map(|other| other.key).chain(kept);
        company.filter(|key| self.leases.unsettled(volume, Some(&[*key])).is_empty()).take(most).collect()
    }

    /// Fetches the status of an object together with those of others. `None`: that call did not bring it, and a call for this
    /// object alone decides. The caller holds the `fetching` lock of the object.
    pub(super) async fn revalidate(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        others: &[Key],
    ) -> Result<Option<Status>> {
        let others: Vec<Arc<Vnode>> = others.iter().map(|key| self.vnode(*key)).collect();
        // Objects that another task fetches are left to it.
        let claimed: Vec<_> = others
            .iter()
            .filter_map(|other| other.fetching.try_lock().ok().map(|guard| (other, guard)))
            .collect();
        let all: Vec<Arc<Vnode>> =
            std::iter::once(vnode).chain(claimed.iter().map(|(other, _)| *other)).cloned().collect();
        // Readers of the others do not wait for a server that is away because this one does.
        let reply = match self.without_waiting().bulk_status_of(volume, &all, None).await {
            Ok(reply) => reply,
            Err(error) if has_waited_for_volume(&error) => return Err(self.handle_error(vnode, error)),
            Err(error) => {
                tracing::debug!(%error, fid = %vnode.key.fid, "objects could not be asked for together");
                return Ok(None);
            }
        };
        let refused =
            all.iter().zip(&reply.statuses).skip(1).filter(|(_, status)| status.error != AbortCode::OK);
        // Each is asked for by itself when it is used, and takes no place in a later call.
        refused.for_each(|(other, _)| self.distrust(other));
        Ok(reply.statuses.first().copied().filter(|status| status.error == AbortCode::OK))
    }
}

/// True if all sites were tried until the time limit for such volumes: another call would take as long.
fn has_waited_for_volume(error: &VenusError) -> bool {
    matches!(error.kind, ErrorKind::VolumeBusy | ErrorKind::VolumeOffline | ErrorKind::NoVolume)
}
