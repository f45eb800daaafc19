//! What happens when promises end, and who is told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::{Fid, VnodeId};

use crate::counters::count;
use crate::key::{Key, Place};
use crate::location::{Server, Volume};
use crate::venus::Venus;
use crate::vnode::{Directory, Vnode, VnodeState};

impl Venus {
    /// A server breaks its promise on a fid; with vnode 0, on all of a volume. The cell is not named: fids of any cell
    /// with these numbers are meant (docs/protocol/callback.md "4. CallBack semantics").
    pub(super) fn broken(&self, fid: Fid) {
        let serial = self.breaks.next();
        count(&self.counters.promises_broken);
        for volume in self.volumes.with_id(fid.volume) {
            if fid.vnode == VnodeId(0) {
                volume.broken.fetch_max(serial, Ordering::SeqCst);
                volume.set_promise(None);
                volume.doubt();
                volume.set_snapshots(None);
                self.volumes.forget_groups();
                self.tell_volume(&volume);
            } else {
                self.broken_object(&volume, Key::new(volume.cell, fid), serial);
            }
        }
    }

    fn broken_object(&self, volume: &Volume, key: Key, serial: u64) {
        if key.is_volume_root() {
            volume.set_snapshots(None);
        }
        match self.vnodes.peek(key) {
            Some(vnode) => {
                {
                    let mut state = vnode.state();
                    state.broken = serial;
                    state.promise = None;
                    state.misses = 0;
                    // In the same breath: the end of a promise that comes right after this must not be forgotten.
                    self.vnodes.set_expiry(key, None);
                }
                self.tell(key);
            }
            None => drop(volume.stray.fetch_max(serial, Ordering::SeqCst)),
        }
    }

    /// Promises on these objects were given back. One that is in use again relies on a promise that may have been given
    /// back with them: it ends here, too. A call that begins later brings a new one.
    pub(super) fn gave_up(&self, keys: &[Key]) {
        let serial = self.breaks.next();
        for key in keys.iter().filter(|key| self.vnodes.peek(**key).is_some()) {
            if let Some(volume) = self.volumes.get(key.cell, key.fid.volume) {
                self.broken_object(&volume, *key, serial);
            }
        }
    }

    /// A server has forgotten everything it promised.
    pub(super) fn server_reset(&self, server: &Arc<Server>) {
        server.reset.set(self.breaks.next());
        for volume in self.volumes.all() {
            // Of a read-only volume another site may have promised: then that promise stays.
            let is_his = match volume.is_writable() {
                true => volume.is_at(&server.reset),
                false => volume.is_promised_by(&server.reset),
            };
            if is_his {
                self.tell_volume(&volume);
            }
        }
    }

    /// Tells the sink of everything it holds of a volume.
    pub(super) fn tell_volume(&self, volume: &Volume) {
        for vnode in self.vnodes.of_volume(volume.cell, volume.id) {
            self.tell(vnode.key);
        }
    }

    /// Tells the sink that what it holds of an object, and of the names in it, may be stale.
    pub(super) fn tell(&self, key: Key) {
        self.told.fetch_add(1, Ordering::SeqCst);
        let Some(node) = self.nodes.held(Place::Object(key)) else { return };
        self.sink.attributes(node);
        if key.fid.is_directory() {
            for name in self.nodes.names_in(node) {
                self.sink.entry(node, &name);
            }
        }
    }

    /// What is handed out without a promise (servers may have none to give) must not be kept: nobody would tell when it
    /// becomes stale.
    pub(super) fn warn_if_unpromised(&self, place: Place) {
        let Place::Object(key) = place else { return };
        if !self.is_safe(key) {
            self.tell(key);
        }
    }

    /// Whether a change would be told. Not of an object that has left the cache: a break would not find it.
    fn is_safe(&self, key: Key) -> bool {
        let (Some(volume), Some(vnode)) = (self.volumes.get(key.cell, key.fid.volume), self.vnodes.peek(key))
        else {
            return false;
        };
        let state = vnode.state();
        state.orphan || state.is_promised(&volume, self.now())
    }

    /// Something is answered that no server promised. By the time it is handed on, somebody else may have got a promise,
    /// which is one for something newer.
    pub(super) fn answered_unpromised(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
    }

    /// An object has left the status cache for want of room: the promise is given back, and the kernel must not rely on
    /// it any more.
    pub(super) fn dropped(&self, vnode: &Arc<Vnode>) {
        let mut state = vnode.state();
        self.uncount_directory(&mut state);
        let promise = state.promise.take();
        let had_status = state.status.take().is_some();
        drop(state);
        if had_status {
            self.tell(vnode.key);
        }
        if let Some(promise) = promise {
            self.give_up_later(vnode.key, &promise.server);
        }
    }

    /// An object does not exist any more.
    pub(super) fn is_gone(&self, vnode: &Arc<Vnode>) {
        {
            let mut state = vnode.state();
            state.promise = None;
            state.broken = self.breaks.next();
            self.uncount_directory(&mut state);
            if !state.is_in_use() {
                state.status = None;
            }
        }
        if let Ok(cell) = self.cell(vnode.key) {
            self.cache.forget(&cell.name, vnode.key.fid);
        }
        if !vnode.state().is_in_use() {
            self.vnodes.remove(vnode.key);
        }
    }

    /// Takes a directory's contents out of memory and off the account.
    pub(super) fn uncount_directory(&self, state: &mut VnodeState) {
        if let Some(directory) = state.directory.take() {
            self.uncount(&directory);
        }
    }

    pub(super) fn uncount(&self, directory: &Directory) {
        self.directory_bytes.fetch_sub(directory.blob.as_bytes().len() as u64, Ordering::Relaxed);
    }
}
