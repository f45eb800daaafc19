//! Link: another name for a file, in the same directory.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{Linked, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;

use super::broken::Broken;
use super::object::{actor, directory_within, sync};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::subject::Subject;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::Link| async move {
        server.link(&context, call).await
    })
}

/// A new name, with the access list of the directory.
pub(super) type LinkedBy = (Linked, Arc<Acl>);

pub(super) fn link(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::Link,
) -> Result<LinkedBy, VolumeError> {
    let acl = directory_within(tx, call.dir, subject, Operation::Insert)?;
    Ok((tx.link(call.dir, &call.name, call.existing, actor(subject))?, acl))
}

impl FileServer {
    async fn link(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::Link,
    ) -> Result<fs::LinkReply, AbortCode> {
        let mut broken = Broken::default();
        broken.for_others(call.dir);
        broken.for_others(call.existing);
        let (dir, holder) = (call.dir, context.host.id());
        let (served, _) = self.unlent_volume(context, &[dir, call.existing], true).await?;
        if call.existing.volume != call.dir.volume {
            return Err(Errno::EXDEV.to_uae());
        }
        let subject = context.subject.clone();
        let linked = self.change(&served, Some(holder), dir, move |tx| link(tx, &subject, &call)).await?;
        self.leases().note_change(dir, holder);
        self.break_promises(context, &mut broken).answered().await;
        Ok(self.link_reply(context, &served.volume.header(), &linked))
    }

    pub(super) fn link_reply(
        &self,
        context: &CallContext,
        header: &VolumeHeader,
        (linked, acl): &LinkedBy,
    ) -> fs::LinkReply {
        fs::LinkReply {
            status: self.status(&context.subject, header, &linked.object, acl),
            dir_status: self.status(&context.subject, header, &linked.directory, acl),
            sync: sync(header),
        }
    }
}
