//! Table of backing files: which open files the kernel reads and writes directly in the cache file.
//!
//! The kernel requires that all simultaneous opens of an inode use the same backing file, or none does. This crate
//! requires in addition that opens which share the kernel's pages read the same data, so that a mapping shows one
//! version. A backing file is registered with the kernel once and kept for the next open, since a registration costs as
//! much as the open itself.

use afs_venus::{Backing, HandleId, Opened};
use fuser::{BackingId, INodeNo};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// Most backing files kept registered while they are not open. Each holds its cache file's space on disk even after the
/// cache dropped it.
const IDLE_MAX: usize = 1024;

/// Decision on an open. Generic over the registration, so that the rules can be tested without a kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission<R> {
    /// The kernel reads and writes the backing file.
    Through(Arc<R>),
    /// The kernel uses its page cache, and this process serves its reads and writes.
    Cached,
    /// Each read and write is a request, beside opens that use the backing file; a mapping is one of that.
    Apart(Arc<R>),
    /// The inode is open in a mode or with data that this open cannot share.
    Conflict,
}

/// Writes of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// None, or such as a later request makes durable.
    Plain,
    /// Each is durable when it returns: the kernel would make only the cache file durable.
    Durable,
    /// The same, and the open reads nothing, so that no mapping of it writes.
    DurableOnly,
}

/// State of all inodes that are open or have a registered backing file.
pub(crate) struct Passthrough<R = BackingId> {
    allowed: AtomicBool,
    table: Mutex<Table<R>>,
}

struct Table<R> {
    inodes: HashMap<u64, Inode<R>>,
    /// Inodes that are not open, in the order of their last close.
    idle: BTreeMap<u64, u64>,
    clock: u64,
}

struct Inode<R> {
    /// The handles of all opens.
    handles: BTreeSet<HandleId>,
    /// Those that share neither pages nor the backing file with the others.
    apart: BTreeSet<HandleId>,
    /// The backing file's number and registration. While it is open, all opens use it, or none does.
    backing: Option<(u64, Arc<R>)>,
    /// The data opened last; while it is open, the data of all opens.
    data: u64,
    /// Key in `idle` while it is not open.
    closed_at: u64,
}

impl<R> Inode<R> {
    fn is_open(&self) -> bool {
        !self.handles.is_empty()
    }
}

impl<R> Passthrough<R> {
    /// `allowed`: whether passthrough may be used, as far as is known at the start.
    pub(crate) fn new(allowed: bool) -> Self {
        let table = Table { inodes: HashMap::new(), idle: BTreeMap::new(), clock: 0 };
        Self { allowed: AtomicBool::new(allowed), table: Mutex::new(table) }
    }

    /// Whether Venus should be asked for backing files.
    pub(crate) fn allowed(&self) -> bool {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Switches passthrough off: the kernel refuses it.
    pub(crate) fn forbid(&self) {
        self.allowed.store(false, Ordering::Relaxed);
    }

    fn table(&self) -> MutexGuard<'_, Table<R>> {
        self.table.lock()
    }

    /// Decides on an open of `ino`, and counts it. `register` registers a backing file with the kernel.
    pub(crate) fn admit(
        &self,
        ino: INodeNo,
        opened: &Opened,
        writes: Writes,
        register: impl FnOnce(&File) -> io::Result<R>,
    ) -> Admission<R> {
        let Opened { handle, data, .. } = *opened;
        let backing = opened.backing.as_ref();
        let mut table = self.table();
        if !table.goes_with(ino, data, backing) {
            let shared = table.backing_with(ino, data).filter(|_| writes == Writes::DurableOnly);
            let Some(shared) = shared else { return Admission::Conflict };
            table.opened_apart(ino.0, handle, data);
            return Admission::Apart(shared);
        }
        let (is_open, used) =
            table.inodes.get(&ino.0).map_or((false, None), |i| (i.is_open(), i.backing.clone()));
        let admission = match (is_open, used, backing) {
            (_, Some((id, registered)), Some(backing)) if id == backing.id => Admission::Through(registered),
            (true, ..) | (false, _, None) => Admission::Cached,
            (false, _, Some(backing)) => self.registered(register(&backing.file)),
        };
        let keep = match &admission {
            Admission::Through(registered) => backing.map(|b| (b.id, registered.clone())),
            _ => None,
        };
        table.opened(ino.0, handle, data, keep);
        match admission {
            Admission::Through(registered) if writes != Writes::Plain => {
                table.set_apart(ino.0, handle);
                Admission::Apart(registered)
            }
            admission => admission,
        }
    }

