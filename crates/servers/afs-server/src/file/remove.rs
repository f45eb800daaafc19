//! RemoveFile and RemoveDir.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{Removed, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::Fid;

use super::broken::Broken;
use super::object::{actor, directory_within, sync};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::subject::Subject;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::RemoveFile| async move {
        server.remove(&context, call.dir, move |tx, subject| remove_file(tx, subject, &call)).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::RemoveDir| async move {
        server.remove(&context, call.dir, move |tx, subject| remove_dir(tx, subject, &call)).await
    })
}

/// A removal, with the access list of the directory.
pub(super) type RemovedBy = (Removed, Arc<Acl>);

pub(super) fn remove_file(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::RemoveFile,
) -> Result<RemovedBy, VolumeError> {
    let acl = directory_within(tx, call.dir, subject, Operation::Delete)?;
    Ok((tx.remove_file(call.dir, &call.name, actor(subject))?, acl))
}

pub(super) fn remove_dir(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::RemoveDir,
) -> Result<RemovedBy, VolumeError> {
    let acl = directory_within(tx, call.dir, subject, Operation::Delete)?;
    Ok((tx.remove_dir(call.dir, &call.name, actor(subject))?, acl))
}

impl FileServer {
    async fn remove(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        dir: Fid,
        remove: impl Fn(&mut VolumeTx<'_, '_>, &Subject) -> Result<RemovedBy, VolumeError> + Send + Sync + 'static,
    ) -> Result<fs::RemoveReply, AbortCode> {
        let (served, _) = self.unlent_volume(context, &[dir], true).await?;
        let subject = context.subject.clone();
        let removed = self.change_again(&served, context, dir, move |tx| remove(tx, &subject)).await?;
        self.leases().note_change(dir, context.host.id());
        let mut broken = Broken::default();
        self.removal_breaks(dir, &removed.0, &mut broken);
        self.break_promises(context, &mut broken).answered().await;
        Ok(self.remove_reply(context, &served.volume.header(), &removed))
    }

    pub(super) fn removal_breaks(&self, dir: Fid, removed: &Removed, broken: &mut Broken) {
        broken.for_others(dir);
        self.unlinked(dir.volume, &removed.object, broken);
    }

    pub(super) fn remove_reply(
        &self,
        context: &CallContext,
        header: &VolumeHeader,
        (removed, acl): &RemovedBy,
    ) -> fs::RemoveReply {
        let dir_status = self.status(&context.subject, header, &removed.directory, acl);
        fs::RemoveReply { dir_status, sync: sync(header) }
    }
}
