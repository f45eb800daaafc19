//! Who may: rights of the one we speak for, from the cache where that is sound, else from a server.
//!
//! The status cache is shared by all users, so whatever it holds is given away only to those whose rights are known to
//! allow it. Rights are those on directories; a file or link has those of its directory, and for its owner one more
//! (docs/protocol/fileserver.md "5.2 Rights", "5.4 Checks per operation"). They are kept per directory and token, and
//! count while the directory is promised: a change of an access list breaks the promise. A change of a group breaks
//! nothing, so the rights of somebody who has a token count no longer than [`crate::Limits::rights_max_age`]; what
//! everybody may do (`system:anyuser`) is not subject to that.

use std::sync::Arc;

use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::Rights;

use crate::api::NodeId;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Place;
use crate::location::Volume;
use crate::tokens::TokenId;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Whether everybody on this machine may know the names in a directory, so that a cache above need not ask for whom.
    /// As of now: a change is told to the sink.
    pub fn names_are_public(&self, dir: NodeId) -> bool {
        match self.place(dir) {
            Ok(Place::Object(key)) => {
                let Some(vnode) = self.vnodes.peek(key) else { return false };
                self.everybodys_rights(&vnode).contains(Rights::LOOKUP)
            }
            Ok(Place::Cells) => true,
            Ok(Place::Snapshots(..)) | Err(_) => false,
        }
    }

    /// Whether everybody may know the attributes of an object.
    pub(super) fn attributes_are_public(&self, vnode: &Vnode, status: &Status) -> bool {
        let Some(wanted) = needed_to_see(status.kind) else { return true };
        let dir = self.vnodes.peek(vnode.key.sibling(status.parent, status.parent_unique));
        dir.is_some_and(|dir| self.everybodys_rights(&dir).contains(wanted))
    }

    /// What everybody may do in a directory, as far as it is known.
    fn everybodys_rights(&self, dir: &Vnode) -> Rights {
        let Some(volume) = self.volumes.get(dir.key.cell, dir.key.fid.volume) else { return Rights::NONE };
        let state = dir.state();
        let status = state.status.filter(|_| state.is_promised(&volume, self.now()));
        status.map_or(Rights::NONE, |status| status.anonymous_access)
    }

    /// The rights in a directory, if they are known to be `enough` or at least known.
    pub(super) fn known_rights(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        enough: impl Fn(Rights) -> bool,
    ) -> Option<Rights> {
        let (now, token) = (self.now(), self.token_for(volume.cell));
        let (everybody, known) = {
            let state = dir.state();
            let status = state.status.filter(|_| state.is_promised(volume, now))?;
            (status.anonymous_access, state.rights.get(token))
        };
        if enough(everybody) {
            return Some(everybody);
        }
        let known = known?;
        if token != TokenId::NONE {
            let age = now.saturating_since(known.asked);
            let can_ask = !self.is_out_of_reach(volume);
            if age > self.limits.rights_max_age && can_ask {
                return None;
            }
            if age > self.limits.rights_max_age / 2 && can_ask {
                self.reask_soon(dir, volume);
            }
        }
        Some(everybody | known.rights)
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
        let _turn = dir.fetching.lock().await;
        self.rights_in_turn(dir, volume, enough).await
    }

    /// The same, for one who has the turn to fetch.
    pub(super) async fn rights_in_turn(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        enough: impl Fn(Rights) -> bool,
    ) -> Result<Rights> {
        if let Some(rights) = self.known_rights(dir, volume, &enough) {
            return Ok(rights);
        }
        self.reask_companions(dir, volume).await;
        if let Some(rights) = self.known_rights(dir, volume, &enough) {
            return Ok(rights);
        }
        match self.ask_status(dir, volume).await {
            Ok(status) => Ok(status.caller_access | status.anonymous_access),
            Err(error) if error.kind == ErrorKind::ServerAway => {
                self.known_rights(dir, volume, &enough).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether no server of a volume answered when last called. What was promised and known before goes on to count then:
    /// whoever works on what is in the cache need not stop because nobody can be asked whether he has left a group.
    fn is_out_of_reach(&self, volume: &Volume) -> bool {
        let sites = volume.sites(self.now());
        sites.iter().all(|server| server.addresses().iter().all(|address| address.is_silent()))
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
            _ => Ok(self.ask_status(vnode, volume).await?.caller_access),
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
        let token = self.token_for(volume.cell);
        let own = {
            let state = vnode.state();
            let known = state.rights.get(token).filter(|_| state.is_promised(volume, self.now()));
            known.map(|known| known.rights & Rights::ADMINISTER)
        };
        Ok((by_list | own.unwrap_or(Rights::NONE), own.is_some()))
    }

    /// A server has refused to change an object: what is known of the rights on it, and on its directory, is asked for
    /// again.
    pub(super) fn was_refused(&self, vnode: &Vnode) {
        let token = self.token_for(vnode.key.cell);
        let parent = {
            let mut state = vnode.state();
            state.rights.forget(token);
            state.status.map(|status| vnode.key.sibling(status.parent, status.parent_unique))
        };
        if let Some(dir) = parent.filter(|parent| *parent != vnode.key).and_then(|key| self.vnodes.peek(key))
        {
            dir.state().rights.forget(token);
        }
    }

    /// Whether the one we speak for may know the attributes of an object whose status is here. In doubt the server
    /// decides, since it lets some people see more than their rights say.
    pub(super) async fn require_sight(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        status: &Status,
    ) -> Result<()> {
        if needed_to_see(status.kind).is_none() || vnode.state().orphan {
            return Ok(());
        }
        let enough = |rights| sees(status.kind, rights);
        let (rights, _) = self.cached_rights_on(vnode, volume, status, enough).await?;
        if enough(rights) {
            return Ok(());
        }
        match self.ask_status(vnode, volume).await {
            // An open file tells its size and times, whatever was changed since it was opened.
            Err(error)
                if error.kind == ErrorKind::AccessDenied && self.handles.holds(vnode.key, self.who) =>
            {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// The same, of an object in `dir`, without asking anybody.
    pub(super) fn is_known_to_see(
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
        if vnode.state().orphan {
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

/// The right that shows the attributes of such an object; everybody sees those of a directory
/// (docs/protocol/fileserver.md "5.4 Checks per operation").
fn needed_to_see(kind: FileKind) -> Option<Rights> {
    match kind {
        FileKind::Directory => None,
        FileKind::File => Some(Rights::READ),
        FileKind::Symlink | FileKind::Invalid => Some(Rights::LOOKUP),
    }
}

/// Whether rights on an object show its attributes. Who may only insert sees what he inserted.
fn sees(kind: FileKind, rights: Rights) -> bool {
    let deposited = kind == FileKind::File && rights.contains(Rights::ADMINISTER | Rights::INSERT);
    deposited || needed_to_see(kind).is_none_or(|needed| rights.contains(needed))
}
