//! Taking names away, also from files that are open here.

use std::sync::Arc;

use afs_rpc::EnvExt;
use afs_wire::dir;
use afs_wire::fs::{self, Name};
use afs_wire::ids::Fid;

use crate::api::NodeId;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::namespace::checked;
use crate::vnode::{Vnode, is_mount_point};

/// What a file that is open here, but not all here, is called until its last handle is closed. Other clients use the same
/// beginning (docs/protocol/client.md "3. Caches and their rules").
const HIDDEN: &str = ".__afs";
/// EBUSY: what rmdir(2) of a mount point gives everywhere.
const BUSY: i32 = 16;

impl Venus {
    /// Takes the name of a file, symbolic link or mount point away. A file that is open here stays readable and writable
    /// through its handles.
    pub async fn unlink(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let dir = self.vnode(self.key(parent, "RemoveFile")?);
        let text = checked(name)?;
        let _turn = dir.changing.lock().await;
        let volume = self.volume_to_change(dir.key).await?;
        let child = self.find(&dir, name).await?.ok_or(missing(&dir))?;
        if child.fid.is_directory() {
            return Err(VenusError::new(ErrorKind::IsDirectory, "RemoveFile").of(child.fid));
        }
        self.unlink_found(&dir, &volume, name, text, child).await?;
        self.nodes.drop_name(parent, name);
        Ok(())
    }

    /// Takes a mount point away, and nothing else.
    pub(super) async fn remove_mount_point(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let dir = self.vnode(self.key(parent, "RemoveFile")?);
        let (_, status) = self.child(&dir, name).await?;
        if !is_mount_point(&status) {
            return Err(VenusError::new(ErrorKind::Invalid, "rmmount").of(dir.key.fid));
        }
        self.unlink(parent, name).await?;
        // The kernel sees a directory there, and does not know that it went.
        self.told.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.sink.attributes(parent);
        self.sink.entry(parent, name);
        Ok(())
    }

    async fn unlink_found(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        text: Name,
        child: Key,
    ) -> Result<()> {
        if self.set_aside(dir, volume, name, child).await? {
            return Ok(());
        }
        self.remove_file(dir, volume, name, text).await?;
        self.lost_name(child);
        Ok(())
    }

    async fn remove_file(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        text: Name,
    ) -> Result<()> {
        let tried = self.call_tried(volume, fs::RemoveFile { dir: dir.key.fid, name: text }).await;
        match tried.result {
            Ok(answered) => {
                let reply = &answered.value;
                self.patch(dir, volume, &reply.dir_status, &reply.sync, |blob| {
                    dir::remove(blob, name).is_ok()
                });
                Ok(())
            }
            // The first answer was lost, and the name is gone: that was us.
            Err(error) if tried.unsure && error.kind == ErrorKind::NotFound => {
                self.distrust(dir);
                Ok(())
            }
            Err(error) => Err(self.noticed(dir, error)),
        }
    }

    /// Before the last name of a file goes that is open here but not all here: it gets a hidden name, so that the rest can
    /// still be fetched. Says whether that was done; then the old name is gone already.
    pub(super) async fn set_aside(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
        child: Key,
    ) -> Result<bool> {
        let Some(vnode) = self.vnodes.peek(child) else { return Ok(false) };
        let needs_server = {
            let state = vnode.state();
            let last = state.status.is_none_or(|status| status.link_count <= 1);
            let complete = state.data.as_ref().is_none_or(|data| data.content().is_complete());
            state.opens > 0 && last && !complete && state.hidden_as.is_none()
        };
        if !needs_server {
            return Ok(false);
        }
        let hidden = format!("{HIDDEN}{:08X}", self.env.random_u64() as u32).into_bytes();
        let request = fs::Rename {
            old_dir: dir.key.fid,
            old_name: checked(name)?,
            new_dir: dir.key.fid,
            new_name: checked(&hidden)?,
        };
        let answered = self.call(volume, request).await.map_err(|error| self.noticed(dir, error))?;
        let reply = &answered.value;
        let target = (child.fid.vnode, child.fid.unique);
        self.patch(dir, volume, &reply.new_dir_status, &reply.sync, |blob| {
            dir::insert(blob, &hidden, target).is_ok() && dir::remove(blob, name).is_ok()
        });
        vnode.state().hidden_as = Some((dir.key, hidden));
        Ok(true)
    }

