//! Access checks: rights of the current user, from the cache where they are valid, otherwise from a server.
//!
//! All users share the status cache, so its contents are given only to users whose rights are known to permit it.
//! Rights are those on directories; a file or link has those of its directory, plus one for its owner
//! (docs/protocol/fileserver.md "5.2 Rights", "5.4 Checks per operation"). Validity of cached rights:
//! [`crate::promises::Promises::known_rights`].

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
    /// True if every user of this machine may see the names in a directory, so that a cache of the caller may serve all
    /// of them. Valid until the sink is notified.
    pub fn names_are_public(&self, dir: NodeId) -> bool {
        match self.node_target(dir) {
            Ok(NodeTarget::Object(key)) => self.promises.names_are_public(key),
            Ok(NodeTarget::Cells) => true,
            Ok(NodeTarget::Snapshots(..) | NodeTarget::Unreached(..)) | Err(_) => false,
        }
    }

    /// Cached rights in a directory, if they are `enough`, or at least known.
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

    /// Rights in a directory.
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

    /// The same, for a caller that holds the `fetching` lock.
    pub(super) async fn rights_while_fetching(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<Rights> {
        if let Some(rights) = self.known_rights(dir, volume, &enough) {
            return Ok(rights);
        }
        // Rights that have only become old need not wait for a server that does not reply.
        let was_known = self.promises.were_known(self.token_for(volume.cell), dir, volume);
        match was_known {
            true => self.without_waiting().refresh_rights(dir, volume).await,
            false => self.refresh_rights(dir, volume).await,
        }
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

    /// Rights on an object, from a server if needed. On a file [`Rights::ADMINISTER`] means that the user owns it.
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

    /// Rights on a file or link by its directory, and whether it is known if the user owns it.
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
            // Another client has moved it and removed the directory: only the object itself tells its present
            // directory.
            Err(error) if error.kind == ErrorKind::Stale => return Ok((Rights::NONE, false)),
            Err(error) => return Err(error),
        };
        let own = self.promises.known_owner(self.token_for(volume.cell), vnode, volume);
        let owner = if own == Some(true) { Rights::ADMINISTER } else { Rights::NONE };
        Ok((by_list | owner, own.is_some()))
    }

    /// Removes the cached rights on an object, and on its directory, after a server has refused to change it.
    pub(super) fn was_refused(&self, vnode: &Vnode) {
        self.promises.was_refused(self.token_for(vnode.key.cell), vnode);
    }

    /// Checks that the user may see the attributes of an object with a cached status. In doubt the server decides,
    /// since it permits some users more than their rights say.
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
            // An open file shows its size and times, whatever was changed since it was opened.
            Err(error)
                if error.kind == ErrorKind::AccessDenied
                    && self.files.has_open(vnode.key, self.context.user) =>
            {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// True if that is known of an object in `dir` without a call.
    pub(super) fn is_known_visible(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        vnode: &Vnode,
        status: &Status,
    ) -> bool {
        let enough = |rights| sees(status.kind, rights);
        let Some(rights) = self.known_rights(dir, volume, enough) else { return false };
        let owns = self.promises.known_owner(self.token_for(volume.cell), vnode, volume) == Some(true);
        enough((rights & !Rights::ADMINISTER) | if owns { Rights::ADMINISTER } else { Rights::NONE })
    }

    /// An error unless the rights on an object are enough.
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
        let rights = match self.rights_on(vnode, &volume, status, &enough).await {
            Err(error) if self.may_show_old(&error) => self.rights_promised_last(vnode, error).await?,
            rights => rights?,
        };
        if enough(rights) {
            return Ok(());
        }
        Err(VenusError::new(ErrorKind::AccessDenied, operation).of(vnode.key.fid))
    }
}