    /// Whether an open needs the backing file that other opens of the inode use.
    pub(crate) fn is_backed(&self, ino: INodeNo) -> bool {
        let table = self.table();
        table.inodes.get(&ino.0).is_some_and(|inode| inode.is_open() && inode.backing.is_some())
    }

    /// A handle by which the inode is open with the pages or the backing file of the inode, if it is.
    pub(crate) fn handle(&self, ino: INodeNo) -> Option<HandleId> {
        let table = self.table();
        let inode = table.inodes.get(&ino.0)?;
        inode.handles.difference(&inode.apart).next().copied()
    }

    /// The handles of an inode without a backing file have switched to other data.
    pub(crate) fn switched(&self, ino: INodeNo, data: u64) {
        if let Some(inode) = self.table().inodes.get_mut(&ino.0).filter(|inode| inode.backing.is_none()) {
            inode.data = data;
        }
    }

    /// Whether data that is being opened could be opened under this number, as far as the files open under it permit.
    pub(crate) fn goes_with(&self, ino: INodeNo, data: u64, backing: Option<&Backing>) -> bool {
        self.table().goes_with(ino, data, backing)
    }

    /// Whether a file is open under this number.
    pub(crate) fn is_open(&self, ino: INodeNo) -> bool {
        self.table().inodes.get(&ino.0).is_some_and(Inode::is_open)
    }

    /// Counts an open that shares neither pages nor a backing file with the others of the inode.
    pub(crate) fn open_apart(&self, ino: INodeNo, handle: HandleId, data: u64) {
        self.table().opened_apart(ino.0, handle, data);
    }

    /// Whether the kernel sends each read and write of a handle to this process, and nothing else.
    pub(crate) fn is_apart(&self, ino: INodeNo, handle: HandleId) -> bool {
        self.table().inodes.get(&ino.0).is_some_and(|inode| inode.apart.contains(&handle))
    }

    /// Decision after an attempt to register a backing file. If the kernel refuses passthrough in general, it is
    /// switched off.
    fn registered(&self, outcome: io::Result<R>) -> Admission<R> {
        match outcome {
            Ok(registered) => Admission::Through(Arc::new(registered)),
            Err(error) => {
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EPERM | libc::ELOOP | libc::EOPNOTSUPP | libc::ENOTTY)
                ) {
                    tracing::info!("no passthrough, reads and writes go through this process: {error}");
                    self.forbid();
                } else {
                    tracing::warn!("the kernel refused a backing file: {error}");
                }
                Admission::Cached
            }
        }
    }

    /// An open that [`Passthrough::admit`] counted has ended.
    pub(crate) fn release(&self, ino: INodeNo, handle: HandleId) {
        let mut table = self.table();
        let dropped = table.closed(ino.0, handle);
        // Registrations are returned to the kernel outside the lock.
        drop(table);
        drop(dropped);
    }

    /// The inode's data are stale: drops a registration that is not in use.
    pub(crate) fn stale(&self, ino: INodeNo) {
        let mut table = self.table();
        let idle = table.inodes.get(&ino.0).is_some_and(|i| !i.is_open());
        let dropped = if idle { table.remove(ino.0) } else { None };
        drop(table);
        drop(dropped);
    }
}

