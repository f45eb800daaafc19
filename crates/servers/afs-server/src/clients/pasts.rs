//! Earlier states of volumes on which promises are held: their rights follow the read-write volume, so a change of rights there
//! ends the promises here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afs_wire::ids::VolumeId;
use parking_lot::Mutex;

use super::Clients;

/// By read-write volume; each earlier state that was promised since the last break. Not more than there are volumes.
#[derive(Default)]
pub(super) struct Pasts(Mutex<BTreeMap<VolumeId, BTreeSet<VolumeId>>>);

impl Clients {
    /// Notes that a promise on an earlier state of a volume is about to be given.
    pub(crate) fn note_past(&self, of: VolumeId, past: VolumeId) {
        self.pasts.0.lock().entry(of).or_default().insert(past);
    }

    /// Ends the promises on the earlier states of a volume. The caller does not wait: what a server is asked for it refuses at once.
    pub(crate) fn break_pasts(self: &Arc<Self>, of: VolumeId) {
        let pasts = self.pasts.0.lock().remove(&of).unwrap_or_default();
        pasts.into_iter().for_each(|past| self.break_volume(past));
    }
}
