//! Check that a user could find an object by its name, for requests that name objects by number.

use std::collections::BTreeSet;

use afs_rpc::boxed;

use crate::api::NodeId;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::NodeTarget;
use crate::venus::Venus;
use crate::venus::directory::may_look;

/// Most directories that are looked at: all but mount points of one volume have one.
const DIRECTORIES_MAX: usize = 8;

impl Venus {
    /// An error unless the user may look up names in a directory in which the kernel has found the node, as the kernel requires of those
    /// who name it by a path. Those above that directory are not looked at. The root of the mount passes.
    ///
    /// # Errors
    /// The user may not; the node is unknown; no server replies.
    #[boxed]
    pub async fn require_reachable(&self, node: NodeId) -> Result<()> {
        self.node_target(node)?;
        if node == NodeId::ROOT {
            return Ok(());
        }
        let names = self.kernel.nodes().names_of(node);
        let directories: BTreeSet<NodeId> = names.iter().map(|(dir, _)| *dir).collect();
        let mut refused = VenusError::new(ErrorKind::AccessDenied, "look up");
        for dir in directories.into_iter().take(DIRECTORIES_MAX) {
            match self.require_lookup(dir).await {
                Ok(()) => return Ok(()),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    async fn require_lookup(&self, dir: NodeId) -> Result<()> {
        // Everybody may look at what the mount makes itself.
        let NodeTarget::Object(key) = self.node_target(dir)? else { return Ok(()) };
        let volume = self.volume_of(key).await?;
        let vnode = self.vnode(key);
        match self.known_rights(&vnode, &volume, may_look) {
            Some(rights) if may_look(rights) => Ok(()),
            // In doubt as a look-up: the server permits some users more than their rights say.
            _ => self.reading().with_directory(&vnode, |_| ()).await,
        }
    }
}
