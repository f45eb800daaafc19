//! Taking over what replies tell of an object: its status, the promise that comes with it, and the caller's rights.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::Instant;
use afs_wire::fs::{CallBack, Status, VolSync};

use crate::identity::{TokenId, TokenRights};
use crate::key::Key;
use crate::location::{Server, Volume};
use crate::promise::Promise;
use crate::promises::Promises;
use crate::vnode::{Vnode, VnodeState};

/// Where and when a promise comes from.
pub(crate) struct ReplyOrigin<'a> {
    pub server: &'a Arc<Server>,
    /// The number of the last break before the call began.
    pub serial: u64,
    pub started: Instant,
    /// For whom it was asked.
    pub token: TokenId,
}

/// What the reply to a change of ours says of an object that was changed.
pub(crate) struct ChangeReply<'a> {
    pub status: &'a Status,
    pub sync: &'a VolSync,
    /// The number of the last break before the call began.
    pub serial: u64,
}

impl Promises {
    /// Takes over a status that came with a promise.
    pub fn record_reply(
        &self,
        volume: &Volume,
        vnode: &Vnode,
        status: &Status,
        callback: &CallBack,
        sync: &VolSync,
        origin: &ReplyOrigin<'_>,
    ) {
        self.saw_volume(volume, sync);
        let reset = &origin.server.reset;
        let promise = Promise::of(callback, reset, origin.serial, origin.started, self.margin);
        let now = self.now();
        let mut state = vnode.state();
        let promised = state.is_promised(volume, now);
        // The call began before a change of ours was answered: it may tell what was before, and no server tells us of our own changes.
        let is_doubtful = origin.serial < state.changed;
        let promise = promise.filter(|_| !is_doubtful);
        // So may a call that began before a break which the promise came after. Times are whole seconds: a status of the same
        // version and time may be older.
        let is_before = is_doubtful || state.promise.as_ref().is_some_and(|held| origin.serial < held.serial);
        if !(promised && is_before) {
            state.take_status(status, promised || is_doubtful);
        }
        state.is_gone = false;
        state.creation = sync.creation;
        if !promised {
            state.rights.clear();
        }
        let loses = self.note_rights(&mut state, volume, vnode.key, status, origin);
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

    /// Remembers whose rights a reply told, unless something was broken since the call began: these may be rights by an
    /// older access list. Says whether he may less than before, which is then not what the kernel knows.
    fn note_rights(
        &self,
        state: &mut VnodeState,
        volume: &Volume,
        key: Key,
        status: &Status,
        origin: &ReplyOrigin<'_>,
    ) -> bool {
        let broken = state.broken.max(volume.broken.load(Ordering::SeqCst)).max(origin.server.reset.get());
        if broken > origin.serial {
            return false;
        }
        let rights = status.caller_access;
        let loses = state.rights.note(TokenRights { token: origin.token, rights, asked: origin.started });
        if origin.token != TokenId::NONE && key.fid.is_directory() {
            self.parts.identity.rights_order().note(origin.token, key);
        }
        loses && key.fid.is_directory()
    }

    /// Takes over a status that came with a change of ours, without a promise: one that holds goes on to hold. What was asked for
    /// before this moment may be older.
    pub fn record_change(&self, volume: &Volume, vnode: &Vnode, change: &ChangeReply<'_>) {
        self.saw_volume(volume, change.sync);
        let (serial, now) = (self.breaks.next(), self.now());
        let mut state = vnode.state();
        let promised = state.is_promised(volume, now);
        state.take_status(change.status, promised);
        state.creation = change.sync.creation;
        if change.serial < state.changed {
            // Another change of ours was answered since this one began: it cannot be known which of the two was first.
            state.promise = None;
        }
        state.changed = state.changed.max(serial);
    }
}
