//! Operations that add names: create, mkdir, symlink, link.

use afs_rpc::boxed;
use std::sync::Arc;

use afs_wire::dir;
use afs_wire::fs::{self, PathText, SetStatus};
use afs_wire::ids::{Fid, Mode, Uniquifier, VnodeId};
use afs_wire::mountpoint;

use crate::api::{Entry, NodeId, OpenFlags, Opened};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::NodeTarget;
use crate::location::Volume;
use crate::names::checked;
use crate::promises::ChangeReply;
use crate::venus::Venus;
use crate::venus::together::{Changed, Doubt};
use crate::vnode::{Vnode, is_mount_point};

/// Mode of a symbolic link at the server. A mount point's is [`mountpoint::MODE`].
const LINK_MODE: Mode = Mode(0o755);

impl Venus {
    /// Creates a plain file and opens it.
    #[boxed]
    pub async fn create(
        &self,
        parent: NodeId,
        name: &[u8],
        mode: u32,
        flags: OpenFlags,
    ) -> Result<(Entry, Opened)> {
        self.files.prepare_spare().await;
        let entry = self.mknod(parent, name, mode).await?;
        match self.open_new(entry.node, flags).await {
            Ok(opened) => Ok((entry, opened)),
            Err(error) => {
                self.forget(entry.node, 1);
                Err(error)
            }
        }
    }

    /// Creates a plain file (mknod).
    #[boxed]
    pub async fn mknod(&self, parent: NodeId, name: &[u8], mode: u32) -> Result<Entry> {
        let dir = self.vnode(self.key(parent, "CreateFile")?);
        let name_text = checked(name)?;
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        let request =
            fs::CreateFile { dir: dir.key.fid, name: name_text, status: self.new_status(Mode(mode)) };
        let outcome = self.change_names(&seat, &dir, &volume, request).await;
        self.created(parent, &dir, &volume, name, outcome).await
    }

    /// Creates a directory.
    #[boxed]
    pub async fn mkdir(&self, parent: NodeId, name: &[u8], mode: u32) -> Result<Entry> {
        let dir = self.vnode(self.key(parent, "MakeDir")?);
        let name_text = checked(name)?;
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        let request = fs::MakeDir { dir: dir.key.fid, name: name_text, status: self.new_status(Mode(mode)) };
        let outcome = self.change_names(&seat, &dir, &volume, request).await;
        self.created(parent, &dir, &volume, name, outcome).await
    }

    /// Completes CreateFile and MakeDir: the reply has all that is needed.
    async fn created(
        &self,
        parent: NodeId,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        outcome: Changed<fs::CreateReply>,
    ) -> Result<Entry> {
        let answered = match outcome.result {
            Ok(answered) => answered,
            Err(error) => return self.adopt(parent, dir, name, outcome.doubt, error).await,
        };
        let reply = &answered.value;
        let child = self.vnode(dir.key.sibling(reply.fid.vnode, reply.fid.unique));
        let stray = volume.stray.load(std::sync::atomic::Ordering::SeqCst);
        if stray > answered.serial {
            child.state().broken = stray;
        }
        self.promises.record_reply(
            volume,
            &child,
            &reply.status,
            &reply.callback,
            &reply.sync,
            &answered.origin(),
        );
        self.added(dir, volume, name, reply.fid, &answered.change_of_names(&reply.dir_status, &reply.sync));
        if self.limits.leases {
            self.leases.learn(dir.key, answered.token, &reply.status);
            self.learn_of_new_directory(&child, &answered);
        }
        if reply.fid.is_directory() {
            self.names.directories().keep_new(&child, dir.key.fid, &reply.status);
        }
        Ok(self.entry(NodeTarget::Object(child.key), reply.status, Some((parent, name))))
    }

