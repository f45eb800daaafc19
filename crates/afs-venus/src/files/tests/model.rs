//! What the part should hold after each deed: written down by the deeds themselves, in plain lists.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use afs_sim::SimRng;
use bytes::Bytes;

use super::*;
use crate::api::TokenOwner;
use crate::cache::Ranges;

/// Largest length of a file.
const LENGTH_MAX: u64 = 40;

/// Data as it should be.
struct View {
    data: Weak<FileData>,
    version: u64,
    bytes: Vec<u8>,
    is_dirty: bool,
    is_lost: bool,
    is_backed: bool,
    /// The kernel has written something that was not looked for yet.
    is_touched: bool,
}

/// A handle as it should be.
struct Open {
    handle: Arc<Handle>,
    view: usize,
    is_direct: bool,
}

/// The part with one file, what the server has of it, and what should be here.
pub struct World {
    files: Arc<Files>,
    vnode: Arc<Vnode>,
    /// All versions that the server has had.
    server: BTreeMap<u64, Vec<u8>>,
    views: Vec<View>,
    opens: Vec<Open>,
    current: Option<usize>,
    listed: Option<Who>,
    is_orphan: bool,
    number: u32,
    pub told: String,
}

fn person(rng: &mut SimRng) -> Who {
    Some(TokenOwner::Uid(rng.below(3) as u32))
}

fn some_bytes(rng: &mut SimRng, length: u64) -> Vec<u8> {
    (0..length).map(|_| rng.below(255) as u8 + 1).collect()
}

impl World {
    pub fn new() -> World {
        let (files, vnode) = machine();
        let server = BTreeMap::from([(1, b"as it was".to_vec())]);
        World {
            files: Arc::new(files),
            vnode,
            server,
            views: Vec::new(),
            opens: Vec::new(),
            current: None,
            listed: None,
            is_orphan: false,
            number: 1,
            told: String::new(),
        }
    }

    pub fn act(&mut self, deed: &str, rng: &mut SimRng) {
        match deed {
            "open" if self.opens.len() < 5 => drop(self.open(rng, rng_flags)),
            "give an open up" if self.opens.len() < 5 => self.give_an_open_up(rng),
            "store at another machine" if !self.is_orphan => {
                let length = rng.below(LENGTH_MAX);
                let bytes = some_bytes(rng, length);
                self.server.insert(self.version() + 1, bytes);
            }
            "store again" => self.store_again(),
            "give up" => {
                self.files.give_up(&self.vnode);
                self.listed = None;
                self.current = self.current.filter(|_| !self.opens.is_empty());
            }
            "set a length without a handle" => self.set_length(rng, true),
            "fail to set a length without a handle" => self.set_length(rng, false),
            "remove" if !self.is_orphan => self.remove(),
            "lose a lock" if !self.is_orphan => self.lose(),
            _ => self.act_on_handle(deed, rng),
        }
    }

    fn act_on_handle(&mut self, deed: &str, rng: &mut SimRng) {
        if self.opens.is_empty() {
            return;
        }
        let n = rng.index(self.opens.len());
        let open = &self.opens[n];
        let (handle, view, writes) = (open.handle.clone(), open.view, open.handle.flags.write);
        match deed {
            "write" | "cut" | "reach" | "zero" if writes => self.change(deed, view, rng),
            "go direct" if writes && !open.is_direct => {
                handle.data().backed.store(true, Ordering::SeqCst);
                now(self.files.go_direct(&handle)).unwrap();
                self.note_touches(view);
                self.views[view].is_backed = true;
                self.opens[n].is_direct = true;
            }
            "leave direct" if open.is_direct => {
                self.absorb(view);
                self.files.leave_direct(handle.id);
                self.opens[n].is_direct = false;
            }
            "write as the kernel" if open.is_direct => {
                let at = rng.below(LENGTH_MAX);
                let bytes = some_bytes(rng, 3);
                self.data(view).file.write_at(at, &bytes).unwrap();
                let view = &mut self.views[view];
                put(&mut view.bytes, at, &bytes);
                view.is_touched = true;
            }
            "store" => drop(self.store(view, handle.who, true)),
            "fail to store" => drop(self.store(view, handle.who, false)),
            "release" => self.release(n, rng),
            "go on" if !writes && !self.is_orphan => {
                let expected = self.expected();
                let data = now(self.files.go_on(&handle, &self.status())).unwrap();
                self.opens[n].view = self.chosen(expected, &data);
            }
            _ => {}
        }
    }