    /// The last handle of a file with a hidden name is closed.
    pub(super) async fn remove_hidden(&self, dir: Key, name: &[u8]) -> Result<()> {
        let dir = self.vnode(dir);
        let _turn = dir.changing.lock().await;
        let volume = self.volume_to_change(dir.key).await?;
        self.remove_file(&dir, &volume, name, checked(name)?).await
    }

    /// A name of this object is gone from the server, by our doing.
    pub(super) fn lost_name(&self, key: Key) {
        let Some(vnode) = self.vnodes.peek(key) else {
            self.forget_data(key);
            return;
        };
        let was_last = {
            let mut state = vnode.state();
            let links = state.status.map_or(1, |status| status.link_count);
            let gone = links <= 1 || key.fid.is_directory();
            if gone && state.opens > 0 {
                state.orphan = true;
            }
            if let Some(status) = state.status.as_mut() {
                status.link_count = links.saturating_sub(1);
            }
            if gone && state.opens == 0 {
                state.data = None;
            }
            gone
        };
        if was_last {
            // Data that could not be stored has no file any more to be stored to.
            crate::lock(&self.unsaved).remove(&key);
            self.forget_data(key);
            self.is_gone(&vnode);
        }
        // Other names remain: the server breaks our promise too, since the reply has no status of the file.
    }

    fn forget_data(&self, key: Key) {
        if let Ok(cell) = self.cell(key) {
            self.cache.forget(&cell.name, key.fid);
        }
    }

    /// Removes an empty directory.
    pub async fn rmdir(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let dir = self.vnode(self.key(parent, "RemoveDir")?);
        let text = checked(name)?;
        let _turn = dir.changing.lock().await;
        let volume = self.volume_to_change(dir.key).await?;
        let child = self.find(&dir, name).await?.ok_or(missing(&dir))?;
        if !child.fid.is_directory() {
            return Err(self.not_a_directory(child).await);
        }
        let tried = self.call_tried(&volume, fs::RemoveDir { dir: dir.key.fid, name: text }).await;
        match tried.result {
            Ok(answered) => {
                let reply = &answered.value;
                self.patch(&dir, &volume, &reply.dir_status, &reply.sync, |blob| {
                    dir::remove(blob, name).is_ok()
                });
            }
            Err(error) if tried.unsure && error.kind == ErrorKind::NotFound => self.distrust(&dir),
            // File servers say EEXIST where Unix says ENOTEMPTY (docs/protocol/fileserver.md "7. Operation semantics").
            Err(error) if error.kind == ErrorKind::Exists => {
                return Err(VenusError { kind: ErrorKind::NotEmpty, ..self.noticed(&dir, error) });
            }
            Err(error) => return Err(self.noticed(&dir, error)),
        }
        self.lost_name(child);
        self.nodes.drop_name(parent, name);
        Ok(())
    }

    /// rmdir of something that is none: of a mount point it is refused, so that `rm -r` does not unmount volumes.
    async fn not_a_directory(&self, child: Key) -> VenusError {
        let status = self.status(&self.vnode(child)).await;
        let kind = match status {
            Ok(status) if is_mount_point(&status) => ErrorKind::Refused(BUSY),
            _ => ErrorKind::NotDirectory,
        };
        VenusError::new(kind, "RemoveDir").of(child.fid)
    }
}

fn missing(dir: &Vnode) -> VenusError {
    let fid: Fid = dir.key.fid;
    VenusError::new(ErrorKind::NotFound, "lookup").of(fid)
}
