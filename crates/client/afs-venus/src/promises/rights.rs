//! Cached rights, and for how long they are valid.
//!
//! Kept per directory and token, and valid while the directory is promised: a change of an access list breaks the
//! promise. A change of a group breaks the rights of all users at once, where the promise that came with them says so
//! ([`afs_wire::fs::CallBack::covers_rights`]). Servers of other implementations do not tell: the rights of a token's
//! owner are then valid for at most [`crate::Limits::rights_max_age`]; this does not concern those of `system:anyuser`.

use std::sync::atomic::Ordering;

use afs_rpc::Instant;
use afs_wire::ids::Rights;

use crate::identity::{TokenId, TokenRights};
use crate::key::Key;
use crate::location::Volume;
use crate::promises::Promises;
use crate::vnode::{Vnode, VnodeState};

/// Rights that are valid now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KnownRights {
    pub rights: Rights,
    /// True if they will expire soon: they should be fetched again in the background.
    pub is_ageing: bool,
    /// True if they are valid until this client is notified, or the promise on the directory ends.
    pub is_promised: bool,
}

/// State of rights that were received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validity {
    /// A server notifies of changes.
    Promised,
    /// Known since a moment; the second one will be over soon.
    Fresh,
    Ageing,
    /// A second is over.
    Old,
    /// What they rest on has changed.
    Broken,
}

impl Promises {
    /// The rights in a directory, if they are known to be `enough`, or at least known.
    pub fn known_rights(
        &self,
        token: TokenId,
        dir: &Vnode,
        volume: &Volume,
        enough: impl Fn(Rights) -> bool,
    ) -> Option<KnownRights> {
        let now = self.now();
        let state = dir.state();
        let everybody = state.status.filter(|_| state.is_promised(volume, now))?.anonymous_access;
        if enough(everybody) {
            return Some(KnownRights { rights: everybody, is_ageing: false, is_promised: true });
        }
        let known = state.rights.get(token)?;
        let validity = self.validity(&known, &state, volume, now);
        let is_valid = match validity {
            Validity::Promised | Validity::Fresh | Validity::Ageing => true,
            // Known rights stay valid while no server is reachable: work on cached data need not stop because a change
            // of groups cannot be noticed.
            Validity::Old => volume.is_unreachable(now),
            Validity::Broken => false,
        };
        is_valid.then(|| KnownRights {
            rights: everybody | known.rights,
            is_ageing: validity == Validity::Ageing,
            is_promised: validity == Validity::Promised,
        })
    }

    /// The validity of rights on an object that is promised.
    fn validity(&self, known: &TokenRights, state: &VnodeState, volume: &Volume, now: Instant) -> Validity {
        if self.rights_broken.load(Ordering::SeqCst) > known.serial {
            return Validity::Broken;
        }
        // The rights of users without a token change with the object alone.
        if known.token == TokenId::NONE || is_promiser(known, state, volume) {
            return Validity::Promised;
        }
        match now.saturating_since(known.asked) {
            age if age > self.rights_max_age => Validity::Old,
            age if age > self.rights_max_age / 2 => Validity::Ageing,
            _ => Validity::Fresh,
        }
    }

    /// True if the owner of a token owns an object; `None` if unknown.
    pub fn known_owner(&self, token: TokenId, vnode: &Vnode, volume: &Volume) -> Option<bool> {
        let (now, state) = (self.now(), vnode.state());
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, now))?;
        let is_valid = self.validity(&known, &state, volume, now) != Validity::Broken;
        is_valid.then(|| known.rights.contains(Rights::ADMINISTER))
    }

    /// Removes the cached rights on an object, and on its directory, after a server has refused to change it.
    pub fn was_refused(&self, token: TokenId, vnode: &Vnode) {
        let parent = {
            let mut state = vnode.state();
            state.rights.forget(token);
            state.status.map(|status| vnode.key.sibling(status.parent, status.parent_unique))
        };
        let dir = parent.filter(|parent| *parent != vnode.key).and_then(|key| self.parts.vnodes.peek(key));
        if let Some(dir) = dir {
            dir.state().rights.forget(token);
        }
    }

    /// Directories whose rights should be fetched together with those of `dir`, which comes first: those requested
    /// after it the last time whose rights expire soon too, or are broken; at most `max`. Empty if those of `dir` are
    /// unknown or recent.
    pub fn ageing_rights(&self, token: TokenId, dir: &Vnode, volume: &Volume, max: usize) -> Vec<Key> {
        if token == TokenId::NONE || !self.is_ageing(token, dir, volume) {
            return Vec::new();
        }
        let is_ageing = |key: &Key| {
            self.parts.vnodes.peek(*key).is_some_and(|other| self.is_ageing(token, &other, volume))
        };
        let others = self.parts.identity.rights_order().after(token, dir.key, max.saturating_sub(1));
        std::iter::once(dir.key).chain(others.into_iter().filter(is_ageing)).collect()
    }

    /// True if rights were known that expire soon, or are not valid any more.
    fn is_ageing(&self, token: TokenId, dir: &Vnode, volume: &Volume) -> bool {
        let (now, state) = (self.now(), dir.state());
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, now));
        known.is_some_and(|known| {
            !matches!(self.validity(&known, &state, volume, now), Validity::Promised | Validity::Fresh)
        })
    }

    /// True if rights on an object were known that are not valid any more, while the object itself is promised.
    pub fn were_known(&self, token: TokenId, dir: &Vnode, volume: &Volume) -> bool {
        let (now, state) = (self.now(), dir.state());
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, now));
        known.is_some_and(|known| self.validity(&known, &state, volume, now) == Validity::Old)
    }
}

/// True if the server that gave rights with a promise is the one that promises the object now: it notifies of both.
fn is_promiser(known: &TokenRights, state: &VnodeState, volume: &Volume) -> bool {
    let Some(promiser) = known.promiser.as_ref().filter(|server| server.get() <= known.serial) else {
        return false;
    };
    match volume.is_writable() {
        true => state.promise.as_ref().is_some_and(|promise| promise.server.is_same(promiser)),
        false => volume.is_promised_by(promiser),
    }
}
