//! Who may: rights of the one we speak for, from the cache where that is sound, else from a server.
//!
//! The status cache is shared by all users, so whatever it holds is given away only to those whose rights are known to
//! allow it. Rights are those on directories; a file or link has those of its directory, and for its owner one more
//! (docs/protocol/fileserver.md "5.2 Rights", "5.4 Checks per operation"). For how long known rights
//! count: [`crate::promises::Promises::known_rights`].

use std::sync::Arc;

use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::Rights;

use crate::api::NodeId;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::NodeTarget;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::{Vnode, needed_to_see, sees};

impl Venus {
    /// Whether everybody on this machine may know the names in a directory, so that a cache above need not ask for whom.
    /// As of now: a change is told to the sink.
    pub fn names_are_public(&self, dir: NodeId) -> bool {
        match self.node_target(dir) {
            Ok(NodeTarget::Object(key)) => self.promises.names_are_public(key),
            Ok(NodeTarget::Cells) => true,
            Ok(NodeTarget::Snapshots(..)) | Err(_) => false,
        }
    }

    /// The rights in a directory, if they are known to be `enough` or at least known.
    pub(super) fn known_rights(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        enough: impl Fn(Rights) -> bool,
    ) -> Option<Rights> {
        let known = self.promises.known_rights(self.token_for(volume.cell), dir, volume, enough)?;
        if known.is_ageing {
            self.refresh_rights_soon(dir, volume);
        }
        Some(known.rights)
    }

    /// The rights in a directory.
    pub(super) async fn rights_in(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<Rights> {
        if let Some(rights) = self.known_rights(dir, volume, &enough) {
            return Ok(rights);
        }
        let _guard = dir.fetching.lock().await;
        self.rights_while_fetching(dir, volume, enough).await
    }

    /// The same, for one who has the turn to fetch.
    pub(super) async fn rights_while_fetching(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<Rights> {
        if let Some(rights) = self.known_rights(dir, volume, &enough) {
            return Ok(rights);
        }
        self.refresh_rights(dir, volume).await;
        if let Some(rights) = self.known_rights(dir, volume, &enough) {
            return Ok(rights);
        }
        match self.fetch_status(dir, volume).await {
            Ok(status) => Ok(status.caller_access | status.anonymous_access),
            Err(error) if error.kind == ErrorKind::ServerUnreachable => {
                self.known_rights(dir, volume, &enough).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The rights on an object, if need be as a server tells them now. On a file [`Rights::ADMINISTER`] says that the
    /// caller owns it.
    pub(super) async fn rights_on(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        status: &Status,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<Rights> {
        if status.kind == FileKind::Directory {
            return self.rights_in(vnode, volume, enough).await;
        }
        match self.cached_rights_on(vnode, volume, status, &enough).await? {
            (rights, true) => Ok(rights),
            (rights, false) if enough(rights) => Ok(rights),
            _ => Ok(self.fetch_status(vnode, volume).await?.caller_access),
        }
    }

    /// The rights on a file or link by its directory, and whether it is known whether the caller owns it.
    async fn cached_rights_on(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        status: &Status,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<(Rights, bool)> {
        let parent = vnode.key.sibling(status.parent, status.parent_unique);
        if !parent.fid.is_directory() {
            return Ok((Rights::NONE, false));
        }
        let listed = |rights: Rights| rights & !Rights::ADMINISTER;
        let dir = self.vnode(parent);
        let by_list = match self.rights_in(&dir, volume, |rights| enough(listed(rights))).await {
            Ok(rights) => listed(rights),
            // Somebody has moved it and removed the directory: only the object itself knows where it is.
            Err(error) if error.kind == ErrorKind::Stale => return Ok((Rights::NONE, false)),
            Err(error) => return Err(error),
        };
        let own = self.promises.known_owner(self.token_for(volume.cell), vnode, volume);
        let owner = if own == Some(true) { Rights::ADMINISTER } else { Rights::NONE };
        Ok((by_list | owner, own.is_some()))
    }

    /// A server has refused to change an object: what is known of the rights on it, and on its directory, is asked for
    /// again.
    pub(super) fn was_refused(&self, vnode: &Vnode) {
        self.promises.was_refused(self.token_for(vnode.key.cell), vnode);
    }

    /// Whether the one we speak for may know the attributes of an object whose status is here. In doubt the server
    /// decides, since it lets some people see more than their rights say.
    pub(super) async fn require_visible(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        status: &Status,
    ) -> Result<()> {
        if needed_to_see(status.kind).is_none() || vnode.state().file.is_orphan() {
            return Ok(());
        }
        let enough = |rights| sees(status.kind, rights);
        let (rights, _) = self.cached_rights_on(vnode, volume, status, enough).await?;
        if enough(rights) {
            return Ok(());
        }
        match self.fetch_status(vnode, volume).await {
            // An open file tells its size and times, whatever was changed since it was opened.
            Err(error)
                if error.kind == ErrorKind::AccessDenied
                    && self.files.has_open(vnode.key, self.context.user) =>
            {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// The same, of an object in `dir`, without asking anybody.
    pub(super) fn is_known_visible(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        vnode: &Vnode,
        status: &Status,
    ) -> bool {
        let enough = |rights| sees(status.kind, rights);
        let Some(rights) = self.known_rights(dir, volume, enough) else { return false };
        let own = vnode.state().rights.get(self.token_for(volume.cell));
        let own = own.map_or(Rights::NONE, |known| known.rights & Rights::ADMINISTER);
        enough((rights & !Rights::ADMINISTER) | own)
    }

    /// Refuses unless the rights on an object are enough.
    pub(super) async fn require(
        &self,
        vnode: &Arc<Vnode>,
        status: &Status,
        operation: &'static str,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<()> {
        if vnode.state().file.is_orphan() {
            return Ok(());
        }
        let volume = self.volume_of(vnode.key).await?;
        let rights = self.rights_on(vnode, &volume, status, &enough).await?;
        if enough(rights) {
            return Ok(());
        }
        Err(VenusError::new(ErrorKind::AccessDenied, operation).of(vnode.key.fid))
    }
}
