//! What ends promises, and for which objects that is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::VolSync;
use afs_wire::ids::{Fid, VnodeId};

use crate::counters::count;
use crate::key::{Key, NodeTarget};
use crate::location::{Server, Volume};
use crate::promises::Promises;
use crate::vnode::Vnode;

impl Promises {
    /// A server breaks its promise on a fid; with vnode 0, on all of a volume. The cell is not named: fids of any cell
    /// with these numbers are meant (docs/protocol/callback.md "4. CallBack semantics").
    pub fn broken(&self, fid: Fid) {
        let serial = self.breaks.next();
        count(&self.parts.counters.promises_broken);
        for volume in self.parts.location.volumes().with_id(fid.volume) {
            if fid.vnode == VnodeId(0) {
                volume.broken.fetch_max(serial, Ordering::SeqCst);
                volume.set_promise(None);
                volume.doubt_location();
                volume.set_snapshots(None);
                self.parts.location.volumes().forget_groups();
                self.invalidate_volume(&volume);
            } else {
                self.broken_object(&volume, Key::new(volume.cell, fid), serial);
            }
        }
    }

    pub(super) fn broken_object(&self, volume: &Volume, key: Key, serial: u64) {
        if key.is_volume_root() {
            volume.set_snapshots(None);
        }
        match self.parts.vnodes.peek(key) {
            Some(vnode) => {
                {
                    let mut state = vnode.state();
                    state.broken = serial;
                    state.promise = None;
                    state.misses = 0;
                    // In the same breath: the end of a promise that comes right after this must not be forgotten.
                    self.parts.vnodes.set_expiry(key, None);
                }
                self.invalidate(key);
            }
            None => drop(volume.stray.fetch_max(serial, Ordering::SeqCst)),
        }
    }

    /// Promises on these objects were given back. One that is in use again relies on a promise that may have been given
    /// back with them: it ends here, too. A call that begins later brings a new one.
    pub fn gave_up(&self, keys: &[Key]) {
        let serial = self.breaks.next();
        for key in keys.iter().filter(|key| self.parts.vnodes.peek(**key).is_some()) {
            if let Some(volume) = self.parts.location.volume_of(*key) {
                self.broken_object(&volume, *key, serial);
            }
        }
    }

    /// A server has forgotten everything it promised.
    pub fn server_reset(&self, server: &Arc<Server>) {
        server.reset.set(self.breaks.next());
        for volume in self.parts.location.volumes().all() {
            // Of a read-only volume another site may have promised: then that promise stays.
            let is_promiser = match volume.is_writable() {
                true => volume.is_at(&server.reset),
                false => volume.is_promised_by(&server.reset),
            };
            if is_promiser {
                self.invalidate_volume(&volume);
            }
        }
    }

    /// A volume is not where it was: servers that it left have nothing to promise any more. Its objects are asked about
    /// again where it is now; data whose version is still the same stays.
    pub fn volume_moved(&self, volume: &Volume) {
        if volume.is_writable() {
            volume.broken.fetch_max(self.breaks.next(), Ordering::SeqCst);
        } else if !volume.drop_promise_of_former_site() {
            return;
        }
        self.invalidate_volume(volume);
    }

    /// A reply named the volume's creation time. If it is another volume now, nothing of the old one counts.
    pub(super) fn saw_volume(&self, volume: &Volume, sync: &VolSync) {
        if volume.saw_creation(sync.creation) {
            tracing::info!(volume = %volume.id, "the volume was released or restored");
            volume.broken.fetch_max(self.breaks.next(), Ordering::SeqCst);
            self.invalidate_volume(volume);
        }
    }

    /// The next look at an object asks the server.
    pub fn distrust(&self, vnode: &Vnode) {
        let mut state = vnode.state();
        state.promise = None;
        state.broken = self.breaks.next();
    }

    /// An object does not exist any more. What is in use here stays known.
    pub fn note_removed(&self, vnode: &Vnode) {
        let mut state = vnode.state();
        state.promise = None;
        state.broken = self.breaks.next();
        state.directory = None;
        if !state.is_in_use() {
            state.status = None;
        }
    }

    /// Tells of everything that is held of a volume.
    pub fn invalidate_volume(&self, volume: &Volume) {
        for vnode in self.parts.vnodes.of_volume(volume.cell, volume.id) {
            self.invalidate(vnode.key);
        }
    }

    /// Tells that what is held of an object, and of the names in it, may be stale.
    pub fn invalidate(&self, key: Key) {
        self.parts.kernel.invalidate(key);
    }

    /// What is handed out without a promise (servers may have none to give) must not be kept: nobody would tell when it
    /// becomes stale.
    pub fn invalidate_if_unpromised(&self, node_target: NodeTarget) {
        let NodeTarget::Object(key) = node_target else { return };
        if !self.is_kept_current(key) {
            self.invalidate(key);
        }
    }

    /// Whether a change would be told. Not of an object that has left the cache: a break would not find it.
    fn is_kept_current(&self, key: Key) -> bool {
        let (Some(volume), Some(vnode)) = (self.parts.location.volume_of(key), self.parts.vnodes.peek(key))
        else {
            return false;
        };
        let state = vnode.state();
        state.file.is_orphan() || state.is_promised(&volume, self.now())
    }
}