    fn open(&mut self, rng: &mut SimRng, flags: impl Fn(&mut SimRng) -> OpenFlags) -> Option<usize> {
        if self.is_orphan && self.current.is_none() {
            return None;
        }
        let (expected, flags, who) = (self.expected(), flags(rng), person(rng));
        let handle = now(self.files.hold(&self.vnode, &self.status(), flags, who)).unwrap();
        let view = self.chosen(expected, &handle.data());
        if handle.may_change() {
            now(self.files.will_change(self.vnode.key, &handle.data())).unwrap();
        }
        if flags.truncate {
            self.absorb(view);
            handle.will_cut();
            now(self.files.cut(&handle.data(), 0)).unwrap();
            self.views[view].bytes.clear();
            self.views[view].is_dirty = true;
        }
        self.opens.push(Open { handle, view, is_direct: false });
        Some(self.opens.len() - 1)
    }

    /// The data that an open should get; none is new data.
    fn expected(&self) -> Option<usize> {
        let version = self.version();
        let is_ours = |n: usize| {
            let view = &self.views[n];
            view.is_dirty || self.is_orphan || view.version == version || self.has_writers(n)
        };
        self.current.filter(|n| is_ours(*n))
    }

    /// The data that came of a choice. What is new is fetched.
    fn chosen(&mut self, expected: Option<usize>, data: &Arc<FileData>) -> usize {
        let known = self.views.iter().position(|view| view.data.as_ptr() == Arc::as_ptr(data));
        assert_eq!(known, expected, "{}: other data was chosen", self.told);
        if let Some(known) = known {
            return known;
        }
        let (version, bytes) = self.server.last_key_value().map(|(v, bytes)| (*v, bytes.clone())).unwrap();
        let gaps = data.content().present.gaps(0..bytes.len() as u64);
        for gap in gaps {
            data.forget_mark();
            data.file.write_at(gap.start, &bytes[gap.start as usize..gap.end as usize]).unwrap();
            data.content().fetched(gap, &Ranges::new());
        }
        let data = Arc::downgrade(data);
        let no = false;
        let (is_dirty, is_lost, is_backed, is_touched) = (no, no, no, no);
        self.views.push(View { data, version, bytes, is_dirty, is_lost, is_backed, is_touched });
        self.current = Some(self.views.len() - 1);
        self.views.len() - 1
    }

    fn change(&mut self, deed: &str, view: usize, rng: &mut SimRng) {
        let (data, at) = (self.data(view), rng.below(LENGTH_MAX));
        self.absorb(view);
        let view = &mut self.views[view];
        let length = view.bytes.len();
        match deed {
            "write" => {
                let count = rng.below(9);
                let bytes = some_bytes(rng, count);
                now(self.files.write(&data, at, Bytes::from(bytes.clone()))).unwrap();
                put(&mut view.bytes, at, &bytes);
                view.is_dirty |= !bytes.is_empty();
            }
            "cut" => {
                now(self.files.cut(&data, at)).unwrap();
                view.bytes.resize(at as usize, 0);
                view.is_dirty = true;
            }
            "reach" => {
                now(self.files.reach(&data, at)).unwrap();
                view.bytes.resize(length.max(at as usize), 0);
                view.is_dirty |= length < at as usize;
            }
            _ => {
                now(self.files.zero(&data, at..at + 7)).unwrap();
                let range = length.min(at as usize)..length.min(at as usize + 7);
                view.is_dirty |= !range.is_empty();
                view.bytes[range].fill(0);
            }
        }
    }

    fn release(&mut self, n: usize, rng: &mut SimRng) {
        let Open { handle, view, .. } = self.opens.remove(n);
        if handle.may_change() {
            self.absorb(view);
            // Closed before, as a rule.
            if rng.chance(700_000) {
                let is_good = rng.chance(700_000);
                self.store(view, handle.who, is_good);
            }
        }
        let data = handle.data();
        self.files.let_go(handle.id).unwrap();
        assert!(self.files.let_go(handle.id).is_none(), "{}", self.told);
        now(self.files.put_away(&self.vnode, &data, handle.who));
        drop(data);
        self.part(view, handle.who);
    }

    /// What should become of data that may have lost its last user.
    fn part(&mut self, n: usize, who: Who) {
        if self.is_orphan && self.opens.is_empty() {
            assert!(self.files.vnodes.peek(self.vnode.key).is_none(), "{}: it stays for ever", self.told);
            return self.make_anew();
        }
        if self.opens.iter().any(|open| open.view == n) || self.current != Some(n) {
            return;
        }
        let view = &self.views[n];
        if view.is_dirty && !view.is_lost {
            self.listed = self.listed.or(Some(who));
            return;
        }
        self.current = None;
        let named = self.files.cache_key(self.vnode.key, DataVersion(view.version)).unwrap();
        let is_kept = self.files.cache.find(&named).is_some();
        assert!(is_kept || view.is_lost, "{}: it is not kept", self.told);
    }

