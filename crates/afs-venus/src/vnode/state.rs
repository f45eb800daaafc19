//! One object in the cache.

use afs_rpc::{Instant, sync};
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{Rights, UnixSeconds};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::api::Kind;
use crate::identity::RightsTable;
use crate::key::Key;
use crate::location::Volume;
use crate::locks::LockTable;
use crate::promise::Promise;
use crate::vnode::{Directory, Listing, LocalFile};

/// An object. The async locks order the work on it; the state itself is only ever locked for a moment.
pub(crate) struct Vnode {
    pub key: Key,
    /// One fetch of status or contents at a time: the others find it done.
    pub fetching: sync::Mutex<()>,
    /// One change at a time: of a directory's entries, or a store of a file.
    pub changing: sync::Mutex<()>,
    state: Mutex<VnodeState>,
}

/// What is known of an object.
#[derive(Default)]
pub(crate) struct VnodeState {
    /// Without anybody's rights but everybody's ([`VnodeState::rights`]).
    pub status: Option<Status>,
    /// Rights by person. Of a file or link only whether he owns it is of use: the rest follows from its directory.
    pub rights: RightsTable,
    /// Creation time of the volume as of the status.
    pub creation: UnixSeconds,
    /// On a writable volume: the promise for this object.
    pub promise: Option<Promise>,
    /// The number of the last break of this object.
    pub broken: u64,
    /// The number drawn from the same line when a change of ours was answered last.
    pub changed: u64,
    /// Contents of a directory.
    pub directory: Option<Directory>,
    /// Text of a symbolic link or mount point.
    pub link: Option<Bytes>,
    /// Of a file: what is on this machine.
    pub file: LocalFile,
    /// Of a directory: what the kernel may hold of its names.
    pub listing: Listing,
    /// The server said that it does not exist any more: its data are not kept after the last handle.
    pub is_gone: bool,
    pub locks: LockTable,
    /// Of a directory: how often in a row the status of something in it was not here.
    pub misses: u32,
}

impl Vnode {
    pub fn new(key: Key) -> Self {
        Vnode {
            key,
            fetching: sync::Mutex::new(()),
            changing: sync::Mutex::new(()),
            state: Mutex::new(VnodeState::default()),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, VnodeState> {
        self.state.lock()
    }

    /// Notes in which directory a file or link was found: it is in one only, whose access list is its own. Who moves it
    /// from one to another breaks promises on the two directories, not on what is moved.
    pub fn is_found_in(&self, dir: Key) {
        let found = (dir.fid.vnode, dir.fid.unique);
        let mut state = self.state();
        let Some(status) = state.status.as_mut().filter(|_| !self.key.fid.is_directory()) else { return };
        if (status.parent, status.parent_unique) != found {
            (status.parent, status.parent_unique) = found;
            state.rights.clear();
        }
    }

    /// The status, if it can be relied on without asking.
    pub fn fresh_status(&self, volume: &Volume, now: Instant) -> Option<Status> {
        let state = self.state();
        if state.file.is_orphan() {
            return state.status;
        }
        state.is_promised(volume, now).then_some(state.status).flatten()
    }
}

impl VnodeState {
    /// Whether the server would tell us of a change.
    pub fn is_promised(&self, volume: &Volume, now: Instant) -> bool {
        if volume.is_writable() {
            let broken = self.broken.max(volume.broken.load(std::sync::atomic::Ordering::SeqCst));
            return self.promise.as_ref().is_some_and(|promise| promise.holds(now, broken));
        }
        Some(self.creation) == volume.creation() && volume.is_promised(now)
    }

    /// Takes a status over from a reply, unless we know better by a promise that holds.
    pub fn take_status(&mut self, status: &Status, promised: bool) {
        let older = |old: &Status| {
            status.data_version < old.data_version
                || (status.data_version == old.data_version && status.server_mod_time < old.server_mod_time)
        };
        if promised && self.status.as_ref().is_some_and(older) {
            return;
        }
        self.status = Some(Status { caller_access: Rights::NONE, ..*status });
    }

    /// Whether it may be dropped to save memory.
    pub fn may_be_evicted(&self) -> bool {
        !self.is_in_use() && !self.listing.is_open()
    }

    /// Whether something here is used by programs, or known here only.
    pub fn is_in_use(&self) -> bool {
        self.file.is_in_use() || !self.locks.is_empty()
    }
}

/// What an object is, seen from above: a mount point is a directory.
pub(crate) fn kind_of(status: &Status) -> Kind {
    match status.kind {
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink if is_mount_point(status) => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::File | FileKind::Invalid => Kind::File,
    }
}

/// Whether it is a mount point: a link without any x bit (docs/protocol/directory.md "5. Symbolic links and mount
/// points").
pub(crate) fn is_mount_point(status: &Status) -> bool {
    status.kind == FileKind::Symlink && status.mode.marks_mount_point()
}