impl<R> Table<R> {
    fn goes_with(&self, ino: INodeNo, data: u64, backing: Option<&Backing>) -> bool {
        let Some(inode) = self.inodes.get(&ino.0).filter(|inode| inode.is_open()) else { return true };
        match &inode.backing {
            Some((id, _)) => backing.is_some_and(|backing| backing.id == *id),
            None => inode.data == data,
        }
    }

    /// The backing file of an open inode, if it has this data.
    fn backing_with(&self, ino: INodeNo, data: u64) -> Option<Arc<R>> {
        let inode = self.inodes.get(&ino.0).filter(|inode| inode.is_open() && inode.data == data)?;
        inode.backing.as_ref().map(|(_, registered)| registered.clone())
    }

    fn opened_apart(&mut self, ino: u64, handle: HandleId, data: u64) {
        let used = self.inodes.get(&ino).map(|inode| (inode.data, inode.backing.clone()));
        let (data, backing) = used.unwrap_or((data, None));
        self.opened(ino, handle, data, backing);
        self.set_apart(ino, handle);
    }

    fn set_apart(&mut self, ino: u64, handle: HandleId) {
        self.inodes.entry(ino).and_modify(|inode| _ = inode.apart.insert(handle));
    }

    fn opened(&mut self, ino: u64, handle: HandleId, data: u64, backing: Option<(u64, Arc<R>)>) {
        let new =
            Inode { handles: BTreeSet::new(), apart: BTreeSet::new(), backing: None, data, closed_at: 0 };
        let inode = self.inodes.entry(ino).or_insert(new);
        if !inode.is_open() {
            self.idle.remove(&inode.closed_at);
        }
        inode.handles.insert(handle);
        inode.backing = backing;
        inode.data = data;
    }

    /// One open less. Returns what is to be dropped.
    fn closed(&mut self, ino: u64, handle: HandleId) -> Option<Inode<R>> {
        let inode = self.inodes.get_mut(&ino)?;
        inode.apart.remove(&handle);
        if !inode.handles.remove(&handle) || inode.is_open() {
            return None;
        }
        if inode.backing.is_none() {
            return self.inodes.remove(&ino);
        }
        self.clock += 1;
        inode.closed_at = self.clock;
        self.idle.insert(self.clock, ino);
        if self.idle.len() <= IDLE_MAX {
            return None;
        }
        let oldest = self.idle.first_key_value().map(|(_, ino)| *ino)?;
        self.remove(oldest)
    }

