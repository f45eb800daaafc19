//! Removal of names, also of files that are open here.

use afs_rpc::boxed;
use std::sync::Arc;

use afs_rpc::EnvExt;
use afs_wire::dir;
use afs_wire::fs::{self, Name};
use afs_wire::ids::Fid;

use crate::api::NodeId;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::names::{TargetBefore, checked};
use crate::promises::ChangeReply;
use crate::rounds::Seat;
use crate::venus::Venus;
use crate::vnode::{HiddenName, Removal, Vnode, is_mount_point};

/// Prefix of the hidden name of a removed file that is open and not fully cached, until its last handle is closed.
/// Other clients use the same prefix (docs/protocol/client.md "3. Caches and their rules").
const HIDDEN: &str = ".__afs";
/// EBUSY: the result of rmdir(2) on a mount point in other file systems.
const BUSY: i32 = 16;

impl Venus {
    /// Removes the name of a file, symbolic link or mount point. An open file stays readable and writable through its
    /// handles.
    #[boxed]
    pub async fn unlink(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let dir = self.vnode(self.key(parent, "RemoveFile")?);
        let text = checked(name)?;
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        let child = self.find(&dir, name).await?.ok_or(missing(&dir))?;
        if child.fid.is_directory() {
            return Err(VenusError::new(ErrorKind::IsDirectory, "RemoveFile").of(child.fid));
        }
        self.unlink_found(&seat, &dir, &volume, name, text, child).await?;
        self.kernel.nodes().drop_name(parent, name);
        Ok(())
    }

    /// Removes a mount point; an error for any other object.
    pub(super) async fn remove_mount_point(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let dir = self.vnode(self.key(parent, "RemoveFile")?);
        let (_, status) = self.child(&dir, name).await?;
        if !is_mount_point(&status) {
            return Err(VenusError::new(ErrorKind::Invalid, "rmmount").of(dir.key.fid));
        }
        self.unlink(parent, name).await?;
        // The kernel sees a directory there, and does not know that it was removed.
        self.kernel.invalidate_removed(parent, name);
        Ok(())
    }

    async fn unlink_found(
        &self,
        seat: &Seat,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        text: Name,
        child: Key,
    ) -> Result<()> {
        if self.hide_open_file(dir, volume, name, child).await? {
            return Ok(());
        }
        let _removal = self.vnodes.peek(child).map(Removal::of);
        let serial = self.promises.serial();
        let before = self.remove_file(seat, dir, volume, name, text).await?;
        self.names_removed(Some(child), before, volume, serial).await;
        Ok(())
    }

    async fn remove_file(
        &self,
        seat: &Seat,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        text: Name,
    ) -> Result<TargetBefore> {
        let request = fs::RemoveFile { dir: dir.key.fid, name: text };
        let outcome = self.change_names(seat, dir, volume, request).await;
        match outcome.result {
            Ok(answered) => {
                let reply = &answered.value;
                Ok(self.removed(dir, volume, &answered.change_of_names(&reply.dir_status, &reply.sync), name))
            }
            // The first reply was lost, and the name is gone: the request was executed.
            Err(error) if outcome.doubt.is_some() && error.kind == ErrorKind::NotFound => {
                self.distrust(dir);
                Ok(None)
            }
            Err(error) => Err(self.handle_directory_error(dir, error)),
        }
    }

    /// Removes a name from the local copy of a directory, after a change by this client. Returns its target.
    fn removed(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        change: &ChangeReply<'_>,
        name: &[u8],
    ) -> TargetBefore {
        let mut before = None;
        self.patch(dir, volume, change, |blob| {
            before = self.names.directories().before(dir.key, blob, name);
            dir::remove(blob, name).is_ok()
        });
        before
    }

