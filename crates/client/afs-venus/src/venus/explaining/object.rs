//! Cached state of an object: promise, status, data, bypass and locks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::{FileKind, Status};

use crate::api::{
    ExplainedBypass, ExplainedData, ExplainedLock, ExplainedLocks, ExplainedPromise, ExplainedStatus,
    Explanation, LockHolder, LockKind, LockRange,
};
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::{Vnode, is_mount_point};

/// Limit of the locks that are told.
const LOCKS_MAX: usize = 32;

impl Venus {
    pub(super) fn promise_explained(&self, vnode: &Vnode, volume: &Volume) -> ExplainedPromise {
        let now = self.now();
        let state = vnode.state();
        let is_of_volume = !volume.is_writable();
        let broken = match is_of_volume {
            true => volume.broken.load(Ordering::SeqCst),
            false => state.broken.max(volume.broken.load(Ordering::SeqCst)),
        };
        let until = match is_of_volume {
            true => volume.promised_until(),
            false => state.promise.as_ref().map(|promise| promise.until),
        };
        let word = match until {
            _ if state.is_promised(volume, now) => "held",
            Some(until) if until <= now => "expired",
            Some(_) => "broken",
            None if broken > 0 => "broken",
            None => "none",
        };
        let left = until.filter(|_| word == "held").map(|until| until.saturating_since(now).as_secs());
        drop(state);
        let unpromised = self.unpromised(vnode.key);
        ExplainedPromise { state: word.into(), is_of_volume, seconds_left: left, unpromised }
    }

    /// What a user who may see the object is told of it.
    pub(super) fn explain_state(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Volume,
        status: &Status,
        told: &mut Explanation,
    ) {
        told.status = Some(ExplainedStatus {
            is_current: vnode.fresh_status(volume, self.now()).is_some(),
            data_version: status.data_version.0,
            length_bytes: status.length,
            mode: format!("{:03o}", status.mode.0 & 0o7777),
        });
        if status.kind != FileKind::File {
            return;
        }
        let (is_bypassed, reason) = self.bypass_now(vnode, status.length);
        let request = vnode.state().file.bypass_request().to_string();
        told.bypass = Some(ExplainedBypass { is_bypassed, reason: reason.into(), request });
        told.data = Some(self.data_explained(vnode, status));
        told.locks = Some(locks_explained(vnode));
    }

    fn data_explained(&self, vnode: &Vnode, status: &Status) -> ExplainedData {
        let state = vnode.state();
        let open_handles = state.file.opens();
        if let Some(data) = state.file.data() {
            let content = data.content();
            return ExplainedData {
                length_bytes: content.length,
                cached_bytes: Some(content.present.bytes()),
                dirty_bytes: content.dirty_bytes(),
                fetching_bytes: content.fetching.bytes(),
                open_handles,
                failed_stores: content.failures,
            };
        }
        drop(state);
        ExplainedData {
            length_bytes: status.length,
            cached_bytes: self.files.kept_bytes(vnode.key, status.data_version),
            dirty_bytes: 0,
            fetching_bytes: 0,
            open_handles,
            failed_stores: 0,
        }
    }
}

fn locks_explained(vnode: &Vnode) -> ExplainedLocks {
    let state = vnode.state();
    let is_lost = state.file.data().is_some_and(|data| data.lost.load(Ordering::SeqCst));
    let at_server = state.locks.at_server.map(|kind| lock_text(kind).into());
    let here = state.locks.holders().take(LOCKS_MAX).map(|LockHolder { kind, range, pid }| ExplainedLock {
        kind: lock_text(kind).into(),
        first: range.first,
        last: (range.last != LockRange::WHOLE.last).then_some(range.last),
        pid,
    });
    ExplainedLocks { at_server, is_lost, here: here.collect() }
}

fn lock_text(kind: LockKind) -> &'static str {
    match kind {
        LockKind::Read => "read",
        LockKind::Write => "write",
    }
}

/// The type of an object in words.
pub(super) fn kind_text(status: &Status) -> &'static str {
    match status.kind {
        FileKind::File | FileKind::Invalid => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink if is_mount_point(status) => "mount point",
        FileKind::Symlink => "symbolic link",
    }
}