    fn give_an_open_up(&mut self, rng: &mut SimRng) {
        let flags = |_: &mut SimRng| OpenFlags { truncate: true, ..OpenFlags::READ_WRITE };
        let Some(n) = self.open(rng, flags) else { return };
        let Open { handle, view, .. } = self.opens.remove(n);
        let is_alone = !self.opens.iter().any(|open| open.view == view);
        let gone = self.files.let_go(handle.id).unwrap();
        let is_uncut = self.files.uncut(&gone.handle);
        assert_eq!(is_uncut, is_alone && handle.has_cut_what_was_saved(), "{}", self.told);
        if is_uncut {
            self.current = None;
        }
        now(self.files.put_away(&self.vnode, &handle.data(), handle.who));
        self.part(view, handle.who);
    }

    fn set_length(&mut self, rng: &mut SimRng, is_good: bool) {
        if self.is_orphan || self.current.is_some_and(|n| self.views[n].is_lost) {
            return;
        }
        let (expected, length, who) = (self.expected(), rng.below(LENGTH_MAX), person(rng));
        let (files, vnode, status) = (self.files.clone(), self.vnode.clone(), self.status());
        let in_use = now(files.use_current(&vnode, &status, who)).unwrap();
        let data = in_use.data.clone();
        now(files.will_change(vnode.key, &data)).unwrap();
        let view = self.chosen(expected, &data);
        self.absorb(view);
        now(self.files.cut(&data, length)).unwrap();
        self.views[view].bytes.resize(length as usize, 0);
        self.views[view].is_dirty = true;
        let is_stored = self.store(view, who, is_good);
        drop(in_use);
        if !is_stored {
            self.files.discard(&vnode, &data);
            if !self.opens.iter().any(|open| open.view == view) {
                (self.current, self.listed) = (None, None);
            }
        }
        now(self.files.put_away(&vnode, &data, who));
        self.part(view, who);
    }

