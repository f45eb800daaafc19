//! Recording of replies in the status cache: status, promise and rights.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::Instant;
use afs_wire::fs::{CallBack, Status, VolSync};
use afs_wire::ids::Rights;

use crate::identity::{TokenId, TokenRights};
use crate::key::Key;
use crate::location::{Server, Volume};
use crate::promise::{Promise, ServerReset};
use crate::promises::Promises;
use crate::vnode::{Vnode, VnodeState};

/// Origin of a promise.
pub(crate) struct ReplyOrigin<'a> {
    pub server: &'a Arc<Server>,
    /// Number of the last break before the call began.
    pub serial: u64,
    pub started: Instant,
    /// Token of the call.
    pub token: TokenId,
}

/// Reply to a change by this client: the status of an object that was changed.
pub(crate) struct ChangeReply<'a> {
    pub status: &'a Status,
    pub sync: &'a VolSync,
    /// Number of the last break before the call began.
    pub serial: u64,
}

impl Promises {
    /// Records a status that came with a promise.
    pub fn record_reply(
        &self,
        volume: &Volume,
        vnode: &Vnode,
        status: &Status,
        callback: &CallBack,
        sync: &VolSync,
        origin: &ReplyOrigin<'_>,
    ) {
        self.note_creation(volume, sync);
        if let Some(since) = volume.end_unpromised() {
            self.parts.counters.volumes_unpromised.fetch_sub(1, Ordering::Relaxed);
            let seconds = self.parts.env.wall().secs.saturating_sub(since.0.into());
            tracing::info!(
                volume = volume.name(),
                seconds,
                "a server replies again: nothing is read without a promise any more"
            );
        }
        let reset = &origin.server.reset;
        let promise = Promise::of(callback, reset, origin.serial, origin.started, self.margin);
        let now = self.now();
        let mut state = vnode.state();
        let promised = state.is_promised(volume, now);
        // The call began before a change by this client was answered: its reply may show the earlier state, and servers
        // send no breaks to the client that makes a change.
        let is_doubtful = origin.serial < state.changed;
        let promise = promise.filter(|_| !is_doubtful);
        // The same holds for a call that began before a break, if the promise came after that. Times are whole seconds:
        // a status of the same version and time may be older.
        let held = state.promise.as_ref().map(|held| held.serial);
        let held = if volume.is_writable() { held } else { Some(state.as_of) };
        let is_before = is_doubtful || held.is_some_and(|held| origin.serial < held);
        if !(promised && is_before) {
            state.take_status(status, promised || is_doubtful);
            (state.creation, state.as_of) = (sync.creation, origin.serial);
        }
        state.is_gone = false;
        if !promised {
            state.rights.clear();
        }
        let promiser =
            promise.as_ref().filter(|_| callback.covers_rights()).map(|promise| promise.server.clone());
        let loses = self.note_rights(&mut state, volume, vnode.key, (status.caller_access, promiser), origin);
        if !volume.is_writable() {
            drop(state);
            if promise.is_some() {
                volume.set_promise(promise);
            }
        } else if !promised
            || state.promise.as_ref().is_none_or(|old| !is_doubtful && old.serial <= origin.serial)
        {
            let until = promise.as_ref().map(|promise| promise.until);
            state.promise = promise;
            self.parts.vnodes.set_expiry(vnode.key, until);
        }
        if loses {
            self.invalidate(vnode.key);
        }
    }

    /// Records the rights of the caller, unless a break came since the call began: they may follow from an older access
    /// list. Returns true if the caller has lost rights in a directory, so that the kernel's cache is outdated.
    fn note_rights(
        &self,
        state: &mut VnodeState,
        volume: &Volume,
        key: Key,
        (rights, promiser): (Rights, Option<ServerReset>),
        origin: &ReplyOrigin<'_>,
    ) -> bool {
        let broken = state.broken.max(volume.broken.load(Ordering::SeqCst)).max(origin.server.reset.get());
        if broken > origin.serial {
            return false;
        }
        let (asked, serial) = (origin.started, origin.serial);
        let loses = state.rights.note(TokenRights { token: origin.token, rights, asked, serial, promiser });
        if origin.token != TokenId::NONE && key.fid.is_directory() {
            self.parts.identity.rights_order().note(origin.token, key);
        }
        loses && key.fid.is_directory()
    }

    /// Records a status that came with a change by this client, without a promise; a valid promise stays valid. Replies
    /// to calls that began before this moment may be older.
    pub fn record_change(&self, volume: &Volume, vnode: &Vnode, change: &ChangeReply<'_>) {
        self.note_creation(volume, change.sync);
        let (serial, now) = (self.breaks.next(), self.now());
        let mut state = vnode.state();
        let promised = state.is_promised(volume, now);
        state.take_status(change.status, promised);
        state.creation = change.sync.creation;
        if change.serial < state.changed {
            // Another change by this client was answered since this one began: their order is unknown.
            state.promise = None;
        }
        state.changed = state.changed.max(serial);
        drop(state);
        self.parts.pins.doubt(vnode.key);
    }

    /// Records the status of a directory that has come to the version to which this client decided to bring it. Returns false if
    /// that is another version.
    pub fn record_settled(&self, vnode: &Vnode, status: &Status) -> bool {
        let mut state = vnode.state();
        let as_decided = state.status.is_some_and(|decided| decided.data_version == status.data_version);
        if as_decided {
            state.status = Some(Status { caller_access: Rights::NONE, ..*status });
        }
        as_decided
    }
}