    /// Before the removal of the last name of a file that is open and not fully cached: renames it to a hidden name, so
    /// that the rest can still be fetched. Returns true if that was done; then the old name is gone.
    pub(super) async fn hide_open_file(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        child: Key,
    ) -> Result<bool> {
        let Some(vnode) = self.vnodes.peek(child).filter(|vnode| needs_name(vnode)) else { return Ok(false) };
        let hidden = self.hidden_name();
        let request = fs::Rename {
            old_dir: dir.key.fid,
            old_name: checked(name)?,
            new_dir: dir.key.fid,
            new_name: checked(&hidden)?,
        };
        let answered =
            self.call(volume, request).await.map_err(|error| self.handle_directory_error(dir, error))?;
        let reply = &answered.value;
        self.patch(dir, volume, &answered.change(&reply.new_dir_status, &reply.sync), |blob| {
            let target = blob.lookup(name).ok().flatten();
            target.is_some_and(|target| dir::insert(blob, &hidden, target).is_ok())
                && dir::remove(blob, name).is_ok()
        });
        self.hidden(&vnode, (dir.key, hidden));
        Ok(true)
    }

    /// Before a rename over the last name of a file that is open and not fully cached: adds a hidden name, so that the rest
    /// can still be fetched. The old name is there at every moment, of the one file or of the other.
    pub(super) async fn keep_open_file(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        child: Key,
    ) -> Result<()> {
        let Some(vnode) = self.vnodes.peek(child).filter(|vnode| needs_name(vnode)) else { return Ok(()) };
        let hidden = self.hidden_name();
        let request = fs::Link { dir: dir.key.fid, name: checked(&hidden)?, existing: child.fid };
        let answered = match self.call(volume, request).await {
            Ok(answered) => answered,
            // It is gone already, or has another name that the server does not add to: the rename decides.
            Err(error) => {
                tracing::debug!(%error, "a file that is open here gets no hidden name");
                return Ok(());
            }
        };
        let reply = &answered.value;
        self.added(dir, volume, &hidden, child.fid, &answered.change(&reply.dir_status, &reply.sync));
        self.promises.record_change(volume, &vnode, &answered.change(&reply.status, &reply.sync));
        self.hidden(&vnode, (dir.key, hidden));
        Ok(())
    }

    fn hidden_name(&self) -> Vec<u8> {
        format!("{HIDDEN}{:08X}", self.env.random_u64() as u32).into_bytes()
    }

    /// A file has a hidden name now. If nobody has use for it any more it is removed by a task, since the caller has the place in which
    /// names of the directory are changed.
    fn hidden(&self, vnode: &Arc<Vnode>, name: HiddenName) {
        let Some(unused) = vnode.state().file.hide_as(name) else { return };
        let (me, file) = (self.in_background(), vnode.key);
        self.env.spawn(Box::pin(async move { me.end_hidden(file, unused).await }));
    }

    /// Removes the hidden name of a file that no handle needs any more.
    pub(super) async fn end_hidden(&self, file: Key, (dir, name): HiddenName) {
        let serial = self.promises.serial();
        if let Err(error) = self.remove_hidden(dir, &name).await {
            tracing::warn!(%error, "a removed file that was open here could not be removed in the end");
        }
        if let Ok(volume) = self.volume_of(file).await {
            self.name_removed(file, &volume, Some(serial)).await;
        }
    }

    async fn remove_hidden(&self, dir: Key, name: &[u8]) -> Result<()> {
        let dir = self.vnode(dir);
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        self.remove_file(&seat, &dir, &volume, name, checked(name)?).await.map(drop)
    }

    /// Handles the removal of a name by a call that began after break number `serial`. The target is the one that the
    /// local copy showed just before; if that is unknown, perhaps the one found before the call.
    pub(super) async fn names_removed(
        &self,
        found: Option<Key>,
        before: TargetBefore,
        volume: &Arc<Volume>,
        serial: u64,
    ) {
        match (before, found) {
            (Some(Some(key)), _) => self.name_removed(key, volume, Some(serial)).await,
            (None, Some(key)) => self.name_removed(key, volume, None).await,
            (Some(None), _) | (None, None) => {}
        }
    }