    /// After a request that may have been executed twice because the first reply was lost: the existing object is the
    /// new one if nothing but what is in doubt has changed the directory since its cached version
    /// (docs/protocol/fileserver.md "14. Cache-manager side rules"). Otherwise the error of the request.
    async fn adopt(
        &self,
        parent: NodeId,
        dir: &Arc<Vnode>,
        name: &[u8],
        doubt: Option<Doubt>,
        error: VenusError,
    ) -> Result<Entry> {
        let Some(doubt) = doubt.filter(|_| error.kind == ErrorKind::Exists) else {
            return Err(self.handle_directory_error(dir, error));
        };
        self.distrust(dir);
        let (child, status) = self.child(dir, name).await?;
        let after = dir.state().status.map(|status| status.data_version);
        if !after.is_some_and(|after| doubt.explains(after)) {
            return Err(self.handle_directory_error(dir, error));
        }
        Ok(self.entry(NodeTarget::Object(child.key), status, Some((parent, name))))
    }

    /// Creates a symbolic link; a text like `#volume.` makes a mount point.
    #[boxed]
    pub async fn symlink(&self, parent: NodeId, name: &[u8], target: &[u8]) -> Result<Entry> {
        let dir = self.vnode(self.key(parent, "Symlink")?);
        let name_text = checked(name)?;
        let contents =
            PathText::new(target).map_err(|_| VenusError::new(ErrorKind::NameTooLong, "Symlink"))?;
        let mode = if mountpoint::is_meant(target) { mountpoint::MODE } else { LINK_MODE };
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        let request =
            fs::Symlink { dir: dir.key.fid, name: name_text, contents, status: self.new_status(mode) };
        let outcome = self.change_names(&seat, &dir, &volume, request).await;
        let answered = match outcome.result {
            Ok(answered) => answered,
            Err(error) => return self.adopt(parent, &dir, name, outcome.doubt, error).await,
        };
        let reply = &answered.value;
        self.added(&dir, &volume, name, reply.fid, &answered.change_of_names(&reply.dir_status, &reply.sync));
        let child = self.vnode(dir.key.sibling(reply.fid.vnode, reply.fid.unique));
        child.state().link = Some(target.to_vec().into());
        // No promise comes with a new link, and what is handed out must be promised.
        let status = self.status(&child).await?;
        let (node_target, status) = self.cross_or_stay(parent, child, status).await?;
        let entry = self.entry(node_target, status, Some((parent, name)));
        if matches!(node_target, NodeTarget::Object(_)) && is_mount_point(&status) {
            self.invalidate_empty_mount_point(parent, name);
        }
        Ok(entry)
    }

    /// Adds a name for a file in the directory where it is.
    #[boxed]
    pub async fn link(&self, node: NodeId, parent: NodeId, name: &[u8]) -> Result<Entry> {
        let file = self.vnode(self.key(node, "Link")?);
        let dir = self.vnode(self.key(parent, "Link")?);
        let name_text = checked(name)?;
        if file.key.volume() != dir.key.volume() {
            return Err(VenusError::new(ErrorKind::CrossDevice, "Link").of(file.key.fid));
        }
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        let request = fs::Link { dir: dir.key.fid, name: name_text, existing: file.key.fid };
        let outcome = self.change_names(&seat, &dir, &volume, request).await;
        let answered = match outcome.result {
            Ok(answered) => answered,
            // AFS's word for what is no file, such as a symbolic link; link(2) has another one.
            Err(error) if error.kind == ErrorKind::IsDirectory => {
                return Err(VenusError { kind: ErrorKind::NotPermitted, ..error });
            }
            Err(error) => return self.adopt(parent, &dir, name, outcome.doubt, error).await,
        };
        let reply = &answered.value;
        self.added(
            &dir,
            &volume,
            name,
            file.key.fid,
            &answered.change_of_names(&reply.dir_status, &reply.sync),
        );
        self.promises.record_change(&volume, &file, &answered.change(&reply.status, &reply.sync));
        let status = self.status(&file).await?;
        Ok(self.entry(NodeTarget::Object(file.key), status, Some((parent, name))))
    }

    /// Adds a name to the local copy of a directory, after a change by this client.
    pub(super) fn added(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        fid: Fid,
        change: &ChangeReply<'_>,
    ) {
        let target: (VnodeId, Uniquifier) = (fid.vnode, fid.unique);
        self.patch(dir, volume, change, |blob| dir::insert(blob, name, target).is_ok());
    }

    fn new_status(&self, mode: Mode) -> SetStatus {
        SetStatus {
            mod_time: Some(self.time()),
            mode: Some(Mode(mode.0 & Mode::ALL)),
            ..SetStatus::default()
        }
    }
}
