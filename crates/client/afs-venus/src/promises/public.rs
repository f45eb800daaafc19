//! Public attributes and names: those that every user of this machine may see. All others are invalidated when users
//! change.

use afs_wire::fs::Status;
use afs_wire::ids::Rights;

use crate::key::Key;
use crate::promises::Promises;
use crate::vnode::{Vnode, needed_to_see};

impl Promises {
    /// True if all users may see the names in a directory.
    pub fn names_are_public(&self, dir: Key) -> bool {
        let dir = self.parts.vnodes.peek(dir);
        dir.is_some_and(|dir| self.public_rights(&dir).contains(Rights::LOOKUP))
    }

    /// True if all users may see the attributes of an object.
    pub fn attributes_are_public(&self, vnode: &Vnode, status: &Status) -> bool {
        let Some(wanted) = needed_to_see(status.kind) else { return true };
        let dir = self.parts.vnodes.peek(vnode.key.sibling(status.parent, status.parent_unique));
        dir.is_some_and(|dir| self.public_rights(&dir).contains(wanted))
    }

    /// Rights of anonymous users in a directory, as far as known.
    fn public_rights(&self, dir: &Vnode) -> Rights {
        let Some(volume) = self.parts.location.volume_of(dir.key) else { return Rights::NONE };
        let state = dir.state();
        let status = state.status.filter(|_| state.is_promised(&volume, self.now()));
        status.map_or(Rights::NONE, |status| status.anonymous_access)
    }

    /// The kernel caches attributes and names for all users only if they are public, or if there is one user alone.
    /// Whenever that may have changed, all others are invalidated.
    pub fn invalidate_private(&self) {
        for vnode in self.parts.vnodes.all() {
            if !self.is_public(&vnode) {
                self.invalidate(vnode.key);
            }
        }
    }

    /// Invalidates the attributes of all objects, whose owners may be shown as other users of the machine from now on.
    pub fn invalidate_owners(&self) {
        for vnode in self.parts.vnodes.all() {
            self.parts.kernel.invalidate_attributes(vnode.key);
        }
        self.parts.kernel.note_unpromised();
    }

    fn is_public(&self, vnode: &Vnode) -> bool {
        let Some(status) = vnode.state().status else { return false };
        match vnode.key.fid.is_directory() {
            true => self.names_are_public(vnode.key),
            false => self.attributes_are_public(vnode, &status),
        }
    }
}