    /// Handles the loss of a name of an object; certain if there is a break number.
    pub(super) async fn name_removed(&self, key: Key, volume: &Arc<Volume>, serial: Option<u64>) {
        let Some(vnode) = self.vnodes.peek(key) else {
            self.files.forget_kept(key);
            return;
        };
        if !self.was_last_name(&vnode, volume, serial).await {
            // The reply has no status of the file.
            if !self.loses_name_under_lease(&vnode, volume) {
                self.distrust(&vnode);
            }
            return;
        }
        {
            let mut state = vnode.state();
            if let Some(status) = state.status.as_mut() {
                status.link_count = status.link_count.saturating_sub(1);
            }
        }
        self.files.became_nameless(&vnode);
        self.files.forget_kept(key);
        self.note_removed(&vnode);
    }

    /// True if an object is gone with the name that it lost. Its number of names is known if it was promised
    /// throughout: Andrew's servers break the promise if names are left, and other clients may have added or removed
    /// names. Otherwise the server is asked, if the object is in use here.
    async fn was_last_name(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>, serial: Option<u64>) -> bool {
        let (known, is_in_use) = {
            let state = vnode.state();
            let known = state.is_promised(volume, self.now()) && Some(state.broken) <= serial;
            (state.status.filter(|_| known), state.is_in_use())
        };
        match known {
            _ if vnode.key.fid.is_directory() => serial.is_some(),
            Some(status) => status.link_count <= 1,
            None if is_in_use => {
                let asked = self.status_without_check(vnode).await;
                asked.is_err_and(|error| error.kind == ErrorKind::Stale)
            }
            None => false,
        }
    }

    /// Removes an empty directory.
    #[boxed]
    pub async fn rmdir(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let dir = self.vnode(self.key(parent, "RemoveDir")?);
        let text = checked(name)?;
        let seat = self.enter(&dir, &[name]).await;
        let volume = self.volume_to_change(dir.key).await?;
        let child = self.find(&dir, name).await?.ok_or(missing(&dir))?;
        if !child.fid.is_directory() {
            return Err(self.not_a_directory(child).await);
        }
        let serial = self.promises.serial();
        let request = fs::RemoveDir { dir: dir.key.fid, name: text };
        let outcome = self.change_names(&seat, &dir, &volume, request).await;
        let before = match outcome.result {
            Ok(answered) => {
                let reply = &answered.value;
                self.removed(&dir, &volume, &answered.change_of_names(&reply.dir_status, &reply.sync), name)
            }
            Err(error) if outcome.doubt.is_some() && error.kind == ErrorKind::NotFound => {
                self.distrust(&dir);
                None
            }
            // File servers return EEXIST where Unix returns ENOTEMPTY (docs/protocol/fileserver.md "7. Operation
            // semantics").
            Err(error) if error.kind == ErrorKind::Exists => {
                return Err(VenusError {
                    kind: ErrorKind::NotEmpty,
                    ..self.handle_directory_error(&dir, error)
                });
            }
            Err(error) => return Err(self.handle_directory_error(&dir, error)),
        };
        self.names_removed(Some(child), before, &volume, serial).await;
        self.kernel.nodes().drop_name(parent, name);
        Ok(())
    }

    /// Error of rmdir(2) on an object that is no directory: for a mount point EBUSY, so that `rm -r` does not remove
    /// it.
    async fn not_a_directory(&self, child: Key) -> VenusError {
        let status = self.status(&self.vnode(child)).await;
        let kind = match status {
            Ok(status) if is_mount_point(&status) => ErrorKind::Refused(BUSY),
            _ => ErrorKind::NotDirectory,
        };
        VenusError::new(kind, "RemoveDir").of(child.fid)
    }
}

/// Whether the server must keep a file that loses a name, so that its handles can fetch the rest.
fn needs_name(vnode: &Vnode) -> bool {
    let state = vnode.state();
    let last = state.status.is_none_or(|status| status.link_count <= 1);
    let complete = state.file.data().is_none_or(|data| data.content().is_complete());
    state.file.opens() > 0 && last && !complete && !state.file.is_hidden()
}

fn missing(dir: &Vnode) -> VenusError {
    let fid: Fid = dir.key.fid;
    VenusError::new(ErrorKind::NotFound, "lookup").of(fid)
}