    fn remove(&mut self, ino: u64) -> Option<Inode<R>> {
        let inode = self.inodes.remove(&ino)?;
        self.idle.remove(&inode.closed_at);
        Some(inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INO: INodeNo = INodeNo(9);

    fn backing(id: u64) -> Backing {
        Backing { file: Arc::new(File::open("/dev/null").unwrap()), id }
    }

    fn opened(handle: u64, data: u64, backing: Option<Backing>) -> Opened {
        Opened { handle: HandleId(handle), keep_cache: false, data, backing }
    }

    fn open(table: &Passthrough<u32>, handle: u64, id: Option<u64>) -> Admission<u32> {
        let opened = opened(handle, id.unwrap_or(0), id.map(backing));
        table.admit(INO, &opened, Writes::Plain, |_| Ok(id.unwrap_or(0) as u32))
    }

    #[test]
    fn opens_of_one_inode_stay_in_one_mode() {
        let table = Passthrough::new(true);
        assert_eq!(open(&table, 1, Some(5)), Admission::Through(Arc::new(5)));
        assert_eq!(open(&table, 2, Some(5)), Admission::Through(Arc::new(5)));
        assert_eq!(open(&table, 3, Some(6)), Admission::Conflict);
        assert_eq!(open(&table, 4, None), Admission::Conflict);
        table.release(INO, HandleId(1));
        assert_eq!(table.handle(INO), Some(HandleId(2)));
        table.release(INO, HandleId(2));
        assert_eq!((table.handle(INO), open(&table, 5, None)), (None, Admission::Cached));
        let opened = opened(6, 0, Some(backing(5)));
        assert_eq!(table.admit(INO, &opened, Writes::Plain, |_| Ok(5)), Admission::Cached);
    }

    #[test]
    fn a_registration_is_used_again_after_the_last_close() {
        let table = Passthrough::new(true);
        open(&table, 1, Some(5));
        table.release(INO, HandleId(1));
        let refuse = |_: &File| -> io::Result<u32> { panic!("registered twice") };
        let again = table.admit(INO, &opened(2, 5, Some(backing(5))), Writes::Plain, refuse);
        assert_eq!(again, Admission::Through(Arc::new(5)));
        table.release(INO, HandleId(2));
        table.stale(INO);
        let other = table.admit(INO, &opened(3, 5, Some(backing(5))), Writes::Plain, |_| Ok(77));
        assert_eq!(other, Admission::Through(Arc::new(77)));
    }

    #[test]
    fn durable_writes_are_requests_beside_a_backing_file() {
        use Writes::{Durable, DurableOnly};
        let table = Passthrough::<u32>::new(true);
        let open = |handle, data, writes, id: Option<u64>| {
            table.admit(INO, &opened(handle, data, id.map(backing)), writes, |_| Ok(7))
        };
        assert_eq!(open(1, 7, Durable, None), Admission::Cached);
        assert!(!table.is_apart(INO, HandleId(1)) && !table.is_backed(INO));
        table.release(INO, HandleId(1));
        assert_eq!(open(2, 7, Writes::Plain, Some(7)), Admission::Through(Arc::new(7)));
        assert!(table.is_backed(INO));
        assert_eq!(open(3, 7, DurableOnly, None), Admission::Apart(Arc::new(7)));
        // A mapping of it would write without anybody's knowledge; and other data cannot be opened under the same number.
        assert_eq!(open(4, 7, Durable, None), Admission::Conflict);
        assert_eq!(open(5, 8, DurableOnly, None), Admission::Conflict);
        assert_eq!(open(6, 7, Durable, Some(7)), Admission::Apart(Arc::new(7)));
        let apart = [2, 3, 6].map(|handle| table.is_apart(INO, HandleId(handle)));
        assert_eq!(apart, [false, true, true]);
        assert_eq!(table.handle(INO), Some(HandleId(2)));
    }

    #[test]
    fn handles_that_share_the_kernels_pages_have_the_same_data() {
        let table = Passthrough::<u32>::new(false);
        let open = |handle, data| table.admit(INO, &opened(handle, data, None), Writes::Plain, |_| Ok(0));
        assert_eq!(
            (open(1, 1), open(2, 1), open(3, 2)),
            (Admission::Cached, Admission::Cached, Admission::Conflict)
        );
        assert!(table.is_open(INO) && !table.goes_with(INO, 2, None));
        table.release(INO, HandleId(1));
        assert_eq!(open(4, 2), Admission::Conflict);
        table.switched(INO, 2);
        assert_eq!(open(5, 2), Admission::Cached);
        [2, 5].into_iter().for_each(|handle| table.release(INO, HandleId(handle)));
        assert_eq!((table.is_open(INO), open(6, 3)), (false, Admission::Cached));
    }

    #[test]
    fn a_refusal_on_principle_ends_the_asking() {
        let table = Passthrough::<u32>::new(true);
        let refuse = |_: &File| Err(io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(
            table.admit(INO, &opened(1, 5, Some(backing(5))), Writes::Plain, refuse),
            Admission::Cached
        );
        assert!(!table.allowed());
    }

    #[test]
    fn idle_registrations_are_bounded() {
        let table = Passthrough::<u32>::new(true);
        for n in 0..2000 {
            table.admit(INodeNo(n), &opened(n, n, Some(backing(n))), Writes::Plain, |_| Ok(0));
            table.release(INodeNo(n), HandleId(n));
        }
        let inner = table.table();
        assert_eq!((inner.inodes.len(), inner.idle.len()), (IDLE_MAX, IDLE_MAX));
    }
}
