//! RemoveFile and RemoveDir.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{Actor, Object, Removed, VolumeError, VolumeTx};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::{Fid, VolumeId};

use super::object::{actor, directory_within, sync};
use super::server::{CallContext, FileServer};
use crate::access::Operation;
use crate::clients::Breaks;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::RemoveFile| async move {
        let fs::RemoveFile { dir, name } = call;
        server.remove(&context, dir, move |tx, actor| tx.remove_file(dir, &name, actor)).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::RemoveDir| async move {
        let fs::RemoveDir { dir, name } = call;
        server.remove(&context, dir, move |tx, actor| tx.remove_dir(dir, &name, actor)).await
    })
}

impl FileServer {
    async fn remove(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        dir: Fid,
        remove: impl FnOnce(&mut VolumeTx<'_, '_>, Actor) -> Result<Removed, VolumeError> + Send + 'static,
    ) -> Result<fs::RemoveReply, AbortCode> {
        let (served, _) = self.volume(context, dir, true)?;
        let subject = context.subject.clone();
        let change = self.change(&served, dir, move |tx| {
            let acl = directory_within(tx, dir, &subject, Operation::Delete)?;
            Ok((remove(tx, actor(&subject))?, acl))
        });
        let (removed, acl) = change.await?;
        let breaks = self.clients.start_breaks(dir, Some(context.host.id()));
        breaks.and(self.unlinked(dir.volume, &removed.object)).answered().await;
        let header = served.volume.header();
        let dir_status = self.status(&context.subject, &header, &removed.directory, &acl);
        Ok(fs::RemoveReply { dir_status, sync: sync(&header) })
    }

    /// Handles the promises on an object that lost a name. Those on a deleted object are dropped silently;
    /// for an object with other names all hosts are notified, the caller too, because its reply does not
    /// mention the object (docs/protocol fileserver.md "15. Traps", T13).
    pub(super) fn unlinked(self: &Arc<Self>, volume: VolumeId, object: &Object) -> Breaks {
        match object {
            Object::Gone(fid) => {
                self.data_path.file_changed(*fid);
                self.clients.callbacks().forget_file(*fid);
                self.locks.forget(*fid);
                Breaks::default()
            }
            Object::Remains(record) => self.clients.start_breaks(record.fid(volume), None),
        }
    }
}
