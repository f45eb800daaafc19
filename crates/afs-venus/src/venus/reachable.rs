//! Check that a user could find an object by its name, for requests that name objects by number.

use afs_rpc::boxed;

use crate::api::NodeId;
use crate::error::Result;
use crate::key::NodeTarget;
use crate::venus::Venus;
use crate::venus::directory::may_look;

impl Venus {
    /// An error unless the user may look up names in the directory of the object, as the kernel requires of those who name it by a path.
    /// The root of a volume passes: what is told of it without a right, the location servers tell everybody.
    ///
    /// # Errors
    /// The user may not; the node is unknown; no server replies.
    #[boxed]
    pub async fn require_reachable(&self, node: NodeId) -> Result<()> {
        let NodeTarget::Object(key) = self.node_target(node)? else { return Ok(()) };
        if key.is_volume_root() {
            return Ok(());
        }
        let volume = self.volume_of(key).await?;
        let vnode = self.vnode(key);
        let known = vnode.state().status;
        let status = match known {
            Some(status) => status,
            None => self.status(&vnode).await?,
        };
        let dir = self.vnode(key.sibling(status.parent, status.parent_unique));
        match self.known_rights(&dir, &volume, may_look) {
            Some(rights) if may_look(rights) => Ok(()),
            // In doubt as a look-up: the server permits some users more than their rights say.
            _ => self.reading().with_directory(&dir, |_| ()).await,
        }
    }
}
