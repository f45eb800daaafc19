//! Rename within a volume: replacing what has the new name, or only if nothing has it.

use afs_rpc::boxed;
use std::sync::Arc;

use afs_wire::dir;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, FileKind, Name};
use afs_wire::ids::{Rights, Uniquifier, VnodeId};

use crate::api::NodeId;
use crate::calls::CallReply;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{Key, NodeTarget};
use crate::location::Volume;
use crate::names::{TargetBefore, checked};
use crate::rounds::Seat;
use crate::venus::Venus;
use crate::venus::together::Changed;
use crate::vnode::{Removal, Vnode};

/// A rename, with what was found under the old name.
struct Wanted {
    names: (Name, Name),
    moved: Key,
    /// Whether what has the new name is replaced.
    replaces: bool,
}

impl Venus {
    /// Renames within a volume, replacing the target.
    #[boxed]
    pub async fn rename(&self, parent: NodeId, name: &[u8], to: NodeId, to_name: &[u8]) -> Result<()> {
        self.rename_as((parent, name), (to, to_name), true).await
    }

    /// The same, unless the new name exists ([`ErrorKind::Exists`]): of several who make the same name, also on other machines, one
    /// succeeds. [`ErrorKind::Invalid`] at a server of another implementation, except for a file that stays in its directory.
    #[boxed]
    pub async fn rename_new(&self, parent: NodeId, name: &[u8], to: NodeId, to_name: &[u8]) -> Result<()> {
        match self.rename_as((parent, name), (to, to_name), false).await {
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                self.link_and_unlink((parent, name), (to, to_name)).await
            }
            done => done,
        }
    }

    async fn rename_as(
        &self,
        (parent, name): (NodeId, &[u8]),
        (to, to_name): (NodeId, &[u8]),
        replaces: bool,
    ) -> Result<()> {
        let from = self.vnode(self.key(parent, "Rename")?);
        let into = self.vnode(self.key(to, "Rename")?);
        if from.key.volume() != into.key.volume() {
            return Err(VenusError::new(ErrorKind::CrossDevice, "Rename").of(from.key.fid));
        }
        let names = (checked(name)?, checked(to_name)?);
        let (first, second) = if from.key <= into.key { (&from, &into) } else { (&into, &from) };
        let (seat, _second) = match (from.key == into.key, replaces) {
            (true, true) => (self.enter(&from, &[name, to_name]).await, None),
            // Lists of changes have no such rename.
            (true, false) => (self.enter_alone(&from).await, None),
            (false, _) => (self.enter_alone(first).await, Some(self.enter_alone(second).await)),
        };
        let volume = self.volume_to_change(from.key).await?;
        let missing = || VenusError::new(ErrorKind::NotFound, "Rename").of(from.key.fid);
        let moved = self.find(&from, name).await?.ok_or_else(missing)?;
        let wanted = Wanted { names, moved, replaces };
        self.rename_found(&seat, &volume, (&from, name), (&into, to_name), wanted).await?;
        // Nodes held under the old name have the new one from now on.
        self.kernel.nodes().rename(
            (parent, name),
            (to, to_name),
            self.kernel.nodes().id(NodeTarget::Object(moved)),
        );
        Ok(())
    }

    async fn rename_found(
        &self,
        seat: &Seat,
        volume: &Arc<Volume>,
        (from, name): (&Arc<Vnode>, &[u8]),
        (into, to_name): (&Arc<Vnode>, &[u8]),
        wanted: Wanted,
    ) -> Result<()> {
        let moved = wanted.moved;
        let replaced = self.find(into, to_name).await?;
        if replaced.is_some() && !wanted.replaces {
            return Err(VenusError::new(ErrorKind::Exists, "Rename").of(into.key.fid));
        }
        if replaced == Some(moved) {
            // Two names of one object: POSIX requires that nothing is done, and the server would refuse.
            return Ok(());
        }
        if let Some(replaced) = replaced {
            self.keep_open_file(into, volume, replaced).await?;
        }
        let _removal = replaced.and_then(|replaced| self.vnodes.peek(replaced)).map(Removal::of);
        let outcome = self.rename_called(seat, volume, from, into, wanted).await;
        let answered = match outcome.result {
            Ok(answered) => answered,
            // Perhaps by the attempt without a reply.
            Err(error)
                if outcome.doubt.is_some()
                    && matches!(error.kind, ErrorKind::NotFound | ErrorKind::Exists) =>
            {
                return self.verify_rename(from, into, to_name, moved, error).await;
            }
            Err(error) if error.kind == ErrorKind::Exists => {
                return Err(self.handle_directory_error(into, error));
            }
            Err(error) => return Err(self.handle_directory_error(from, error)),
        };
        let before = self.renamed(volume, (from, name), (into, to_name), &answered);
        self.names_removed(replaced, before, volume, answered.serial).await;
        Ok(())
    }

    async fn rename_called(
        &self,
        seat: &Seat,
        volume: &Arc<Volume>,
        from: &Arc<Vnode>,
        into: &Arc<Vnode>,
        Wanted { names: (old_name, new_name), replaces, .. }: Wanted,
    ) -> Changed<fs::RenameReply> {
        let (old_dir, new_dir) = (from.key.fid, into.key.fid);
        if replaces {
            let request = fs::Rename { old_dir, old_name, new_dir, new_name };
            return self.change_names(seat, from, volume, request).await;
        }
        let request = fs::RenameNew { old_dir, old_name, new_dir, new_name };
        self.change_names(seat, from, volume, request).await
    }

    /// At a server without the call, a file gets the new name and loses the old one after that: it has both in between, and if this
    /// machine fails then.
    async fn link_and_unlink(
        &self,
        (parent, name): (NodeId, &[u8]),
        (to, to_name): (NodeId, &[u8]),
    ) -> Result<()> {
        let dir = self.vnode(self.key(parent, "Rename")?);
        let refused = || Err(VenusError::new(ErrorKind::Invalid, "Rename").of(dir.key.fid));
        let (target, status) = self.child(&dir, name).await?;
        if parent != to || status.kind != FileKind::File {
            return refused();
        }
        let volume = self.volume_of(dir.key).await?;
        let removes = |rights: Rights| rights.contains(Rights::DELETE);
        if !removes(self.rights_in(&dir, &volume, removes).await?) {
            return Err(VenusError::new(ErrorKind::AccessDenied, "Rename").of(dir.key.fid));
        }
        let node = self.kernel.nodes().id(NodeTarget::Object(target.key));
        let entry = self.link(node, to, to_name).await?;
        self.forget(entry.node, 1);
        self.unlink(parent, name).await
    }

    /// Applies the rename to the local copies of the directories. The object that was moved is the one under the old
    /// name in the copy, if that is of the version just before: it may differ from the one found before the call.
    /// Returns what was replaced.
    fn renamed(
        &self,
        volume: &Arc<Volume>,
        (from, name): (&Arc<Vnode>, &[u8]),
        (into, to_name): (&Arc<Vnode>, &[u8]),
        answered: &CallReply<fs::RenameReply>,
    ) -> TargetBefore {
        let reply = &answered.value;
        let [old, new] = [&reply.old_dir_status, &reply.new_dir_status]
            .map(|status| answered.change_of_names(status, &reply.sync));
        let (mut moved, mut replaced) = (None, None);
        let mut take = |blob: &mut dir::Blob| {
            moved = blob.lookup(name).ok().flatten();
            moved.is_some()
        };
        let mut put = |blob: &mut dir::Blob, moved: Option<(VnodeId, Uniquifier)>| {
            replaced = self.names.directories().before(into.key, blob, to_name);
            let _ = dir::remove(blob, to_name);
            moved.is_some_and(|moved| dir::insert(blob, to_name, moved).is_ok())
        };
        if from.key == into.key {
            self.patch(from, volume, &new, |blob| {
                let moved = blob.lookup(name).ok().flatten();
                name == to_name || (put(blob, moved) && dir::remove(blob, name).is_ok())
            });
            return replaced;
        }
        self.patch(from, volume, &old, |blob| take(blob) && dir::remove(blob, name).is_ok());
        self.patch(into, volume, &new, |blob| put(blob, moved));
        if let Some((vnode, unique)) = moved
            && let Some(moved) = self.vnodes.peek(from.key.sibling(vnode, unique))
        {
            self.found_in(&moved, into.key);
            if moved.key.fid.is_directory() {
                // Its `..` was changed.
                self.distrust(&moved);
            }
        }
        replaced
    }

    /// The first reply to a rename was lost, and the retry reports that the old name does not exist.
    async fn verify_rename(
        &self,
        from: &Arc<Vnode>,
        into: &Arc<Vnode>,
        to_name: &[u8],
        moved: Key,
        error: VenusError,
    ) -> Result<()> {
        self.distrust(from);
        self.distrust(into);
        match self.find(into, to_name).await? {
            Some(found) if found == moved => Ok(()),
            _ => Err(self.handle_directory_error(from, error)),
        }
    }
}
