//! Properties of the objects of a mount for tools, which name an object by the inode number under which the kernel holds it.

use super::messages::TokenReply;
use afs_fuse::{INodeNo, Inodes};
use afs_net::System;
use afs_rpc::EnvExt;
use afs_rpc::future::{Either, select};
use afs_venus::{NodeId, Result, TokenOwner, Venus};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

/// Longest time until a reply: nobody tells that the program which asked was killed, and its connection is counted until then.
const REPLY_MAX: Duration = Duration::from_secs(70);

/// The properties of a mount.
pub struct MountProperties {
    system: Arc<System>,
    venus: Arc<Venus>,
    inodes: Arc<Inodes>,
}

/// A request for a property.
pub(super) struct PropertyRequest {
    pub(super) inode: u64,
    pub(super) name: Vec<u8>,
    /// `None`: it is read.
    pub(super) value: Option<Vec<u8>>,
}

impl MountProperties {
    /// Those of the objects of `venus`, which the kernel knows by the numbers of this table.
    #[must_use]
    pub fn new(system: &Arc<System>, venus: &Arc<Venus>, inodes: &Arc<Inodes>) -> Self {
        Self { system: system.clone(), venus: venus.clone(), inodes: inodes.clone() }
    }

    pub(super) fn system(&self) -> &Arc<System> {
        &self.system
    }

    pub(super) fn venus(&self) -> &Arc<Venus> {
        &self.venus
    }

    /// Carries a request out with the rights of its user, as the kernel's requests are. May call servers.
    pub(super) fn answer(&self, owner: TokenOwner, request: PropertyRequest) -> TokenReply {
        let Some(node) = self.inodes.node(INodeNo(request.inode)) else {
            return TokenReply::Errno(Errno::STALE.raw_os_error());
        };
        let env = self.system.env();
        let carried_out = async { select(self.carry_out(owner, node, request), env.sleep(REPLY_MAX)).await };
        match self.system.block_on(carried_out) {
            Either::Left(Ok(reply)) => reply,
            Either::Left(Err(error)) => TokenReply::Errno(error.errno()),
            Either::Right(()) => TokenReply::Errno(Errno::TIMEDOUT.raw_os_error()),
        }
    }

    async fn carry_out(
        &self,
        owner: TokenOwner,
        node: NodeId,
        request: PropertyRequest,
    ) -> Result<TokenReply> {
        let user = self.venus.acting_for(owner);
        if !reaches_all(owner) {
            // A number can be guessed; a path leads only where its user may look.
            user.require_reachable(node).await?;
        }
        let PropertyRequest { name, value, .. } = request;
        match value {
            None => Ok(TokenReply::Value(user.property(node, &name).await?.to_vec())),
            Some(value) => user.set_property(node, &name, &value).await.map(|()| TokenReply::Done),
        }
    }
}

/// Whether a user could reach all objects of this mount: root, and the user whose process this is.
fn reaches_all(owner: TokenOwner) -> bool {
    [0, rustix::process::getuid().as_raw()].contains(&owner.uid())
}
