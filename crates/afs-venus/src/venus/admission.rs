//! Users who share a mount, and what the kernel may keep for all of them.
//!
//! The kernel keeps names and attributes once for all users of a mount, and shows them to whoever comes by kept entries,
//! without a request. So each directory has a set of the users who were led into it ([`crate::kernel::Admitted`]): by a
//! request, or along an entry that was kept while they were in the directory above. A name is kept as long as all users in its
//! directory may list that, and for a directory, all may list this one too: else its entry is not kept, and each user who
//! walks there is noticed. Before a user is led into a directory for the first time, the kernel's entries are invalidated,
//! all at once. The set lasts until the kernel forgets the directory, since a process may stay in it.

use afs_wire::ids::Rights;

use crate::api::{NodeId, TokenOwner};
use crate::kernel::Admitted;
use crate::key::{Key, NodeTarget};
use crate::venus::Venus;
use crate::vnode::needed_to_see;

impl Venus {
    /// Records that the current user is led into a directory by the reply in preparation. Must precede the reply on a mount of
    /// several users.
    pub fn admit(&self, dir: NodeId) {
        if let Some(owner) = self.context.user {
            self.let_in(dir, &Admitted::one(owner));
        }
    }

    /// True if all users that the kernel may lead into a directory may see the names in it, and will as long as the sink is
    /// not notified. Valid on mounts whose caller calls [`Venus::admit`].
    pub fn names_are_shared(&self, dir: NodeId) -> bool {
        let NodeTarget::Object(key) = self.kernel.nodes().node_target(dir).unwrap_or(NodeTarget::Cells)
        else {
            return false;
        };
        self.all_may(&self.kernel.nodes().admitted(dir), key, Rights::LOOKUP)
    }

    /// The same of the attributes of an object and the directory in which it is.
    pub fn attributes_are_shared(&self, node: NodeId) -> bool {
        let Some(NodeTarget::Object(key)) = self.kernel.nodes().node_target(node) else { return false };
        let Some(status) = self.vnodes.peek(key).and_then(|vnode| vnode.state().status) else { return false };
        let Some(wanted) = needed_to_see(status.kind) else { return true };
        let dir = key.sibling(status.parent, status.parent_unique);
        let Some(node) = self.kernel.nodes().held(NodeTarget::Object(dir)) else { return false };
        self.all_may(&self.kernel.nodes().admitted(node), dir, wanted)
    }

    /// Records that the kernel will keep the entry of a directory in another one: whoever is there may follow it. Returns
    /// false if not all of them may see the names in it: then it must not be kept.
    pub fn may_keep_entry(&self, parent: NodeId, dir: NodeId) -> bool {
        let admitted = self.kernel.nodes().admitted(parent);
        let may = match self.kernel.nodes().node_target(dir) {
            Some(NodeTarget::Object(key)) => {
                self.promises.names_are_public(key) || self.all_may(&admitted, key, Rights::LOOKUP)
            }
            Some(NodeTarget::Cells | NodeTarget::Snapshots(..) | NodeTarget::Unreached(..)) | None => false,
        };
        if may {
            self.let_in(dir, &admitted);
        }
        may
    }

    /// Records that a name was moved to another directory, together with what the kernel keeps of it. Must precede the
    /// reply.
    pub fn moved_into(&self, parent: NodeId, name: &[u8]) {
        let nodes = self.kernel.nodes();
        let Some(node) = nodes.child(parent, name).and_then(|target| nodes.held(target)) else { return };
        let Some(NodeTarget::Object(key)) = nodes.node_target(node) else { return };
        let is_kept = self.names_are_public(parent) || self.names_are_shared(parent);
        if !is_kept || (key.fid.is_directory() && !self.may_keep_entry(parent, node)) {
            self.kernel.invalidate_all_names();
        }
        self.kernel.invalidate_attributes(key);
    }

    /// Adds users to those who may be in a directory, and makes the kernel ask for each name again if it could show them
    /// some.
    fn let_in(&self, dir: NodeId, users: &Admitted) {
        if self.kernel.nodes().add_admitted(dir, users) {
            self.kernel.invalidate_all_names();
        }
    }

    /// True if all of some users have a right in a directory, as long as they are notified of nothing else.
    fn all_may(&self, users: &Admitted, dir: Key, wanted: Rights) -> bool {
        let (Some(vnode), Some(volume)) = (self.vnodes.peek(dir), self.location.volume_of(dir)) else {
            return false;
        };
        users.all(|owner: &TokenOwner| {
            let token = self.identity.credentials(Some(*owner), dir.cell).id;
            let known = self.promises.known_rights(token, &vnode, &volume, |rights| rights.contains(wanted));
            known.is_some_and(|known| known.is_promised && known.rights.contains(wanted))
        })
    }
}
