//! Releases, and other events that evict data.

use super::*;

impl World {
    pub(super) fn release(&mut self, n: usize, rng: &mut SimRng) {
        let Open { handle, view, .. } = self.opens.remove(n);
        if handle.may_change() {
            self.note_writes(view);
            // Usually closed before.
            if rng.chance(700_000) {
                let is_good = rng.chance(700_000);
                self.store(view, handle.user, is_good);
            }
        }
        let data = handle.data();
        self.files.release_handle(handle.id).unwrap();
        assert!(self.files.release_handle(handle.id).is_none(), "{}", self.step);
        now(self.files.retire(&self.vnode, &data, handle.user));
        drop(data);
        self.part(view, handle.user);
    }

    /// Expected effect on data that may have lost its last reference.
    pub(super) fn part(&mut self, n: usize, user: User) {
        if self.is_orphan && self.opens.is_empty() {
            assert!(self.files.vnodes.peek(self.vnode.key).is_none(), "{}: it stays for ever", self.step);
            return self.make_anew();
        }
        if self.opens.iter().any(|open| open.view == n) || self.current != Some(n) {
            return;
        }
        let view = &self.views[n];
        if view.is_dirty && !view.is_lost {
            self.listed = self.listed.or(Some(user));
            return;
        }
        self.current = None;
        let named = self.files.cache_key(self.vnode.key, DataVersion(view.version)).unwrap();
        let is_kept = self.files.cache.find(&named).is_some();
        assert!(is_kept || view.is_lost, "{}: it is not kept", self.step);
    }

    pub(super) fn give_an_open_up(&mut self, rng: &mut SimRng) {
        let flags = |_: &mut SimRng| OpenFlags { truncate: true, ..OpenFlags::READ_WRITE };
        let Some(n) = self.open(rng, flags) else { return };
        let Open { handle, view, .. } = self.opens.remove(n);
        let is_alone = !self.opens.iter().any(|open| open.view == view);
        let gone = self.files.release_handle(handle.id).unwrap();
        let is_undone = self.files.undo_cut(&gone.handle);
        assert_eq!(is_undone, is_alone && handle.has_cut_clean_data(), "{}", self.step);
        if is_undone {
            self.current = None;
        }
        now(self.files.retire(&self.vnode, &handle.data(), handle.user));
        self.part(view, handle.user);
    }

    pub(super) fn remove(&mut self) {
        self.files.became_nameless(&self.vnode);
        self.files.forget_kept(self.vnode.key);
        self.listed = None;
        match self.opens.is_empty() {
            true => {
                assert!(!self.vnode.state().is_in_use(), "{}", self.step);
                self.make_anew();
            }
            false => self.is_orphan = true,
        }
    }

    /// Continues with another file.
    pub(super) fn make_anew(&mut self) {
        self.number += 1;
        self.vnode = self.files.vnodes.get_or_make(key(self.number)).0;
        self.server = BTreeMap::from([(1, b"another one".to_vec())]);
        self.views.clear();
        (self.current, self.listed, self.is_orphan) = (None, None, false);
    }

    pub(super) fn lose(&mut self) {
        now(self.files.lock_lost(&self.vnode));
        self.opens.iter().for_each(|open| self.views[open.view].is_lost = true);
        self.listed = None;
        self.current = self.current.filter(|n| self.views[*n].is_backed);
        if let Some(n) = self.current.filter(|n| !self.opens.iter().any(|open| open.view == *n)) {
            self.views[n].is_lost = true;
        }
    }
}
