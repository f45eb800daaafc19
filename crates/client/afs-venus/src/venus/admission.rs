//! Users who share a mount, and what the kernel may keep for all of them.
//!
//! The kernel keeps names and attributes once for all users of a mount, and shows them to whoever comes by kept entries,
//! without a request. So each directory has a set of the users who were led into it ([`crate::kernel::Admitted`]): by a
//! request, or along an entry that was kept while they were in the directory above. A name is kept as long as all users in its
//! directory may list that, and for a directory, all may list this one too: else its entry is not kept, and each user who
//! walks there is noticed. Before a user is led into a directory for the first time, the kernel's entries in it are
//! invalidated. The set lasts until the kernel forgets the directory, since a process may stay in it.

use afs_wire::ids::Rights;

use crate::api::{NodeId, TokenOwner};
use crate::kernel::Admitted;
use crate::key::{Key, NodeTarget};
use crate::venus::Venus;
use crate::vnode::needed_to_see;

/// What follows from leading a user into a directory.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// Whether the kernel may keep the directory's entry, as far as that depends on the users.
    pub may_keep_entry: bool,
    /// Whether there are users in the directory who were not there before, beside others.
    pub has_new_users: bool,
}

impl Venus {
    /// Records that the current user is led into a directory by the reply in preparation, and decides whether the kernel may
    /// keep its entry in another one, whose users may all follow it then. Must precede the reply on a mount of several users;
    /// where there are new ones, the kernel has to look up every name in the directory again before the reply.
    pub fn admit(&self, parent: NodeId, dir: NodeId) -> Admission {
        let (may_keep_entry, are_led) = self.may_keep_entry(parent, dir);
        let is_led = self.context.user.is_some_and(|owner| self.let_in(dir, &Admitted::one(owner)));
        Admission { may_keep_entry, has_new_users: are_led || is_led }
    }

    /// Names in a directory that the kernel may hold.
    pub fn names_handed_out(&self, dir: NodeId) -> Vec<Box<[u8]>> {
        self.kernel.nodes().names_in(dir)
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

    /// Whether the kernel may keep the entry of a directory in its parent: if all users in the parent may list the directory.
    /// They may all follow the entry then, and are added to the directory's users; also returns whether some of them are new.
    fn may_keep_entry(&self, parent: NodeId, dir: NodeId) -> (bool, bool) {
        let admitted = self.kernel.nodes().admitted(parent);
        let may = match self.kernel.nodes().node_target(dir) {
            Some(NodeTarget::Object(key)) => {
                self.promises.names_are_public(key) || self.all_may(&admitted, key, Rights::LOOKUP)
            }
            Some(NodeTarget::Cells | NodeTarget::Snapshots(..) | NodeTarget::Unreached(..)) | None => false,
        };
        (may, may && self.let_in(dir, &admitted))
    }

    /// Records that a name was moved to another directory, together with what the kernel keeps of it. Must precede the
    /// reply.
    pub fn moved_into(&self, parent: NodeId, name: &[u8]) {
        let nodes = self.kernel.nodes();
        let Some(node) = nodes.child(parent, name).and_then(|target| nodes.held(target)) else { return };
        let Some(NodeTarget::Object(key)) = nodes.node_target(node) else { return };
        let is_kept = self.names_are_public(parent) || self.names_are_shared(parent);
        let entry = || if key.fid.is_directory() { self.may_keep_entry(parent, node) } else { (true, false) };
        if !is_kept || entry() != (true, false) {
            self.kernel.invalidate_all_names();
        }
        self.kernel.invalidate_attributes(key);
    }

    /// Adds users to those who may be in a directory. Returns true if there are new ones beside others: the kernel could show
    /// them names that it holds.
    fn let_in(&self, dir: NodeId, users: &Admitted) -> bool {
        let is_new = self.kernel.nodes().add_admitted(dir, users);
        if is_new {
            self.kernel.note_unpromised();
        }
        is_new
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
