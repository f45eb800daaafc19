//! CreateFile, MakeDir and Symlink.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{Actor, Created, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CallBack, SetStatus, Status};
use afs_wire::ids::{Fid, Rights};

use super::object::{actor, directory_within, object, sync};
use super::server::{CallContext, FileServer};
use crate::access::{self, Operation};
use crate::callbacks::Grant;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::CreateFile| async move {
        let fs::CreateFile { dir, name, status } = call;
        let make = move |tx: &mut VolumeTx<'_, '_>, actor| tx.create_file(dir, &name, &status, actor);
        server
            .create(&context, dir, status, Operation::Insert, make)
            .await?
            .with_promise(&server, &context)
            .await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::MakeDir| async move {
        let fs::MakeDir { dir, name, status } = call;
        let make = move |tx: &mut VolumeTx<'_, '_>, actor| tx.make_dir(dir, &name, &status, actor);
        server
            .create(&context, dir, status, Operation::Insert, make)
            .await?
            .with_promise(&server, &context)
            .await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::Symlink| async move {
        let fs::Symlink { dir, name, contents, status } = call;
        // Without an x bit the link is a mount point.
        let mount_point = status.mode.is_some_and(|mode| mode.marks_mount_point());
        let operation = if mount_point { Operation::InsertMountPoint } else { Operation::Insert };
        let make = move |tx: &mut VolumeTx<'_, '_>, actor| tx.symlink(dir, &name, &contents, &status, actor);
        let made = server.create(&context, dir, status, operation, make).await?;
        Ok(fs::SymlinkReply {
            fid: made.fid,
            status: made.status(&server, &context),
            dir_status: made.dir_status(&server, &context),
            sync: sync(&made.header),
        })
    })
}

/// A created object, with all that its reply needs.
struct Made {
    fid: Fid,
    created: Created,
    /// The access list of the directory.
    acl: Arc<Acl>,
    header: Arc<VolumeHeader>,
}

impl FileServer {
    async fn create(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        dir: Fid,
        set: SetStatus,
        operation: Operation<'static>,
        make: impl FnOnce(&mut VolumeTx<'_, '_>, Actor) -> Result<Created, VolumeError> + Send + 'static,
    ) -> Result<Made, AbortCode> {
        let (served, _) = self.volume(context, dir, true)?;
        let subject = context.subject.clone();
        let change = self.change(&served, dir, move |tx| {
            let acl = directory_within(tx, dir, &subject, operation)?;
            // Only administrators create objects with another owner.
            if set.owner.is_some_and(|owner| owner != subject.id()) && !subject.is_administrator() {
                return Err(VolumeError::Refused(Errno::EPERM.to_uae()));
            }
            Ok((make(tx, actor(&subject))?, acl))
        });
        let (created, acl) = change.await?;
        self.clients.start_breaks(dir, Some(context.host.id())).answered().await;
        Ok(Made { fid: created.object.fid(dir.volume), created, acl, header: served.volume.header() })
    }
}

impl Made {
    /// The caller's rights on the created object include `a`, which shows that the caller is its owner.
    fn status(&self, server: &FileServer, context: &CallContext) -> Status {
        let record = &self.created.object;
        let rights = access::rights(&context.subject, &object(&self.header, record, &self.acl));
        server.status_with(&context.subject, &self.header, record, &self.acl, rights | Rights::ADMINISTER)
    }

    fn dir_status(&self, server: &FileServer, context: &CallContext) -> Status {
        server.status(&context.subject, &self.header, &self.created.directory, &self.acl)
    }

    /// The reply with a promise on the new object. Its status is that of the creation, unless another client
    /// found the object and changed it before the promise was granted.
    async fn with_promise(
        mut self,
        server: &FileServer,
        context: &CallContext,
    ) -> Result<fs::CreateReply, AbortCode> {
        let callback: CallBack = server.promise(context, self.fid, &self.header, Grant::Single).await;
        if let Ok(found) = server.find(context, self.fid).await {
            self.created.object = (*found.record).clone();
        }
        Ok(fs::CreateReply {
            fid: self.fid,
            status: self.status(server, context),
            dir_status: self.dir_status(server, context),
            callback,
            sync: sync(&self.header),
        })
    }
}