    /// Stores as a close does, and says whether nothing is unsaved then.
    fn store(&mut self, n: usize, who: Who, is_good: bool) -> bool {
        self.absorb(n);
        if self.is_orphan || self.views[n].is_lost || !self.views[n].is_dirty {
            return false;
        }
        let data = self.data(n);
        let (cut, pieces) = {
            let mut content = data.content();
            let share = content.share(content.version != DataVersion(self.version()), true);
            (content.cut, content.begin_store(share))
        };
        if !is_good {
            data.content().store_failed(cut, false);
            self.files.store_failed(self.vnode.key, who);
            self.listed = Some(who);
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
        *crate::lock(&data.ready) = None;
        self.files.is_saved(self.vnode.key);
        (self.listed, self.views[n].is_dirty, self.views[n].version) = (None, false, self.version());
        let stored = self.server.last_key_value().map(|(_, bytes)| bytes);
        assert_eq!(stored, Some(&self.views[n].bytes), "{}: something else was stored", self.told);
        true
    }

    fn store_again(&mut self) {
        for (key, who) in self.files.unsaved() {
            assert_eq!((key, Some(who)), (self.vnode.key, self.listed), "{}", self.told);
            let n = self.current.unwrap_or_else(|| panic!("{}: there is nothing to store", self.told));
            if self.store(n, who, true) {
                now(self.files.put_away(&self.vnode, &self.data(n), who));
                self.part(n, who);
            }
        }
    }

    fn remove(&mut self) {
        self.files.has_no_name(&self.vnode);
        self.files.forget_kept(self.vnode.key);
        self.listed = None;
        match self.opens.is_empty() {
            true => {
                assert!(!self.vnode.state().is_in_use(), "{}", self.told);
                self.make_anew();
            }
            false => self.is_orphan = true,
        }
    }

    /// Another file.
    fn make_anew(&mut self) {
        self.number += 1;
        self.vnode = self.files.vnodes.get_or_make(key(self.number)).0;
        self.server = BTreeMap::from([(1, b"another one".to_vec())]);
        self.views.clear();
        (self.current, self.listed, self.is_orphan) = (None, None, false);
    }

    fn lose(&mut self) {
        self.files.lose(&self.vnode);
        self.opens.iter().for_each(|open| self.views[open.view].is_lost = true);
        self.listed = None;
        self.current = self.current.filter(|n| self.views[*n].is_backed);
        if let Some(n) = self.current.filter(|n| !self.opens.iter().any(|open| open.view == *n)) {
            self.views[n].is_lost = true;
        }
    }

    fn absorb(&mut self, view: usize) {
        let data = self.data(view);
        now(self.files.absorb_to_store(&self.vnode, &data)).unwrap();
        self.note_touches(view);
    }

    fn note_touches(&mut self, view: usize) {
        let view = &mut self.views[view];
        view.is_dirty |= std::mem::take(&mut view.is_touched);
    }

    fn data(&self, view: usize) -> Arc<FileData> {
        self.views[view].data.upgrade().unwrap_or_else(|| panic!("{}: the data is gone", self.told))
    }

    fn version(&self) -> u64 {
        self.server.last_key_value().map_or(0, |(version, _)| *version)
    }

    fn status(&self) -> Status {
        status(self.version(), self.server.last_key_value().map_or(0, |(_, bytes)| bytes.len() as u64))
    }

    fn has_writers(&self, view: usize) -> bool {
        self.opens.iter().any(|open| open.view == view && open.handle.may_change())
    }

    /// All that is here is as it should be.
    pub fn check(&self) {
        let told = &self.told;
        let ids: Vec<_> = self.opens.iter().map(|open| open.handle.id).collect();
        let mut held: Vec<_> = self.files.handles().iter().map(|handle| handle.id).collect();
        held.sort_by_key(|id| ids.iter().position(|known| known == id));
        assert_eq!(held, ids, "{told}: handles");
        let state = self.vnode.state();
        assert_eq!(state.opens as usize, self.opens.len(), "{told}: opens");
        assert_eq!(state.orphan, self.is_orphan, "{told}: an orphan");
        let current = self.current.map(|n| self.data(n));
        assert_eq!(
            state.data.as_ref().map(Arc::as_ptr),
            current.as_ref().map(Arc::as_ptr),
            "{told}: the file's data"
        );
        drop(state);
        let listed: Vec<_> = self.listed.map(|who| (self.vnode.key, who)).into_iter().collect();
        assert_eq!(self.files.unsaved(), listed, "{told}: what is unsaved");
        for open in &self.opens {
            assert!(Arc::ptr_eq(&open.handle.data(), &self.data(open.view)), "{told}: a handle's data");
            assert_eq!(open.handle.is_direct(), open.is_direct, "{told}: direct");
        }
        (0..self.views.len()).for_each(|n| self.check_view(n));
        self.check_kept();
    }

    fn check_view(&self, n: usize) {
        let (view, told) = (&self.views[n], &self.told);
        let Some(data) = view.data.upgrade() else { return };
        let users: Vec<&Open> = self.opens.iter().filter(|open| open.view == n).collect();
        let writers = users.iter().filter(|open| open.handle.may_change()).count();
        let direct = users.iter().filter(|open| open.is_direct).count();
        let content = data.content();
        let counted = [content.users.count(), content.users.writers(), content.users.direct()];
        assert_eq!(counted.map(|n| n as usize), [users.len(), writers, direct], "{told}: users");
        if !view.is_touched {
            assert_eq!(content.is_dirty(), view.is_dirty, "{told}: dirty");
            assert!(content.length == view.bytes.len() as u64 && content.is_complete(), "{told}: length");
        }
        let bytes = data.file.read_at(0, 2 * LENGTH_MAX as usize).unwrap();
        assert_eq!(&*bytes, &*view.bytes, "{told}: bytes");
    }

    /// What is kept is what the server has had, and not of data that may change.
    fn check_kept(&self) {
        let (files, key, told) = (&self.files, self.vnode.key, &self.told);
        for (version, bytes) in &self.server {
            let named = files.cache_key(key, DataVersion(*version)).unwrap();
            let Some((file, kept)) = files.cache.find(&named) else { continue };
            assert_eq!(kept.length, bytes.len() as u64, "{told}: kept length");
            let here = file.read_at(0, 2 * LENGTH_MAX as usize).unwrap();
            for range in kept.present.iter().map(|range| range.start as usize..range.end as usize) {
                assert_eq!(here.get(range.clone()), bytes.get(range), "{told}: kept bytes");
            }
        }
        let is_changing = self.current.is_some_and(|n| self.has_writers(n));
        assert!(!(is_changing && files.may_have(key)), "{told}: kept while it may change");
    }

    /// All is closed and stored: nothing is left over.
    pub fn end(&mut self) {
        let mut rng = SimRng::new(0);
        while !self.opens.is_empty() {
            self.release(0, &mut rng);
            self.check();
        }
        self.store_again();
        self.check();
        assert!(!self.files.has_unsaved() && !self.vnode.state().is_in_use(), "{}", self.told);
    }
}

fn rng_flags(rng: &mut SimRng) -> OpenFlags {
    let write = rng.chance(600_000);
    OpenFlags { read: true, write, truncate: write && rng.chance(200_000), ..OpenFlags::READ }
}

fn put(file: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let (at, end) = (at as usize, at as usize + bytes.len());
    if !bytes.is_empty() {
        file.resize(file.len().max(end), 0);
        file[at..end].copy_from_slice(bytes);
    }
}
