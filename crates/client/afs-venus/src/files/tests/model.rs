//! Model of the part: the expected state after each action, in plain lists.

mod checks;
mod eviction;
mod storing;

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

/// Expected state of data.
struct View {
    data: Weak<FileData>,
    version: u64,
    bytes: Vec<u8>,
    is_dirty: bool,
    is_lost: bool,
    is_backed: bool,
    /// The kernel has written by passthrough, and that was not detected yet.
    is_touched: bool,
}

/// Expected state of a handle.
struct Open {
    handle: Arc<Handle>,
    view: usize,
    is_passthrough: bool,
}

/// The part with one file, the server's versions of it, and the expected state.
pub struct World {
    files: Arc<Files>,
    vnode: Arc<Vnode>,
    /// All versions that the server has had.
    server: BTreeMap<u64, Vec<u8>>,
    views: Vec<View>,
    opens: Vec<Open>,
    current: Option<usize>,
    listed: Option<User>,
    is_orphan: bool,
    number: u32,
    pub step: String,
}

fn random_user(rng: &mut SimRng) -> User {
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
            step: String::new(),
        }
    }

    pub fn act(&mut self, action: &str, rng: &mut SimRng) {
        match action {
            "open" if self.opens.len() < 5 => drop(self.open(rng, rng_flags)),
            "give an open up" if self.opens.len() < 5 => self.give_an_open_up(rng),
            "store at another machine" if !self.is_orphan => {
                let length = rng.below(LENGTH_MAX);
                let bytes = some_bytes(rng, length);
                self.server.insert(self.version() + 1, bytes);
            }
            "store again" => self.retry_store(),
            "give up" => {
                self.files.give_up(&self.vnode);
                self.listed = None;
                self.current = self.current.filter(|_| !self.opens.is_empty());
            }
            "set a length without a handle" => self.set_length(rng, true),
            "fail to set a length without a handle" => self.set_length(rng, false),
            "remove" if !self.is_orphan => self.remove(),
            "lose a lock" if !self.is_orphan => self.lose(),
            _ => self.act_on_handle(action, rng),
        }
    }

    fn act_on_handle(&mut self, action: &str, rng: &mut SimRng) {
        if self.opens.is_empty() {
            return;
        }
        let n = rng.index(self.opens.len());
        let open = &self.opens[n];
        let (handle, view, writes) = (open.handle.clone(), open.view, open.handle.flags.write);
        match action {
            "write" | "cut" | "reach" | "zero" if writes => self.change(action, view, rng),
            "go direct" if writes && !open.is_passthrough => {
                handle.data().backed.store(true, Ordering::SeqCst);
                now(self.files.start_passthrough(&handle)).unwrap();
                self.note_touches(view);
                self.views[view].is_backed = true;
                self.opens[n].is_passthrough = true;
            }
            "leave direct" if open.is_passthrough => {
                self.note_writes(view);
                self.files.stop_passthrough(handle.id);
                self.opens[n].is_passthrough = false;
            }
            "write as the kernel" if open.is_passthrough => {
                let at = rng.below(LENGTH_MAX);
                let bytes = some_bytes(rng, 3);
                self.data(view).file.write_at(at, &bytes).unwrap();
                let view = &mut self.views[view];
                put(&mut view.bytes, at, &bytes);
                view.is_touched = true;
            }
            "store" => drop(self.store(view, handle.user, true)),
            "fail to store" => drop(self.store(view, handle.user, false)),
            "release" => self.release(n, rng),
            "go on" if !writes && !self.is_orphan => {
                let expected = self.expected();
                let data = now(self.files.switch_to_current(&handle, &self.status(), || ())).unwrap();
                self.opens[n].view = self.chosen(expected, &data);
            }
            _ => {}
        }
    }

    fn open(&mut self, rng: &mut SimRng, flags: impl Fn(&mut SimRng) -> OpenFlags) -> Option<usize> {
        if self.is_orphan && self.current.is_none() {
            return None;
        }
        let (expected, flags, user) = (self.expected(), flags(rng), random_user(rng));
        let handle = now(self.files.open_handle(&self.vnode, &self.status(), flags, user)).unwrap();
        let view = self.chosen(expected, &handle.data());
        if handle.may_change() {
            now(self.files.prepare_change(self.vnode.key, &handle.data())).unwrap();
        }
        if flags.truncate {
            self.note_writes(view);
            handle.note_cut_at_open();
            now(self.files.cut(&handle.data(), 0)).unwrap();
            self.views[view].bytes.clear();
            self.views[view].is_dirty = true;
        }
        self.opens.push(Open { handle, view, is_passthrough: false });
        Some(self.opens.len() - 1)
    }

    /// Index of the data that an open should get; `None`: new data.
    fn expected(&self) -> Option<usize> {
        let version = self.version();
        let is_ours = |n: usize| {
            let view = &self.views[n];
            view.is_dirty || self.is_orphan || view.version == version || self.has_writers(n)
        };
        self.current.filter(|n| is_ours(*n))
    }

    /// Index of the data that was chosen, compared with the expectation. New data is fetched.
    fn chosen(&mut self, expected: Option<usize>, data: &Arc<FileData>) -> usize {
        let known = self.views.iter().position(|view| view.data.as_ptr() == Arc::as_ptr(data));
        assert_eq!(known, expected, "{}: other data was chosen", self.step);
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

    fn change(&mut self, action: &str, view: usize, rng: &mut SimRng) {
        let (data, at) = (self.data(view), rng.below(LENGTH_MAX));
        self.note_writes(view);
        let view = &mut self.views[view];
        let length = view.bytes.len();
        match action {
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
                now(self.files.extend_to(&data, at)).unwrap();
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

    fn data(&self, view: usize) -> Arc<FileData> {
        self.views[view].data.upgrade().unwrap_or_else(|| panic!("{}: the data is gone", self.step))
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
