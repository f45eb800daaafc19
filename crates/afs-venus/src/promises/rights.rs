//! Rights as they are known here, and for how long they count.
//!
//! They are kept per directory and token, and count while the directory is promised: a change of an access list breaks the
//! promise. A change of a group breaks nothing, so the rights of a token's holder count no longer than
//! [`crate::Limits::rights_max_age`]; what everybody may do (`system:anyuser`) is not subject to that.

use afs_wire::ids::Rights;

use crate::identity::TokenId;
use crate::key::Key;
use crate::location::Volume;
use crate::promises::Promises;
use crate::vnode::Vnode;

/// Rights that count at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KnownRights {
    pub rights: Rights,
    /// They do not count much longer: they should be asked for again, though no program need wait for it.
    pub is_ageing: bool,
}

impl Promises {
    /// The rights in a directory, if they are known to be `enough` or at least known.
    pub fn known_rights(
        &self,
        token: TokenId,
        dir: &Vnode,
        volume: &Volume,
        enough: impl Fn(Rights) -> bool,
    ) -> Option<KnownRights> {
        let now = self.now();
        let (everybody, known) = {
            let state = dir.state();
            let status = state.status.filter(|_| state.is_promised(volume, now))?;
            (status.anonymous_access, state.rights.get(token))
        };
        if enough(everybody) {
            return Some(KnownRights { rights: everybody, is_ageing: false });
        }
        let known = known?;
        let rights = everybody | known.rights;
        // What was known before goes on to count where no server can be asked: work on what is in the cache need not stop
        // because it cannot be told whether a user has left a group.
        if token == TokenId::NONE || volume.is_unreachable(now) {
            return Some(KnownRights { rights, is_ageing: false });
        }
        let age = now.saturating_since(known.asked);
        (age <= self.rights_max_age).then(|| KnownRights { rights, is_ageing: age > self.rights_max_age / 2 })
    }

    /// Whether the holder of a token is known to own an object; `None` if that is not known.
    pub fn known_owner(&self, token: TokenId, vnode: &Vnode, volume: &Volume) -> Option<bool> {
        let state = vnode.state();
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, self.now()))?;
        Some(known.rights.contains(Rights::ADMINISTER))
    }

    /// A server has refused to change an object: what is known of the rights on it, and on its directory, is asked for
    /// again.
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

    /// Directories whose rights are to be asked for together with those of `dir`, which comes first: those that were asked for
    /// after it the last time and are getting old, too; at most `max`. None if those of `dir` are not known, or young.
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

    /// Whether rights are known that do not count much longer.
    fn is_ageing(&self, token: TokenId, dir: &Vnode, volume: &Volume) -> bool {
        let now = self.now();
        let state = dir.state();
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, now));
        known.is_some_and(|known| now.saturating_since(known.asked) > self.rights_max_age / 2)
    }
}
