//! Stores, and changes of the length without a handle.

use super::*;

impl World {
    pub(super) fn set_length(&mut self, rng: &mut SimRng, is_good: bool) {
        if self.is_orphan || self.current.is_some_and(|n| self.views[n].is_lost) {
            return;
        }
        let (expected, length, user) = (self.expected(), rng.below(LENGTH_MAX), random_user(rng));
        let (files, vnode, status) = (self.files.clone(), self.vnode.clone(), self.status());
        let in_use = now(files.use_current(&vnode, &status, user)).unwrap();
        let data = in_use.data.clone();
        now(files.prepare_change(vnode.key, &data)).unwrap();
        let view = self.chosen(expected, &data);
        self.note_writes(view);
        now(self.files.cut(&data, length)).unwrap();
        self.views[view].bytes.resize(length as usize, 0);
        self.views[view].is_dirty = true;
        let is_stored = self.store(view, user, is_good);
        drop(in_use);
        if !is_stored {
            self.files.discard(&vnode, &data);
            if !self.opens.iter().any(|open| open.view == view) {
                (self.current, self.listed) = (None, None);
            }
        }
        now(self.files.retire(&vnode, &data, user));
        self.part(view, user);
    }

    /// A store as by a close. Returns true if nothing is dirty then.
    pub(super) fn store(&mut self, n: usize, user: User, is_good: bool) -> bool {
        self.note_writes(n);
        if self.is_orphan || self.views[n].is_lost || !self.views[n].is_dirty {
            return false;
        }
        let data = self.data(n);
        let (cut, pieces) = {
            let mut content = data.content();
            let scope = content.store_scope(content.version != DataVersion(self.version()), true);
            (content.cut, content.begin_store(scope))
        };
        if !is_good {
            data.content().store_failed(cut, false);
            self.files.store_failed(self.vnode.key, user);
            self.listed = Some(user);
            return false;
        }
        for piece in pieces {
            let bytes = data.file.read_at(piece.range.start, (piece.range.end - piece.range.start) as usize);
            let (version, mut file) = self.server.last_key_value().map(|(v, f)| (*v, f.clone())).unwrap();
            file.truncate(piece.file_length as usize);
            put(&mut file, piece.range.start, &bytes.unwrap());
            file.resize(file.len().max(piece.range.end as usize), 0);
            data.content().stored(&piece, DataVersion(version + 1), file.len() as u64);
            self.server.insert(version + 1, file);
        }
        data.content().store_done();
        *data.ready.lock() = None;
        self.files.clear_store_retry(self.vnode.key);
        (self.listed, self.views[n].is_dirty, self.views[n].version) = (None, false, self.version());
        let stored = self.server.last_key_value().map(|(_, bytes)| bytes);
        assert_eq!(stored, Some(&self.views[n].bytes), "{}: something else was stored", self.step);
        true
    }

    pub(super) fn retry_store(&mut self) {
        for (key, user) in self.files.store_retries() {
            assert_eq!((key, Some(user)), (self.vnode.key, self.listed), "{}", self.step);
            let n = self.current.unwrap_or_else(|| panic!("{}: there is nothing to store", self.step));
            if self.store(n, user, true) {
                now(self.files.retire(&self.vnode, &self.data(n), user));
                self.part(n, user);
            }
        }
    }

    pub(super) fn note_writes(&mut self, view: usize) {
        let data = self.data(view);
        now(self.files.note_kernel_writes_to_store(&self.vnode, &data)).unwrap();
        self.note_touches(view);
    }

    pub(super) fn note_touches(&mut self, view: usize) {
        let view = &mut self.views[view];
        view.is_dirty |= std::mem::take(&mut view.is_touched);
    }
}
