//! Link: another name for a file, in the same directory.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;

use super::object::{actor, directory_within, sync};
use super::server::{CallContext, FileServer};
use crate::access::Operation;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::Link| async move {
        server.link(&context, call).await
    })
}

impl FileServer {
    async fn link(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::Link,
    ) -> Result<fs::LinkReply, AbortCode> {
        let (dir, existing) = (call.dir, call.existing);
        let (served, _) = self.volume(context, dir, true)?;
        if existing.volume != dir.volume {
            return Err(Errno::EXDEV.to_uae());
        }
        let subject = context.subject.clone();
        let change = self.change(&served, dir, move |tx| {
            let acl = directory_within(tx, dir, &subject, Operation::Insert)?;
            Ok((tx.link(dir, &call.name, existing, actor(&subject))?, acl))
        });
        let (linked, acl) = change.await?;
        let caller = Some(context.host.id());
        let breaks = self.clients.start_breaks(dir, caller);
        breaks.and(self.clients.start_breaks(existing, caller)).answered().await;
        let header = served.volume.header();
        Ok(fs::LinkReply {
            status: self.status(&context.subject, &header, &linked.object, &acl),
            dir_status: self.status(&context.subject, &header, &linked.directory, &acl),
            sync: sync(&header),
        })
    }
}
