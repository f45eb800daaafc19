//! Cached rights, and for how long they are valid.
//!
//! Kept per directory and token, and valid while the directory is promised: a change of an access list breaks the
//! promise. A change of a group breaks none, so the rights of a token's owner are valid for at most
//! [`crate::Limits::rights_max_age`]; this does not concern the rights of `system:anyuser`.

use afs_wire::ids::Rights;

use crate::identity::TokenId;
use crate::key::Key;
use crate::location::Volume;
use crate::promises::Promises;
use crate::vnode::Vnode;

/// Rights that are valid now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KnownRights {
    pub rights: Rights,
    /// True if they will expire soon: they should be fetched again in the background.
    pub is_ageing: bool,
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
        // Known rights stay valid while no server is reachable: work on cached data need not stop because a change of
        // groups cannot be noticed.
        if token == TokenId::NONE || volume.is_unreachable(now) {
            return Some(KnownRights { rights, is_ageing: false });
        }
        let age = now.saturating_since(known.asked);
        (age <= self.rights_max_age).then(|| KnownRights { rights, is_ageing: age > self.rights_max_age / 2 })
    }

    /// True if the owner of a token owns an object; `None` if unknown.
    pub fn known_owner(&self, token: TokenId, vnode: &Vnode, volume: &Volume) -> Option<bool> {
        let state = vnode.state();
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, self.now()))?;
        Some(known.rights.contains(Rights::ADMINISTER))
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
    /// after it the last time whose rights expire soon too; at most `max`. Empty if those of `dir` are unknown or
    /// recent.
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

    /// True if rights are known that expire soon.
    fn is_ageing(&self, token: TokenId, dir: &Vnode, volume: &Volume) -> bool {
        let now = self.now();
        let state = dir.state();
        let known = state.rights.get(token).filter(|_| state.is_promised(volume, now));
        known.is_some_and(|known| now.saturating_since(known.asked) > self.rights_max_age / 2)
    }
}
