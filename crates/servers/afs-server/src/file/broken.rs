//! The promises that changes have made untrue: each object is broken once, however many changes concern it.

use std::collections::BTreeSet;
use std::sync::Arc;

use afs_volume::Object;
use afs_wire::ids::{Fid, VolumeId};

use super::server::FileServer;
use crate::call_context::CallContext;
use crate::clients::Breaks;
use crate::data_path::Telling;

/// Objects that were changed.
#[derive(Default)]
pub(super) struct Broken {
    /// The caller has the new status in its reply.
    others: BTreeSet<Fid>,
    /// The reply does not mention the object.
    everybody: BTreeSet<Fid>,
    /// Volumes whose earlier states show another part of themselves now.
    pasts: BTreeSet<VolumeId>,
    /// The drives that are told of changed rights.
    telling: Telling,
}

impl Broken {
    /// The promises of all clients but the caller on an object.
    pub(super) fn for_others(&mut self, fid: Fid) {
        self.others.insert(fid);
    }

    /// The caller knows of some objects what a reply does not mention.
    pub(super) fn caller_knows(&mut self, knows: impl Fn(&Fid) -> bool) {
        let (known, unknown) = std::mem::take(&mut self.everybody).into_iter().partition(knows);
        self.everybody = unknown;
        self.others.extend::<BTreeSet<_>>(known);
    }

    /// The promises on earlier states of a volume: what they show follows the rights in it.
    pub(super) fn for_pasts(&mut self, volume: VolumeId) {
        self.pasts.insert(volume);
    }

    /// What drives are told at the same time.
    pub(super) fn and_told(&mut self, telling: Telling) {
        self.telling.add(telling);
    }

    /// The promises of all clients on an object.
    pub(super) fn for_everybody(&mut self, fid: Fid) {
        self.everybody.insert(fid);
    }
}

impl FileServer {
    /// Starts to break the promises; the drives are waited for with the clients.
    pub(super) fn break_promises(self: &Arc<Self>, context: &CallContext, broken: &mut Broken) -> Breaks {
        let caller = Some(context.host.id());
        let others = broken.others.difference(&broken.everybody).map(|fid| (*fid, caller));
        let everybody = broken.everybody.iter().map(|fid| (*fid, None));
        let started = others.chain(everybody).map(|(fid, except)| self.clients.start_breaks(fid, except));
        broken.pasts.iter().for_each(|volume| self.clients.break_pasts(*volume));
        let told = std::mem::take(&mut broken.telling);
        started.fold(Breaks::default().and_told(told), Breaks::and)
    }

    /// Handles the promises on an object that lost a name. Those on a deleted object are dropped silently;
    /// for an object with other names all hosts are notified, the caller too, because its reply does not
    /// mention the object (docs/protocol fileserver.md "15. Traps", T13).
    pub(super) fn unlinked(&self, volume: VolumeId, object: &Object, broken: &mut Broken) {
        match object {
            Object::Gone(fid) => {
                if fid.is_directory() {
                    broken.for_pasts(volume);
                }
                broken.and_told(self.data_path.file_changed(*fid));
                self.clients.callbacks().forget_file(*fid);
                self.locks.forget(*fid);
            }
            Object::Remains(record) => broken.for_everybody(record.fid(volume)),
        }
    }
}
