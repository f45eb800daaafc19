//! CreateFile, MakeDir and Symlink.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{Created, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, CallBack, Status};
use afs_wire::ids::{Fid, Rights};

use super::closing_modes;
use super::object::{actor, directory_within, object, sync};
use super::server::FileServer;
use crate::access::{self, Operation};
use crate::call_context::CallContext;
use crate::callbacks::Grant;
use crate::subject::Subject;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::CreateFile| async move {
        let dir = call.dir;
        let (made, header) =
            server.create(&context, dir, move |tx, subject| create_file(tx, subject, &call)).await?;
        Ok(made.with_promise(&server, &context, &header).await)
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::MakeDir| async move {
        let dir = call.dir;
        let (made, header) =
            server.create(&context, dir, move |tx, subject| make_dir(tx, subject, &call)).await?;
        Ok(made.with_promise(&server, &context, &header).await)
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::Symlink| async move {
        let dir = call.dir;
        let (made, header) =
            server.create(&context, dir, move |tx, subject| symlink(tx, subject, &call)).await?;
        Ok(made.of_symlink(&server, &context, &header))
    })
}

/// A created object, with what its reply needs.
pub(super) struct Made {
    pub(super) created: Created,
    /// The access list of the directory.
    pub(super) acl: Arc<Acl>,
}

pub(super) fn create_file(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::CreateFile,
) -> Result<Made, VolumeError> {
    let acl = directory_within(tx, call.dir, subject, Operation::Insert)?;
    Ok(Made { created: tx.create_file(call.dir, &call.name, &call.status, actor(subject))?, acl })
}

pub(super) fn make_dir(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::MakeDir,
) -> Result<Made, VolumeError> {
    let acl = directory_within(tx, call.dir, subject, Operation::Insert)?;
    let mut created = tx.make_dir(call.dir, &call.name, &call.status, actor(subject))?;
    let fid = created.object.fid(call.dir.volume);
    if let Some(closed) = closing_modes::close(tx, subject, fid, &created.object, &call.status)? {
        created.object = closed;
    }
    Ok(Made { created, acl })
}

pub(super) fn symlink(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::Symlink,
) -> Result<Made, VolumeError> {
    // Without an x bit the link is a mount point.
    let mount_point = call.status.mode.is_some_and(|mode| mode.marks_mount_point());
    let operation = if mount_point { Operation::InsertMountPoint } else { Operation::Insert };
    let acl = directory_within(tx, call.dir, subject, operation)?;
    let created = tx.symlink(call.dir, &call.name, &call.contents, &call.status, actor(subject))?;
    Ok(Made { created, acl })
}

impl FileServer {
    async fn create(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        dir: Fid,
        make: impl FnOnce(&mut VolumeTx<'_, '_>, &Subject) -> Result<Made, VolumeError> + Send + 'static,
    ) -> Result<(Made, Arc<VolumeHeader>), AbortCode> {
        let (served, _) = self.unlent_volume(context, &[dir], true).await?;
        let (subject, holder) = (context.subject.clone(), context.host.id());
        let made = self.change(&served, Some(holder), dir, move |tx| make(tx, &subject)).await?;
        self.leases().note_change(dir, holder);
        if made.created.object.is_directory() {
            self.leases().note_made(made.created.object.fid(dir.volume), holder);
        }
        self.clients.start_breaks(dir, Some(context.host.id())).answered().await;
        Ok((made, served.volume.header()))
    }
}

impl Made {
    /// The caller's rights on the created object include `a`, which shows that the caller is its owner.
    fn status(&self, server: &FileServer, context: &CallContext, header: &VolumeHeader) -> Status {
        let record = &self.created.object;
        // A directory has a list of its own, which may be another one already.
        let acl = record.acl.as_ref().unwrap_or(&self.acl);
        let rights = access::rights(&context.subject, &object(header, record, acl));
        server.status_with(&context.subject, header, record, acl, rights | Rights::ADMINISTER)
    }

    fn dir_status(&self, server: &FileServer, context: &CallContext, header: &VolumeHeader) -> Status {
        server.status(&context.subject, header, &self.created.directory, &self.acl)
    }

    /// The reply to Symlink.
    pub(super) fn of_symlink(
        &self,
        server: &FileServer,
        context: &CallContext,
        header: &VolumeHeader,
    ) -> fs::SymlinkReply {
        fs::SymlinkReply {
            fid: self.created.object.fid(header.id),
            status: self.status(server, context, header),
            dir_status: self.dir_status(server, context, header),
            sync: sync(header),
        }
    }

    /// The reply without a promise, for an object that is gone again.
    pub(super) fn without_promise(
        &self,
        server: &FileServer,
        context: &CallContext,
        header: &VolumeHeader,
    ) -> fs::CreateReply {
        fs::CreateReply {
            fid: self.created.object.fid(header.id),
            status: self.status(server, context, header),
            dir_status: self.dir_status(server, context, header),
            callback: CallBack::NONE,
            sync: sync(header),
        }
    }

    /// The reply with a promise on the new object. Its status is that of the creation, unless the object was changed
    /// before the promise was granted, by another client that found it.
    pub(super) async fn with_promise(
        mut self,
        server: &FileServer,
        context: &CallContext,
        header: &VolumeHeader,
    ) -> fs::CreateReply {
        let fid = self.created.object.fid(header.id);
        let callback: CallBack = server.promise(context, fid, header, Grant::Single).await;
        if let Ok(found) = server.find(context, fid).await {
            self.created.object = (*found.record).clone();
        }
        fs::CreateReply { callback, ..self.without_promise(server, context, header) }
    }
}
