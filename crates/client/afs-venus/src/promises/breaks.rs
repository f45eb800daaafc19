//! Ends of promises: breaks, resets, moves and releases, and the invalidations that follow.

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
    /// Breaks the promise on a fid; with vnode 0, on a whole volume. The cell is not named: fids of all cells with
    /// these numbers are affected (docs/protocol/callback.md "4. CallBack semantics").
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
                self.invalidate_mount_points(&volume);
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
                    // Under the same lock: the expiry of a promise that comes right after this must not be removed.
                    self.parts.vnodes.set_expiry(key, None);
                }
                self.ended(&vnode);
            }
            None => drop(volume.stray.fetch_max(serial, Ordering::SeqCst)),
        }
    }

    /// Ends the rights of all users, as what they rest on has changed at a server: promises on objects stay. Those of
    /// other servers end too, since they have the same users, or cost a call.
    pub fn rights_broken(&self) {
        let serial = self.breaks.next();
        count(&self.parts.counters.promises_broken);
        self.rights_broken.fetch_max(serial, Ordering::SeqCst);
        self.invalidate_private();
    }

    /// Ends the promises on objects that were given back to a server, also of an object that is in use again: its
    /// promise may have been given back with them. A later call brings a new one.
    pub fn gave_up(&self, keys: &[Key]) {
        let serial = self.breaks.next();
        for key in keys.iter().filter(|key| self.parts.vnodes.peek(**key).is_some()) {
            if let Some(volume) = self.parts.location.volume_of(*key) {
                self.broken_object(&volume, *key, serial);
            }
        }
    }

    /// Ends all promises of a server that has lost them.
    pub fn server_reset(&self, server: &Arc<Server>) {
        server.reset.set(self.breaks.next());
        for volume in self.parts.location.volumes().all() {
            // The promise on a read-only volume may be by another site: then it stays.
            let is_promiser = match volume.is_writable() {
                true => volume.is_at(&server.reset),
                false => volume.is_promised_by(&server.reset),
            };
            if is_promiser {
                self.invalidate_volume(&volume);
            }
        }
    }

    /// Ends the promises on a volume that has moved: its former servers cannot keep them. Its objects are fetched again
    /// from the new site; data of an unchanged version is kept.
    pub fn volume_moved(&self, volume: &Volume) {
        if volume.is_writable() {
            volume.broken.fetch_max(self.breaks.next(), Ordering::SeqCst);
        } else if !volume.drop_promise_of_former_site() {
            return;
        }
        self.invalidate_volume(volume);
    }

    /// Records the volume's creation time from a reply. If it has changed, all promises on the old volume end.
    pub(super) fn note_creation(&self, volume: &Volume, sync: &VolSync) {
        if volume.note_creation(sync.creation) {
            tracing::info!(volume = %volume.id, "the volume was released or restored");
            volume.broken.fetch_max(self.breaks.next(), Ordering::SeqCst);
            self.invalidate_volume(volume);
        }
    }

    /// Ends the promise on an object, so that the next access asks the server.
    pub fn distrust(&self, vnode: &Vnode) {
        let mut state = vnode.state();
        state.promise = None;
        state.broken = self.breaks.next();
    }

    /// Records that an object does not exist any more. What is in use here is kept.
    pub fn note_removed(&self, vnode: &Vnode) {
        let mut state = vnode.state();
        state.promise = None;
        state.broken = self.breaks.next();
        state.directory = None;
        if !state.is_in_use() {
            state.status = None;
        }
    }

    /// Invalidates all objects of a volume.
    pub fn invalidate_volume(&self, volume: &Volume) {
        for vnode in self.parts.vnodes.of_volume(volume.cell, volume.id) {
            self.ended(&vnode);
        }
    }

    /// Invalidates the names that lead to the root of a volume: the name of the volume may be that of another one.
    pub fn invalidate_mount_points(&self, volume: &Volume) {
        self.parts.kernel.invalidate_names_of(Key::new(volume.cell, Fid::root(volume.id)));
    }

    /// Invalidates an object, and the names in it.
    pub fn invalidate(&self, key: Key) {
        self.parts.kernel.invalidate(key);
        self.parts.pins.doubt(key);
    }

    /// Invalidates an object that was handed out without a promise, as a server may have none to grant: the kernel must
    /// not cache it, since no break would come.
    pub fn invalidate_if_unpromised(&self, node_target: NodeTarget) {
        let NodeTarget::Object(key) = node_target else { return };
        if !self.is_notified(key) {
            self.invalidate(key);
        }
    }

    /// True if a change would be notified. Not for an object that has left the cache: a break would not find it.
    fn is_notified(&self, key: Key) -> bool {
        let (Some(volume), Some(vnode)) = (self.parts.location.volume_of(key), self.parts.vnodes.peek(key))
        else {
            return false;
        };
        let state = vnode.state();
        state.file.is_orphan() || state.is_promised(&volume, self.now())
    }
}
