//! Comparison of the part with the model.

use super::*;

impl World {
    /// Compares the whole state.
    pub fn check(&self) {
        let step = &self.step;
        let ids: Vec<_> = self.opens.iter().map(|open| open.handle.id).collect();
        let mut held: Vec<_> = self.files.handles().iter().map(|handle| handle.id).collect();
        held.sort_by_key(|id| ids.iter().position(|known| known == id));
        assert_eq!(held, ids, "{step}: handles");
        let state = self.vnode.state();
        assert_eq!(state.file.opens() as usize, self.opens.len(), "{step}: opens");
        assert_eq!(state.file.is_orphan(), self.is_orphan, "{step}: an orphan");
        let current = self.current.map(|n| self.data(n));
        assert_eq!(
            state.file.data().map(Arc::as_ptr),
            current.as_ref().map(Arc::as_ptr),
            "{step}: the file's data"
        );
        drop(state);
        let listed: Vec<_> = self.listed.map(|user| (self.vnode.key, user)).into_iter().collect();
        assert_eq!(self.files.store_retries(), listed, "{step}: what is unsaved");
        for open in &self.opens {
            assert!(Arc::ptr_eq(&open.handle.data(), &self.data(open.view)), "{step}: a handle's data");
            assert_eq!(open.handle.is_passthrough(), open.is_passthrough, "{step}: direct");
        }
        (0..self.views.len()).for_each(|n| self.check_view(n));
        self.check_kept();
    }

    fn check_view(&self, n: usize) {
        let (view, step) = (&self.views[n], &self.step);
        let Some(data) = view.data.upgrade() else { return };
        let users: Vec<&Open> = self.opens.iter().filter(|open| open.view == n).collect();
        let writers = users.iter().filter(|open| open.handle.may_change()).count();
        let direct = users.iter().filter(|open| open.is_passthrough).count();
        let content = data.content();
        let counted = [content.uses.count(), content.uses.writers(), content.uses.passthrough()];
        assert_eq!(counted.map(|n| n as usize), [users.len(), writers, direct], "{step}: users");
        if !view.is_touched {
            assert_eq!(content.is_dirty(), view.is_dirty, "{step}: dirty");
            assert!(content.length == view.bytes.len() as u64 && content.is_complete(), "{step}: length");
        }
        let bytes = data.file.read_at(0, 2 * LENGTH_MAX as usize).unwrap();
        assert_eq!(&*bytes, &*view.bytes, "{step}: bytes");
    }

    /// Kept files equal the server's versions, and none belongs to data that may change.
    fn check_kept(&self) {
        let (files, key, step) = (&self.files, self.vnode.key, &self.step);
        for (version, bytes) in &self.server {
            let named = files.cache_key(key, DataVersion(*version)).unwrap();
            let Some((file, kept)) = files.cache.find(&named) else { continue };
            assert_eq!(kept.length, bytes.len() as u64, "{step}: kept length");
            let here = file.read_at(0, 2 * LENGTH_MAX as usize).unwrap();
            for range in kept.present.iter().map(|range| range.start as usize..range.end as usize) {
                assert_eq!(here.get(range.clone()), bytes.get(range), "{step}: kept bytes");
            }
        }
        let is_changing = self.current.is_some_and(|n| self.has_writers(n));
        assert!(!(is_changing && files.may_have(key)), "{step}: kept while it may change");
    }

    /// Closes and stores everything, and checks that nothing is left over.
    pub fn end(&mut self) {
        let mut rng = SimRng::new(0);
        while !self.opens.is_empty() {
            self.release(0, &mut rng);
            self.check();
        }
        self.retry_store();
        self.check();
        assert!(!self.files.has_store_retries() && !self.vnode.state().is_in_use(), "{}", self.step);
    }
}
