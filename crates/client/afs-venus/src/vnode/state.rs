//! State of one object in the status cache.

use std::sync::Arc;

use afs_rpc::{Instant, sync};
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{FileTime, Rights, UnixSeconds};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::api::Kind;
use crate::cache::OfflineObject;
use crate::identity::RightsTable;
use crate::key::Key;
use crate::location::Volume;
use crate::locks::LockTable;
use crate::promise::Promise;
use crate::residency::Residency;
use crate::vnode::{Directory, Listing, LocalFile};

/// An object. The async locks order the work on it; the state is locked only briefly.
pub(crate) struct Vnode {
    pub key: Key,
    /// Serialises fetches of status or contents: a waiting task finds the result.
    pub fetching: sync::Mutex<()>,
    /// Serialises stores of a file.
    pub changing: sync::Mutex<()>,
    state: Mutex<VnodeState>,
}

/// Cached state of an object.
#[derive(Default)]
pub(crate) struct VnodeState {
    /// Rights of anonymous users only; those of others are in [`VnodeState::rights`].
    pub status: Option<Status>,
    /// When this client decided a change of it under a lease: the status has the server's time of the last change that was sent.
    pub decided_at: FileTime,
    /// Rights by token. Of a file or link only the ownership is used: the rest follows from its directory.
    pub rights: RightsTable,
    /// Creation time of the volume at the time of the status.
    pub creation: UnixSeconds,
    /// Number of the last break before the call that brought the status.
    pub as_of: u64,
    /// On a writable volume, the promise for this object.
    pub promise: Option<Promise>,
    /// Number of the last break of this object.
    pub broken: u64,
    /// Number from the same sequence, taken when the last change by this client was answered.
    pub changed: u64,
    /// Contents of a directory.
    pub directory: Option<Directory>,
    /// Text of a symbolic link or mount point.
    pub link: Option<Bytes>,
    /// Of a file, its local state.
    pub file: LocalFile,
    /// Of a directory, what the kernel may hold of its listing.
    pub listing: Listing,
    /// The server reported that the object does not exist any more: its data is not kept after the last handle.
    pub is_gone: bool,
    pub locks: LockTable,
    /// Of a directory, number of consecutive missing statuses of its objects.
    pub misses: u32,
    /// How it was promised last, if it was read without a promise since the mount began.
    pub promised_last: Option<Arc<OfflineObject>>,
    /// What stays of it in the cache: of what is kept the status, the contents of a directory, and the data of a file.
    pub residency: Residency,
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

    /// Records in which directory a file or link was found: it is in one only, whose access list applies. A client that
    /// moves it breaks the promises on the two directories, not on the moved object. Returns true if it was moved.
    pub fn is_found_in(&self, dir: Key) -> bool {
        let found = (dir.fid.vnode, dir.fid.unique);
        let mut state = self.state();
        let Some(status) = state.status.as_mut().filter(|_| !self.key.fid.is_directory()) else {
            return false;
        };
        let is_moved = (status.parent, status.parent_unique) != found;
        if is_moved {
            (status.parent, status.parent_unique) = found;
            state.rights.clear();
        }
        is_moved
    }

    /// The status, if it is valid without a call to the server.
    pub fn fresh_status(&self, volume: &Volume, now: Instant) -> Option<Status> {
        let state = self.state();
        if state.file.is_orphan() {
            return state.status;
        }
        state.is_promised(volume, now).then_some(state.status).flatten()
    }
}

impl VnodeState {
    /// True if the server would notify this client of a change.
    pub fn is_promised(&self, volume: &Volume, now: Instant) -> bool {
        if volume.is_writable() {
            let broken = self.broken.max(volume.broken.load(std::sync::atomic::Ordering::SeqCst));
            return self.promise.as_ref().is_some_and(|promise| promise.is_valid(now, broken));
        }
        self.is_of_state(volume) && volume.is_promised(now)
    }

    /// True if the status is of the state of a read-only volume that is known now. A server that has another one breaks the volume
    /// as a whole; a client that misses the break knows it by the creation time.
    fn is_of_state(&self, volume: &Volume) -> bool {
        let broken = volume.broken.load(std::sync::atomic::Ordering::SeqCst);
        Some(self.creation) == volume.creation() && self.as_of >= broken
    }

    /// True if the status is known and was promised, and the promise has ended with those of other objects: the server was
    /// lost or started again, the machine slept, the volume moved or was released. Not after a break of this object alone,
    /// which may be changed again soon.
    pub fn is_suspect(&self, volume: &Volume, now: Instant) -> bool {
        if self.status.is_none() || self.file.is_orphan() || self.is_gone {
            return false;
        }
        match volume.is_writable() {
            true => self.promise.is_some() && !self.is_promised(volume, now),
            // One call renews the promise of a read-only volume for all that was fetched since its last release.
            false => !self.is_of_state(volume),
        }
    }

    /// Records a status from a reply, unless a valid promise shows that a newer one is known.
    pub fn take_status(&mut self, status: &Status, promised: bool) {
        let older = |old: &Status| {
            status.data_version < old.data_version
                || (status.data_version == old.data_version && status.server_mod_time < old.server_mod_time)
        };
        if promised && self.status.as_ref().is_some_and(older) {
            return;
        }
        if let Some(old) = self.status.filter(|old| old.data_version != status.data_version)
            && let Some(data) = self.file.data()
        {
            data.left_behind(&old);
        }
        self.status = Some(Status { caller_access: Rights::NONE, ..*status });
    }

    /// True if it may be evicted.
    pub fn may_be_evicted(&self) -> bool {
        !self.is_in_use() && !self.listing.is_open() && !self.residency.is_kept()
    }

    /// True if programs use the object, or if it has state known only here.
    pub fn is_in_use(&self) -> bool {
        self.file.is_in_use() || !self.locks.is_empty()
    }
}

/// Type of an object as shown to programs: a mount point is a directory.
pub(crate) fn kind_of(status: &Status) -> Kind {
    match status.kind {
        FileKind::Directory => Kind::Directory,
        FileKind::Symlink if is_mount_point(status) => Kind::Directory,
        FileKind::Symlink => Kind::Symlink,
        FileKind::File | FileKind::Invalid => Kind::File,
    }
}

/// True for a mount point: a link without any x bit (docs/protocol/directory.md "5. Symbolic links and mount points").
pub(crate) fn is_mount_point(status: &Status) -> bool {
    status.kind == FileKind::Symlink && status.mode.marks_mount_point()
}
